//! Very many processes and cgroups, and a command that leaves its own cgroup.

use std::{fs, path::PathBuf};

use jobtrace::cgroup::hierarchies::Hierarchies;
use serde_json::Value;

use crate::program::{JOB, end, jobtrace, json, run, wait_for};

fn assert_nothing_dropped(numbers: &Value) {
    for (name, value) in numbers["self"].as_object().unwrap() {
        assert!(!name.starts_with("dropped_") || value == 0, "{name} is {value}");
    }
}

/// Memory that process `pid` holds of its own, without its program's pages, in KiB.
fn anonymous_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn ten_thousand_children_are_counted_exactly_in_bounded_memory() {
    let tmp = tempfile::tempdir().unwrap();
    let (file, done) = (tmp.path().join("json"), tmp.path().join("done"));
    let script = "\"$1\" forks 10000; echo > \"$0\"; read line";
    let mut jobtrace = jobtrace();
    jobtrace.args(["--interval", "100ms", "--json"]).arg(&file);
    jobtrace.args(["--", "sh", "-c", script]).arg(&done).arg(JOB);
    let mut child = jobtrace.stdin(std::process::Stdio::piped()).spawn().unwrap();
    wait_for("ten thousand children", || done.exists().then_some(()));
    let memory = anonymous_kib(child.id()).unwrap();
    drop(child.stdin.take());
    let ended = end(child);
    eprintln!("{memory} KiB");
    assert!(memory < 16 << 10, "{memory} KiB");
    let numbers = json(&file);
    // The ten thousand, and the shell's one.
    assert_eq!(numbers["sched"]["forks"], 10_001, "{}", ended.stderr);
    assert_nothing_dropped(&numbers);
}

#[test]
fn cgroups_made_and_removed_inside_the_commands_own_are_its() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("json");
    let v2 = Hierarchies::read().unwrap().v2.expect("the live ring needs cgroup v2 mounted");
    let script = format!(
        "own={}$(sed -n s/^0:://p /proc/self/cgroup)
        for i in $(seq 300); do mkdir \"$own/c$i\" || exit 1; done
        (echo 0 > \"$own/c7/cgroup.procs\"; {JOB} forks 40)
        for i in $(seq 300); do rmdir \"$own/c$i\" || exit 2; done",
        v2.mount.display()
    );
    let mut jobtrace = jobtrace();
    jobtrace.arg("--json").arg(&file).args(["--", "sh", "-c", &script]);
    let ended = end(jobtrace.spawn().unwrap());
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let numbers = json(&file);
    assert!(numbers["sched"]["forks"].as_u64() >= Some(640), "{}", numbers["sched"]["forks"]);
    assert_nothing_dropped(&numbers);
}

/// A cgroup beside the command's, removed when dropped.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_command_that_moves_itself_elsewhere_ends_as_any() {
    let v2 = Hierarchies::read().unwrap().v2.expect("the live ring needs cgroup v2 mounted");
    let beside = Beside(v2.own.join(format!("jobtrace-test-{}-beside", std::process::id())));
    fs::create_dir(&beside.0).unwrap();
    let script = format!("echo 0 > {}/cgroup.procs; sleep 0.2; exit 5", beside.0.display());
    let ended = run(["--", "sh", "-c", &script]);
    assert_eq!(ended.status, 5, "{}", ended.stderr);
}
