//! Several runs at once: each sees its own work, and none the others'.

use std::{collections::BTreeSet, fs, process::Child};

use crate::program::{JOB, end, jobtrace, json, line_protocol};

/// Runs a command for each number of forks, all at once, into one directory.
fn fork_at_once(counts: &[u64]) {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let file = |index: usize| tmp.path().join(format!("{index}.json"));
    let start = |(index, count): (usize, &u64)| {
        let mut jobtrace = jobtrace();
        jobtrace.arg("--out").arg(&out).arg("--json").arg(file(index));
        // Long enough for all to be traced at the same time.
        let script = format!("sleep 0.7; {JOB} forks {count}; sleep 0.7");
        jobtrace.args(["--interval", "200ms", "--", "sh", "-c", &script]).spawn().unwrap()
    };
    let children: Vec<Child> = counts.iter().enumerate().map(start).collect();
    for child in children {
        let ended = end(child);
        assert_eq!(ended.status, 0, "{}", ended.stderr);
    }
    let text = line_protocol(&out);
    let mut jobs = BTreeSet::new();
    for (index, count) in counts.iter().enumerate() {
        let numbers = json(&file(index));
        // The shell's three commands, of which it may execute the last itself.
        let forks = numbers["sched"]["forks"].as_u64().unwrap();
        assert!((count + 2..=count + 3).contains(&forks), "{forks} for {count}: {numbers}");
        let job = numbers["job"]["job"].as_str().unwrap().to_owned();
        let its = text.lines().filter(|line| line.contains(&format!(",job={job},")));
        let forks_told: u64 = its.filter_map(|line| field(line, "forks")).sum();
        assert_eq!(forks_told, forks, "{job}");
        jobs.insert(job);
    }
    assert_eq!(jobs.len(), counts.len(), "{jobs:?}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), counts.len(), "a file for each");
}

fn field(line: &str, name: &str) -> Option<u64> {
    let fields = line.strip_prefix("job_sched,")?.split([' ', ',']);
    let mut values = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    values.next()?.trim_end_matches('i').parse().ok()
}

#[test]
fn two_runs_do_not_disturb_each_other() {
    fork_at_once(&[50, 20]);
}

#[test]
fn nor_do_four() {
    fork_at_once(&[5, 300, 17, 80]);
}

#[test]
fn a_run_inside_a_run_is_traced_by_both() {
    let tmp = tempfile::tempdir().unwrap();
    let (outer, inner) = (tmp.path().join("outer"), tmp.path().join("inner"));
    let mut jobtrace = jobtrace();
    jobtrace.arg("--json").arg(&outer).arg("--").arg(crate::program::program());
    jobtrace.args(["run", "--json"]).arg(&inner).args(["--", JOB, "forks", "30"]);
    let ended = end(jobtrace.spawn().unwrap());
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert_eq!(json(&inner)["sched"]["forks"], 30);
    assert!(json(&outer)["sched"]["execs"].as_u64() >= Some(1));
}
