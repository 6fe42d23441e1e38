//! Signals sent to jobtrace reach the command, once.

use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{JOB, end, jobtrace};

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A run whose command waits for signals is sent `signal`; it has it once, and the summary is printed.
fn arrives_once(signal: i32, send_to: impl Fn(i32, i32)) {
    let mut command = jobtrace();
    let mut child = command.args(["--", JOB, "signals"]).process_group(0).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    send_to(child.id() as i32, signal);
    assert_eq!(lines.collect::<Vec<_>>(), [format!("had {signal}")]);
    let ended = end(child);
    assert_eq!(ended.status, 128 + signal, "{}", ended.stderr);
    assert!(ended.stderr.contains("Where the time went"), "{}", ended.stderr);
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: kill(2) takes any numbers; the processes are the caller's.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn signals() -> [i32; 4] {
    [libc::SIGTERM, libc::SIGUSR1, libc::SIGINT, libc::SIGRTMIN() + 1]
}

#[test]
fn a_signal_to_jobtrace_alone_arrives_once() {
    signals().into_iter().for_each(|signal| arrives_once(signal, kill));
}

#[test]
fn a_signal_to_the_group_arrives_once() {
    signals().into_iter().for_each(|signal| arrives_once(signal, |pid, signal| kill(-pid, signal)));
}

#[test]
fn one_to_jobtrace_and_at_once_to_the_group_arrives_once() {
    arrives_once(libc::SIGUSR1, |pid, signal| {
        kill(pid, signal);
        kill(-pid, signal);
    });
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
