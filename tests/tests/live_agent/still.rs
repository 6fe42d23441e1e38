//! A job that does nothing, whose files are not read then, and one that waits without a task that runs.

use std::{fs, path::Path, time::Duration};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::Agent,
    agree::tried_again,
    rig::{
        fuse::{FILE, Fuse, Request},
        shaped::Running,
    },
};

use super::shaped::Shaped;

const WAIT: &str = env!("CARGO_BIN_EXE_wait");
const S: u64 = 1_000_000_000;
/// How long the file server takes, s.
const SERVER_S: u64 = 4;

/// A file server that takes so long, directories that memory is charged to, and an agent.
fn begin() -> (Fuse, Shaped, Agent) {
    let fuse = Fuse::mount(&[(Request::Read, Duration::from_secs(SERVER_S))]).unwrap();
    let memory = Hierarchies::read().unwrap().v1("memory").map(|_| "memory");
    let shaped = Shaped::make(&[""].into_iter().chain(memory).collect::<Vec<_>>());
    (fuse, shaped, Agent::start("hierarchy = \"v2\"").unwrap())
}

/// The kernel counts the pressure of each CPU apart, and so up to some ms less than the task waited.
fn assert_waited(truth_ns: u64) {
    let (least, most) = (SERVER_S * S - S / 20, (SERVER_S + 2) * S);
    assert!((least..most).contains(&truth_ns), "{truth_ns}");
}

/// How long some task of a cgroup waited for I/O.
fn io_stalled_ns(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("io.pressure")).unwrap();
    let total = text.lines().next().unwrap().rsplit('=').next().unwrap();
    total.parse::<u64>().unwrap() * 1000
}

#[test]
fn a_wait_amid_nothing_is_told_in_its_seconds() {
    tried_again(|| {
        let (fuse, shaped, agent) = begin();
        let step = shaped.job(0, 91, "step_0");
        // Long enough that it is told without a reading, before and after.
        let script = format!("sleep 8; {WAIT} fault 1 1 {}; sleep 8", fuse.file(FILE));
        step.run(&["sh", "-c", &script]);
        let truth = io_stalled_ns(step.0[0].parent().unwrap());
        assert_waited(truth);
        let points = agent.stop().unwrap();
        shaped.remove_job(0, 91);
        let mut told = Vec::new();
        for point in points.of("91").filter(|point| point.measurement == "job_memory") {
            assert!(point.number("current_bytes").is_some(), "{point:?}");
            told.push(point.number("io_some_stall_ns").expect("known in each interval"));
        }
        let sum: u64 = told.iter().sum();
        assert!(sum.abs_diff(truth) < S / 100, "{sum} of {truth}: {told:?}");
        // Within the seconds that the server took and those that it began and ended in, not all at the end.
        assert!(told.iter().all(|ns| *ns < S * 3 / 2), "{told:?}");
        let first = told.iter().position(|ns| *ns > 0).unwrap();
        let last = told.iter().rposition(|ns| *ns > 0).unwrap();
        assert!(first >= 3 && last + 3 < told.len(), "{told:?}");
        assert!(last - first <= SERVER_S as usize, "{told:?}");
    });
}

/// A session's files count what its containers wait, who are jobs of their own.
#[test]
fn what_a_job_inside_waits_is_told_in_its_seconds() {
    tried_again(|| {
        let (fuse, shaped, agent) = begin();
        let path = "user.slice/user-0.slice/session-c97.scope";
        let session = shaped.directory(path);
        let container = shaped.directory(format!("{path}/libpod-{}.scope", "ab".repeat(32)));
        let mut shell = Running(session.command("sleep").arg("600").spawn().unwrap());
        // In a process that is there already, and has memory enough: nothing else shows that it waits.
        let script = format!(
            "import os, time; file = os.open('{}', 0); time.sleep(8); os.read(file, 1); time.sleep(8)",
            fuse.file(FILE)
        );
        container.run(&["python3", "-c", &script]);
        let truth = io_stalled_ns(&session.0[0]);
        assert_waited(truth);
        let points = agent.stop().unwrap();
        shell.0.kill().unwrap();
        shell.0.wait().unwrap();
        let of_session = points.of("c97").filter(|point| point.measurement == "job_memory");
        let told: Vec<u64> =
            of_session.map(|point| point.number("io_some_stall_ns").unwrap()).collect();
        let sum: u64 = told.iter().sum();
        assert!(sum.abs_diff(truth) < S / 100, "{sum} of {truth}: {told:?}");
        assert!(told.iter().all(|ns| *ns < S * 3 / 2), "{told:?}");
    });
}
