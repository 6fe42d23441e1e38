//! Recordings: what goes in comes out, what is cut short says so, and garbage is refused by line.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use jobtrace::{
    files::target::Target,
    model::{
        files::{FileCounts, FileUse, Files},
        group::Group,
        hist::Hist,
        info::{Exit, JobInfo},
        io_threads::{IoThreads, ThreadUse},
        job::Job,
        point::Origin,
        slow_ops::SlowOp,
        snapshot::Snapshot,
        source::Source,
        tables::{BLOCK, Block, Own, SCHED, SELF, Sched},
    },
    replay::{End, Header, Recorder, Replay, VERSION},
};

fn header() -> Header {
    let job = Job { job: "r1".into(), manager: "run".into(), user: "ada".into(), ..Job::default() };
    Header {
        version: VERSION,
        origin: Origin { cluster: "c".into(), host: "n1".into() },
        jobs: BTreeMap::from([(0, Job::system()), (7, job)]),
        info: JobInfo { name: "a\n\"b\"".into(), ..JobInfo::default() },
        interval_ns: 1_000_000_000,
        unknown: Vec::new(),
        notes: vec!["a hook is missing".into()],
    }
}

fn snapshot(n: u64) -> Snapshot {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, u64::MAX - n);
    sched.set_hist(
        Sched::sleep_ns,
        Hist::from_buckets(n, n, [(0, 1), (127, u64::from(u32::MAX) + n)]),
    );
    let mut block = Group::unknown(&BLOCK, vec!["sda".into(), "read".into()]);
    block.set(Block::errors, 0);
    let mut own = Group::unknown(&SELF, vec![]);
    own.set(Own::cpu_ns, n);
    Snapshot {
        wall_ns: n,
        monotonic_ns: n,
        slots: BTreeMap::from([(7, vec![sched, block]), (0, vec![])]),
        own: vec![own],
    }
}

fn end() -> End {
    let exit = Exit { code: Some(3), signal: None };
    let counts = FileCounts { ops: 7, opens: 1, ..FileCounts::default() };
    let file = FileUse { path: "/data/\x1b[31ma".into(), files: 1, counts, ..FileUse::default() };
    let slow = SlowOp { took_ns: 9, path: "/data/\x1b[31ma".into(), ..SlowOp::default() };
    let thread = ThreadUse { program: "\x1b[2Jsh".into(), thread: 7, ..ThreadUse::default() };
    let files = Files {
        slowest: vec![slow],
        threads: IoThreads { threads: vec![thread], programs: Vec::new() },
        ..Files::largest(vec![file], Vec::new())
    };
    End { exit, wall_ns: 99, notes: vec!["processes left behind".into()], files }
}

fn target(path: &Path) -> Target {
    Target::open(path, || Ok(())).unwrap()
}

/// A recording of three snapshots, with its end where asked for.
fn record(path: &Path, with_end: bool) {
    let mut recorder = Recorder::create(target(path), &header()).unwrap();
    for n in 1..=3 {
        recorder.snapshot(&snapshot(n)).unwrap();
    }
    if with_end {
        recorder.end(end()).unwrap();
    }
}

/// All snapshots of a recording, and the error that ended it.
fn play(replay: &mut Replay) -> (Vec<Snapshot>, Option<String>) {
    let mut snapshots = Vec::new();
    loop {
        match replay.snapshot() {
            Ok(Some(snapshot)) => snapshots.push(snapshot),
            Ok(None) => return (snapshots, None),
            Err(error) => {
                assert!(replay.snapshot().unwrap().is_none(), "an error ends the replay");
                return (snapshots, Some(format!("{error:#}")));
            }
        }
    }
}

fn files(dir: &Path) -> [PathBuf; 2] {
    [dir.join("run.jsonl"), dir.join("run.jsonl.gz")]
}

