//! Readers of an output that stop: neither the command nor what is told of it depends on them.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command},
    thread::sleep,
    time::Duration,
};

use rustix::{
    pipe::fcntl_setpipe_size,
    process::{Pid, Signal, kill_process},
};

use crate::program::{JOB, end, jobtrace, json, run};

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
    sleep(Duration::from_millis(500));
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
    let child = recording(command.args(["--", "sleep", "1"]));
    sleep(Duration::from_secs(6));
    let ended = end(child);
    let waited = "jobtrace: waiting for the reader of standard output\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (0, waited));
    let live = json(&path("live"));
    let elapsed_ns = live["elapsed_ns"].as_u64().unwrap();
    assert!((1_000_000_000..3_000_000_000).contains(&elapsed_ns), "{elapsed_ns}");
    fs::write(path("record"), ended.stdout).unwrap();
    let options = ["--replay", "--json"].map(Into::into);
    let [replay, out] = options;
    let replayed = run([replay, path("record"), out, path("replayed")]);
    assert_eq!(replayed.status, 0, "{}", replayed.stderr);
    assert_eq!(json(&path("replayed")), live);
}
