//! A writer that is killed again and again at any moment: every file of the outbox is whole, every
//! interval is there once.
//!
//! The writer is this very binary, started again with a folder; it counts intervals in place of
//! measuring, and commits its count as the agent commits its state.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use flate2::read::MultiGzDecoder;
use jobtrace::{
    base::clock,
    lines::{
        spool::{Limits, Resume, Spool},
        writer::Writer,
    },
    model::point::{FieldValue, Point},
};

/// Writers killed.
const LIVES: u64 = 40;
/// Points of an interval: enough for a file to take several writes.
const POINTS: u64 = 100;

fn main() {
    match env::var_os("SPOOL_OF_THE_WRITER") {
        Some(dir) => write_until_killed(&PathBuf::from(dir)),
        None => kill_and_look(),
    }
}

fn point(interval: u64, number: u64) -> Point {
    // Hardly compressible.
    let noise = (interval * POINTS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
    let fields = vec![
        ("interval".into(), FieldValue::Integer(interval)),
        ("noise".into(), FieldValue::Integer(noise)),
    ];
    Point { measurement: "m".into(), tags: vec![], fields, time_ns: number }
}

/// The state: the next interval and the set committed with it.
fn read_state(dir: &Path) -> Option<(u64, String)> {
    let text = fs::read_to_string(dir.join("state")).ok()?;
    let (next, name) = text.split_once(' ').expect("a state that was renamed is whole");
    Some((next.parse().unwrap(), name.to_owned()))
}

fn commit(dir: &Path, next: u64, name: &str) {
    let mut file = fs::File::create(dir.join("state.new")).unwrap();
    write!(file, "{next} {name}").unwrap();
    file.sync_all().unwrap();
    fs::rename(dir.join("state.new"), dir.join("state")).unwrap();
}

fn write_until_killed(dir: &Path) -> ! {
    let writer = Writer { host: "n".into(), boot_id: "0123456789".into(), pid: std::process::id() };
    let mut spool = Spool::open(dir, Limits::default(), &writer).unwrap();
    let state = read_state(dir);
    let committed = state.as_ref().map(|(_, name)| name.as_str());
    spool.recover(Resume::Continued(committed)).unwrap();
    let mut next = state.as_ref().map_or(0, |(next, _)| *next);
    loop {
        let points: Vec<_> = (0..POINTS).map(|number| point(next, number)).collect();
        let prepared = spool.prepare(&points, None, clock::wall_ns(), clock::monotonic_ns());
        let prepared = prepared.unwrap();
        next += 1;
        commit(dir, next, prepared.name());
        spool.publish(prepared).unwrap();
    }
}

fn kill_and_look() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path();
    let mut inside = 0;
    for life in 0..LIVES {
        let begin = Instant::now();
        let before = read_state(dir).map_or(0, |(next, _)| next);
        let mut writer = Command::new(env::current_exe().unwrap())
            .env("SPOOL_OF_THE_WRITER", dir)
            .spawn()
            .unwrap();
        // Killed at another moment of its loop each time, once it has got that far.
        while read_state(dir).map_or(0, |(next, _)| next) == before {
            assert!(begin.elapsed() < Duration::from_secs(60), "the writer writes nothing");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_micros(life * 7919 % 50_000));
        writer.kill().unwrap();
        writer.wait().unwrap();
        inside += fs::read_dir(dir.join("tmp")).unwrap().count().min(1);
        check(dir, false);
    }
    let writer = Writer { host: "n".into(), boot_id: "0123456789".into(), pid: 0 };
    let (_, name) = read_state(dir).unwrap();
    let mut spool = Spool::open(dir, Limits::default(), &writer).unwrap();
    spool.recover(Resume::Continued(Some(&name))).unwrap();
    let intervals = check(dir, true);
    println!(
        "{LIVES} writers killed, {inside} of them with a file in tmp; {intervals} intervals, each in \
         the outbox once"
    );
}

/// Reads the whole outbox; at the `end` nothing may be missing. Gives the number of intervals.
fn check(dir: &Path, end: bool) -> u64 {
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in fs::read_dir(dir.join("outbox")).unwrap() {
        let path = entry.unwrap().path();
        let mut text = String::new();
        let file = fs::File::open(&path).unwrap();
        MultiGzDecoder::new(file).read_to_string(&mut text).expect("each file is whole");
        let lines = text.strip_prefix("# DML\n# CONTEXT-DATABASE: jobtrace\n").unwrap();
        assert!(lines.ends_with('\n'), "{path:?} ends in a line");
        let parsed: Result<Vec<_>, _> = influxdb_line_protocol::parse_lines(lines).collect();
        assert_eq!(parsed.expect("each line parses").len() as u64, POINTS, "{path:?}");
        let interval = lines.strip_prefix("m interval=").unwrap().split_once('i').unwrap().0;
        *found.entry(interval.parse().unwrap()).or_default() += 1;
    }
    assert!(found.values().all(|times| *times == 1), "an interval is there twice: {found:?}");
    let committed = read_state(dir).unwrap().0;
    let expected: Vec<u64> = (0..committed).collect();
    let mut found: Vec<u64> = found.into_keys().collect();
    if !end && found.len() + 1 == expected.len() {
        // Killed between the commit and the publishing.
        found.push(committed - 1);
    }
    assert_eq!(found, expected, "every committed interval is there, and no other");
    committed
}
