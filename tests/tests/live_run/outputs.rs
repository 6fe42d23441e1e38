//! Output that cannot be written, before and during a run.

use std::{
    ffi::CString,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use jobtrace::cgroup::hierarchies::Hierarchies;

use crate::program::{end, jobtrace, json, line_protocol, run};

/// A file system of a few pages, unmounted when dropped.
struct TinyDisk {
    directory: tempfile::TempDir,
}

impl TinyDisk {
    fn mount(bytes: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = CString::new(directory.path().as_os_str().as_bytes()).unwrap();
        let options = CString::new(format!("size={bytes}")).unwrap();
        let kind = c"tmpfs".as_ptr();
        // SAFETY: all strings end in zero and live through the call.
        let rc = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, options.as_ptr().cast()) };
        assert_eq!(rc, 0, "mount: {}", std::io::Error::last_os_error());
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Leaves no byte free.
    fn fill(&self) {
        let _ = fs::write(self.path("filler"), vec![0; 1 << 20]);
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let path = CString::new(self.directory.path().as_os_str().as_bytes()).unwrap();
        // SAFETY: the path ends in zero and lives through the call.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn the_command_is_not_started_where_its_output_cannot_be_written() {
    let tmp = tempfile::tempdir().unwrap();
    let marker = tmp.path().join("ran");
    let file = tmp.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("below");
    for (option, path) in
        [("--out", &below), ("--out", &file), ("--json", &below), ("--record", &below)]
    {
        let mut jobtrace = jobtrace();
        jobtrace.arg(option).arg(path).args(["--", "touch"]).arg(&marker);
        let ended = end(jobtrace.spawn().unwrap());
        assert_eq!(ended.status, 2, "{option}: {}", ended.stderr);
        assert!(ended.stderr.contains(path.to_str().unwrap()), "{}", ended.stderr);
        assert!(ended.stderr.contains(": name a f"), "{}", ended.stderr);
        assert!(!marker.exists(), "{option}");
    }
}

/// A run into a disk that is full from some moment on, of most of a second after it.
fn run_on_a_full_disk(option: &str, name: &str, exit: i32) -> crate::program::Ended {
    let disk = TinyDisk::mount(64 << 10);
    let mut jobtrace = jobtrace();
    let script = format!(
        "sleep 0.3; echo > \"$0\"; until [ -e \"$1\" ]; do sleep 0.05; done; sleep 0.7; exit {exit}"
    );
    let elsewhere = tempfile::tempdir().unwrap();
    let [started, full] = ["started", "full"].map(|name| elsewhere.path().join(name));
    jobtrace.args(["--interval", "10ms", option]).arg(disk.path(name));
    jobtrace.args(["--", "sh", "-c", &script]).args([&started, &full]);
    let child = jobtrace.spawn().unwrap();
    crate::program::wait_for("the command", || started.exists().then_some(()));
    disk.fill();
    fs::write(full, "").unwrap();
    let ended = end(child);
    assert!(ended.stderr.contains(&format!("jobtrace: cannot {}", verb(option))));
    assert!(ended.stderr.contains("free space there"), "{}", ended.stderr);
    assert!(ended.stderr.contains("Where the time went"), "{}", ended.stderr);
    let told = ended.stderr.lines().filter(|line| line.starts_with("jobtrace: "));
    assert_eq!(told.count(), 1, "each trouble is told once: {}", ended.stderr);
    ended
}

fn verb(option: &str) -> &str {
    if option == "--record" { "record to" } else { "write" }
}

#[test]
fn a_full_disk_costs_output_and_not_the_run() {
    for (option, name) in [("--out", "out"), ("--json", "json"), ("--record", "x.gz")] {
        assert_eq!(run_on_a_full_disk(option, name, 0).status, 1, "{option}");
        assert_eq!(run_on_a_full_disk(option, name, 7).status, 7, "{option}");
    }
}

#[test]
fn lost_line_protocol_is_counted() {
    let ended = run_on_a_full_disk("--out", "out", 0);
    assert!(ended.stderr.contains("bytes of line protocol could not be written"));
}

#[test]
fn the_limit_of_file_sizes_ends_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let (record, json) = (tmp.path().join("r.jsonl"), tmp.path().join("json"));
    let script = "ulimit -f 8; \"$0\" run --interval 10ms --record \"$1\" --json \"$2\" -- \
                  sh -c 'sleep 2; ulimit -f; kill -XFSZ $$'";
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", script]).arg(crate::program::program()).arg(&record).arg(&json);
    let output = shell.env("RUST_BACKTRACE", "0").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot record to"), "{stderr}");
    // The command has the signal's default: it is ended by it.
    assert_eq!(output.status.code(), Some(128 + libc::SIGXFSZ), "{stderr}");
    assert_eq!(crate::program::json(&json)["exit"]["signal"], libc::SIGXFSZ);
}

