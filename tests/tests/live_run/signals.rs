//! Signals sent to jobtrace reach the command, once.

use std::{
    io::{BufRead, BufReader},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{JOB, end, jobtrace};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Sends `signal` to jobtrace once its command waits for it.
fn hand_on(signal: Signal) -> (Vec<String>, crate::program::Ended) {
    let mut child = jobtrace().args(["--", JOB, "signals"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    send(&child, signal);
    (lines.collect(), end(child))
}

#[test]
fn signals_are_handed_on_once_and_the_summary_is_printed() {
    for signal in [Signal::TERM, Signal::USR1, Signal::INT] {
        let (had, ended) = hand_on(signal);
        assert_eq!(had, [format!("had {}", signal.as_raw())]);
        assert_eq!(ended.status, 128 + signal.as_raw(), "{}", ended.stderr);
        assert!(ended.stderr.contains("Where the time went"), "{}", ended.stderr);
    }
}

#[test]
fn stopped_alone_jobtrace_does_not_hold_the_command_up() {
    let script = "echo ready; read line; echo \"$line\" > \"$0\"; exit 6";
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("file");
    let mut command = jobtrace();
    command.args(["--", "sh", "-c", script]).arg(&file).stdin(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    send(&child, Signal::STOP);
    drop((child.stdin.take().unwrap(), lines));
    crate::program::line_of(&file);
    send(&child, Signal::CONT);
    assert_eq!(end(child).status, 6);
}
