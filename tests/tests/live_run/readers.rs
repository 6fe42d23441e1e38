//! Readers of an output that stop: neither the command nor what is told of it depends on them.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::{
    io::ioctl_fionread,
    pipe::fcntl_setpipe_size,
    process::{Pid, Signal, kill_process},
};

use crate::program::{JOB, end, jobtrace, json, run, wait_for};

/// Between two readings, `10ms`.
const INTERVAL: Duration = Duration::from_millis(10);

/// A run that records into a pipe of one page, which a few readings fill.
fn recording(command: &mut Command) -> Child {
    let child = command.spawn().unwrap();
    fcntl_setpipe_size(child.stdout.as_ref().unwrap(), 4096).unwrap();
    child
}

#[test]
fn a_reader_that_stops_keeps_no_signal_from_the_command_nor_from_jobtrace() {
    let mut command = jobtrace();
    command.args(["--quiet", "--interval", "10ms", "--record", "-", "--", JOB, "signals"]);
    let mut child = recording(&mut command);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    let held = || ioctl_fionread(child.stdout.as_ref().unwrap()).unwrap();
    // What is in it grows no more, though there are readings.
    wait_for("a full pipe", || {
        let before = held();
        sleep(20 * INTERVAL);
        (before > 0 && held() == before).then_some(())
    });
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::USR1).unwrap();
    assert_eq!(lines.next(), Some(format!("had {}", libc::SIGUSR1)));
    let waits = "jobtrace: waiting for the reader of standard output";
    assert_eq!(lines.next().as_deref(), Some(waits));
    kill_process(pid, Signal::TERM).unwrap();
    let told = "jobtrace: cannot write standard output: ended by signal 15 before its reader had read everything";
    assert_eq!(lines.collect::<Vec<_>>(), [told]);
    assert_eq!(end(child).status, 128 + libc::SIGUSR1);
}

#[test]
fn a_reader_that_stops_for_a_while_has_all_and_the_times_are_the_commands() {
    let tmp = tempfile::tempdir().unwrap();
    let path = |name: &str| tmp.path().join(name);
    let mut command = jobtrace();
    command.args(["--quiet", "--interval", "10ms", "--record", "-", "--json"]).arg(path("live"));
    let begin = Instant::now();
    let mut child = recording(command.args(["--", "sleep", "1"]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waits = "jobtrace: waiting for the reader of standard output";
    assert_eq!(lines.next().as_deref(), Some(waits));
    let waited_ns = begin.elapsed().as_nanos() as u64;
    let ended = end(child);
    assert_eq!((ended.status, lines.next()), (0, None));
    let live = json(&path("live"));
    let elapsed_ns = live["elapsed_ns"].as_u64().unwrap();
    // It waits for a second before it says so.
    let most_ns = waited_ns - 1_000_000_000;
    assert!((1_000_000_000..=most_ns).contains(&elapsed_ns), "{elapsed_ns} of {most_ns}");
    fs::write(path("record"), ended.stdout).unwrap();
    let options = ["--replay", "--json"].map(Into::into);
    let [replay, out] = options;
    let replayed = run([replay, path("record"), out, path("replayed")]);
    assert_eq!(replayed.status, 0, "{}", replayed.stderr);
    assert_eq!(json(&path("replayed")), live);
}