#[test]
fn intervals_of_ten_milliseconds_add_up_to_the_whole() {
    let tmp = tempfile::tempdir().unwrap();
    let (out, file) = (tmp.path().join("out"), tmp.path().join("json"));
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; sleep 0.2; done";
    let mut jobtrace = jobtrace();
    jobtrace.args(["--interval", "10ms", "--out"]).arg(&out).arg("--json").arg(&file);
    let ended = end(jobtrace.args(["--", "sh", "-c", script]).spawn().unwrap());
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let numbers = json(&file);
    let text = line_protocol(&out);
    let lines = text.lines().filter(|line| line.starts_with("job_sched,"));
    let mut count = 0;
    let mut sums = [("on_cpu_ns", 0), ("switches_voluntary", 0), ("sleep_ns_sum", 0)];
    for line in lines {
        count += 1;
        let (_, fields) = line.split_once(' ').unwrap();
        for (name, sum) in &mut sums {
            let value = fields.split([' ', ',']).find_map(|field| {
                field.strip_prefix(*name)?.strip_prefix('=')?.trim_end_matches('i').parse().ok()
            });
            *sum += value.unwrap_or(0_u64);
        }
    }
    assert!(count >= 10, "{count}");
    assert_eq!(numbers["sched"]["on_cpu_ns"], sums[0].1);
    assert_eq!(numbers["sched"]["switches_voluntary"], sums[1].1);
    assert_eq!(numbers["sched"]["sleep_ns"]["sum"], sums[2].1);
}

#[test]
fn on_standard_output_the_numbers_are_alone() {
    let tmp = tempfile::tempdir().unwrap();
    for option in ["--json", "--record"] {
        let mut jobtrace = jobtrace();
        jobtrace.args([option, "-", "--quiet", "--", "sh", "-c", "echo out; exit 3"]);
        let ended = end(jobtrace.current_dir(tmp.path()).spawn().unwrap());
        assert_eq!((ended.status, ended.stderr.as_str()), (3, "out\n"), "{option}");
        let text = String::from_utf8(ended.stdout).unwrap();
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert_eq!(text.lines().count() > 1, option == "--record", "{text}");
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    }
}

/// How many MiB of writes the run's notes call missing.
fn missing_mib(how: &str) -> Option<f64> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, numbers) = (folder.path().join("file"), folder.path().join("json"));
    let mut jobtrace = jobtrace();
    jobtrace.arg("--json").arg(&numbers).args(["--", "dd", "if=/dev/zero", "bs=1M", "count=16"]);
    let ended = end(jobtrace.arg(how).arg(format!("of={}", file.display())).spawn().unwrap());
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let notes = json(&numbers)["notes"].to_string();
    let (_, note) = notes.split_once("up to ")?;
    let (mib, rest) = note.split_once(" MiB ").expect("a size");
    assert!(rest.starts_with("that the command wrote"), "{notes}");
    Some(mib.parse().unwrap())
}

/// Under cgroup v1 what the kernel writes back later is charged to nobody.
#[test]
fn buffered_writes_that_nobody_is_charged_for_are_told_of() {
    let missing = missing_mib("conv=notrunc");
    if Hierarchies::read().unwrap().v1.iter().any(|v1| v1.has("blkio")) {
        // Metadata besides.
        assert!(missing.is_some_and(|mib| (15.0..=18.0).contains(&mib)), "{missing:?}");
    } else {
        assert_eq!(missing, None);
    }
    assert_eq!(missing_mib("oflag=direct"), None);
}

/// MiB changed in the node's page cache so far, to be written to storage.
fn node_mib() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    let pages = text.lines().find_map(|line| line.strip_prefix("nr_dirtied ")).unwrap();
    (pages.parse::<u64>().unwrap() * rustix::param::page_size() as u64) >> 20
}

/// The kernel tells a parent what its child wrote when it waits for it, and else nobody.
#[test]
fn buffered_writes_of_what_nobody_waits_for_are_told_of() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let script = "(setsid sh -c 'dd if=/dev/zero of=file bs=1M count=64 status=none; : >done' &)
        until [ -e done ]; do sleep 0.05; done";
    let before = node_mib();
    let mut jobtrace = jobtrace();
    jobtrace.args(["--json", "numbers", "--", "sh", "-c", script]).current_dir(folder.path());
    let ended = end(jobtrace.spawn().unwrap());
    let after = node_mib();
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let notes = json(&folder.path().join("numbers"))["notes"].to_string();
    let told = notes.split_once("the disk writes may lack up to ");
    if Hierarchies::read().unwrap().v1.iter().any(|v1| v1.has("blkio")) {
        let (size, _) =
            told.expect(&notes).1.split_once(" MiB written by processes").expect(&notes);
        let size: f64 = size.parse().unwrap();
        // Of each CPU half a MiB is counted late.
        assert!((62.0..=(after - before + 2) as f64).contains(&size), "{size} {before} {after}");
    } else {
        assert!(told.is_none(), "{notes}");
    }
}

#[test]
fn what_is_recorded_is_what_was_told() {
    let tmp = tempfile::tempdir().unwrap();
    let path = |name: &str| tmp.path().join(name);
    let mut live = jobtrace();
    live.arg("--record").arg(path("r.gz")).arg("--json").arg(path("live.json"));
    let live = end(live.args(["--", "sh", "-c", "sleep 0.1; exit 3"]).spawn().unwrap());
    assert_eq!(live.status, 3);
    let option = |name: &str| Path::new(name).to_owned();
    let arguments = [option("--replay"), path("r.gz"), option("--json"), path("replayed.json")];
    let replayed = run(arguments);
    assert_eq!(replayed.status, 0, "{}", replayed.stderr);
    assert_eq!(json(&path("live.json")), json(&path("replayed.json")));
    assert_eq!(live.stderr, replayed.stderr, "one summary");
}