#[test]
fn what_was_recorded_is_replayed() {
    let tmp = tempfile::tempdir().unwrap();
    for path in files(tmp.path()) {
        record(&path, true);
        let mut replay = Replay::open(&path).unwrap();
        assert_eq!(replay.header(), &header());
        assert_eq!(replay.notes(), header().notes);
        assert!(replay.end().is_none());
        assert_eq!(play(&mut replay), ((1..=3).map(snapshot).collect(), None));
        assert_eq!(replay.end(), Some(&end()));
        assert_eq!(replay.notes(), ["a hook is missing", "processes left behind"]);
        let magic = fs::read(&path).unwrap()[..2] == [0x1f, 0x8b];
        assert_eq!(magic, path.extension().unwrap() == "gz");
    }
}

#[test]
fn a_recording_without_its_end_says_so() {
    let tmp = tempfile::tempdir().unwrap();
    for path in files(tmp.path()) {
        record(&path, false);
        let mut replay = Replay::open(&path).unwrap();
        assert_eq!(play(&mut replay).0.len(), 3);
        let note = format!(
            "the recording {} is cut short at line 5: anything after that is unknown",
            path.display()
        );
        assert_eq!(replay.notes(), ["a hook is missing".to_owned(), note]);
        assert!(replay.end().is_none());
    }
}

#[test]
fn wherever_a_crash_cuts_the_whole_lines_before_it_are_replayed() {
    let tmp = tempfile::tempdir().unwrap();
    for path in files(tmp.path()) {
        record(&path, true);
        let whole = fs::read(&path).unwrap();
        let is_gz = path.extension().unwrap() == "gz";
        let cut = tmp.path().join(format!("cut-{}", path.file_name().unwrap().display()));
        let mut replayed = 0;
        for length in 0..whole.len() {
            fs::write(&cut, &whole[..length]).unwrap();
            match Replay::open(&cut) {
                Err(error) => {
                    let shown = format!("{error:#}");
                    assert!(shown.contains("ends within its first line"), "{length}: {shown}");
                    assert_eq!(replayed, 0, "cut at {length}");
                }
                Ok(mut replay) => {
                    let (snapshots, error) = play(&mut replay);
                    assert_eq!(error, None, "cut at {length}");
                    assert!(snapshots.len() >= replayed, "cut at {length}");
                    assert_eq!(
                        snapshots,
                        (1..).map(snapshot).take(snapshots.len()).collect::<Vec<_>>()
                    );
                    let told = replay.notes().iter().any(|note| note.contains("is cut short"));
                    assert!(told || is_gz && replay.end().is_some(), "cut at {length}");
                    replayed = snapshots.len();
                }
            }
        }
        assert_eq!(replayed, 3);
    }
}

#[test]
fn each_snapshot_is_readable_while_the_recording_goes_on() {
    let tmp = tempfile::tempdir().unwrap();
    for path in files(tmp.path()) {
        let mut recorder = Recorder::create(target(&path), &header()).unwrap();
        for n in 1..=3 {
            recorder.snapshot(&snapshot(n)).unwrap();
            let (snapshots, error) = play(&mut Replay::open(&path).unwrap());
            assert_eq!((snapshots.len() as u64, error), (n, None));
        }
    }
}

