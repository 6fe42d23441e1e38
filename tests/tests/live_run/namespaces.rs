//! jobtrace in a pid namespace of its own, as in a container started from a shell: the leaders of its session and
//! of its process group are outside, and its pid is another process's there.

use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::program::{JOB, cgroups_of, end, end_with_leftovers, program, run};

/// What the shell's pid namespace does with its jobtrace: at a line of input it sends SIGUSR1, and gives the
/// status; at the input's end it ends as process 1, and all in the namespace are killed outright.
const SHELL: &str = "\"$0\" run \"$@\" & read -r line || exit 9; kill -USR1 $!; wait $!";

fn unshare() -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--mount-proc"]).env("RUST_BACKTRACE", "0");
    unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    unshare
}

/// A jobtrace that the shell has started, and the output of its command, which is `ready`.
fn start(arguments: &[&str]) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut unshare = unshare();
    let mut child =
        unshare.args(["sh", "-c", SHELL]).arg(program()).args(arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    (child, lines)
}

#[test]
fn a_command_has_its_status_and_leaves_nothing() {
    let ended =
        end(unshare().arg(program()).args(["run", "--", "sh", "-c", "exit 3"]).spawn().unwrap());
    assert_eq!(ended.status, 3, "{}", ended.stderr);
    // There it is process 1.
    assert!(cgroups_of(1).is_empty());
}

#[test]
fn a_signal_to_jobtrace_arrives_once() {
    let (mut child, lines) = start(&["-q", "--", JOB, "signals"]);
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    assert_eq!(lines, [format!("had {}", libc::SIGUSR1)]);
    let ended = end(child);
    assert_eq!((ended.status, ended.stderr.as_str()), (128 + libc::SIGUSR1, ""));
}

#[test]
fn the_next_run_removes_what_a_killed_one_left() {
    let (mut child, lines) = start(&["-q", "--", "sh", "-c", "echo ready; exec sleep 100"]);
    // The first process after the shell: outside, that is the kernel's own, which lives for ever.
    let held = cgroups_of(2);
    assert!(!held.is_empty());
    run(["-q", "--", "true"]);
    assert_eq!(cgroups_of(2), held, "in use: left alone");
    drop((child.stdin.take(), lines));
    assert_eq!(end_with_leftovers(child).status, 9);
    assert_eq!(cgroups_of(2), held);
    run(["-q", "--", "true"]);
    assert!(cgroups_of(2).is_empty(), "{held:?}");
}

/// The outer run gives the inner one a cgroup that is the root of its namespace, of which no mount is known there.
#[test]
fn where_no_cgroup_can_be_made_for_memory_a_note_says_why_it_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let [outer, inner] = ["outer", "inner"].map(|name| folder.path().join(name));
    let names = [&outer, &inner].map(|file| file.to_str().unwrap());
    let unshared = ["unshare", "--cgroup", &program().to_string_lossy(), "run", "-q", "--json"]
        .map(str::to_owned);
    let words = ["-q", "--json", names[0], "--"].map(str::to_owned);
    let command = [names[1], "--", "true"].map(str::to_owned);
    let ended = run(words.into_iter().chain(unshared).chain(command));
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let [outer, inner] = [outer, inner].map(|file| {
        let json: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let is_told = json["notes"].to_string().contains("memory is unknown: ");
        let is_listed = json["unknown"].to_string().contains("\"memory\"");
        (is_told, is_listed, json["memory"]["peak_bytes"].is_null())
    });
    assert_eq!((outer, inner), ((false, false, false), (true, true, true)));
}