#[test]
fn garbage_is_refused_with_its_file_and_line() {
    let head = serde_json::to_string(&header()).unwrap();
    let one = serde_json::to_string(&snapshot(1)).unwrap();
    let two = serde_json::to_string(&snapshot(2)).unwrap();
    let end = r#"{"end":{"exit":{"code":0,"signal":null},"wall_ns":1}}"#;
    let own =
        |group: &str| format!(r#"{{"wall_ns":2,"monotonic_ns":2,"slots":{{}},"own":[{group}]}}"#);
    let cases = [
        (1, "not json".to_owned(), "this is not a recording's header"),
        (1, "\u{1f}\u{8b}".to_owned(), "this is not a recording's header"),
        (1, one.clone(), "this is not a recording's header"),
        (1, head.replace("recording\":1", "recording\":2"), "version 2, this program reads 1"),
        (1, head.replace("\"host\"", "\"hots\""), "unknown field `hots`"),
        (1, head.replace("\"7\"", "\"5000000000\""), "invalid"),
        (2, format!("{head}\n"), "EOF while parsing"),
        (2, format!("{head}\n{head}"), "unknown field"),
        (3, format!("{head}\n{one}\n{}", &one[1..]), "expected struct Snapshot"),
        (3, format!("{head}\n{two}\n{one}"), "older than the one before"),
        (2, format!("{head}\n{}", own(r#"{"measurement":"job_x","values":{}}"#)), "job_x"),
        (
            2,
            format!("{head}\n{}", own(r#"{"measurement":"job_sched","values":{"x":1}}"#)),
            "field x",
        ),
        (
            2,
            format!("{head}\n{}", own(r#"{"measurement":"job_sched","values":{"sleep_ns":1}}"#)),
            "sleep_ns is of another kind",
        ),
        (
            2,
            format!("{head}\n{}", own(r#"{"measurement":"job_sched","values":{"forks":-1}}"#)),
            "did not match",
        ),
        (
            2,
            format!("{head}\n{}", own(r#"{"measurement":"job_block","tags":["sda"],"values":{}}"#)),
            "wants other tags",
        ),
        (
            2,
            format!("{head}\n{}", own(r#"{"measurement":"job_gpu","tags":["0","a"],"values":{}}"#)),
            "wants other tags",
        ),
        (2, format!("{head}\n{}", end.replace("code", "cod")), "missing field `code`"),
        (3, format!("{head}\n{end}\n{one}"), "there is data after the recording's end"),
    ];
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("x.jsonl");
    for (line, text, expected) in cases {
        fs::write(&path, text.clone() + "\n").unwrap();
        let error = match Replay::open(&path) {
            Ok(mut replay) => play(&mut replay).1.unwrap_or_else(|| panic!("accepted: {text}")),
            Err(error) => format!("{error:#}"),
        };
        let place = format!(
            "{}, line {line}: damaged or not a recording, record the run again: ",
            path.display()
        );
        assert!(error.starts_with(&place) && error.contains(expected), "{error}\nfor {text}");
    }
}

#[test]
fn damaged_gzip_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    let [plain, gz] = files(tmp.path());
    record(&plain, true);
    // The name says nothing: renamed, it is read all the same.
    fs::rename(&plain, &gz).unwrap();
    assert_eq!(play(&mut Replay::open(&gz).unwrap()).0.len(), 3);
    record(&gz, true);
    fs::copy(&gz, &plain).unwrap();
    assert_eq!(play(&mut Replay::open(&plain).unwrap()).0.len(), 3);
    let mut bytes = fs::read(&gz).unwrap();
    bytes[2] = 0xff;
    fs::write(&gz, bytes).unwrap();
    let error = format!("{:#}", Replay::open(&gz).err().expect("an error"));
    assert!(error.starts_with(&format!("{}, line 1: ", gz.display())), "{error}");
    let missing = format!("{:#}", Replay::open(&tmp.path().join("none")).err().expect("an error"));
    assert!(missing.starts_with("cannot open the recording "), "{missing}");
}

#[test]
fn a_recorder_that_cannot_write_says_so_and_stops() {
    let tmp = tempfile::tempdir().unwrap();
    let nowhere = tmp.path().join("none/x.jsonl");
    let error = format!("{:#}", Target::open(&nowhere, || Ok(())).expect_err("an error"));
    assert!(error.starts_with("cannot write ") && error.contains("name a file"), "{error}");
    // The device that is always full.
    let error =
        Recorder::create(target(Path::new("/dev/full")), &header()).err().expect("an error");
    assert!(
        format!("{error:#}").starts_with("cannot record to /dev/full: free space"),
        "{error:#}"
    );
}
