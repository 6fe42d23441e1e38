//! A job that does nothing, whose files are not read then, and one that waits without a task that runs.

use std::{fs, time::Duration};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::Agent,
    agree::tried_again,
    rig::fuse::{FILE, Fuse, Request},
};

use super::shaped::Shaped;

const WAIT: &str = env!("CARGO_BIN_EXE_wait");
const S: u64 = 1_000_000_000;
/// How long the file server takes, s.
const SERVER_S: u64 = 4;

#[test]
fn a_wait_amid_nothing_is_told_in_its_seconds() {
    tried_again(|| {
        let fuse = Fuse::mount(&[(Request::Read, Duration::from_secs(SERVER_S))]).unwrap();
        let memory = Hierarchies::read().unwrap().v1("memory").map(|_| "memory");
        let shaped = Shaped::make(&[""].into_iter().chain(memory).collect::<Vec<_>>());
        let agent = Agent::start("hierarchy = \"v2\"").unwrap();
        let step = shaped.job(0, 91, "step_0");
        let job = step.0[0].parent().unwrap();
        let stalled_ns = || {
            let text = fs::read_to_string(job.join("io.pressure")).unwrap();
            let total = text.lines().next().unwrap().rsplit('=').next().unwrap();
            total.parse::<u64>().unwrap() * 1000
        };
        // Long enough that it is told without a reading, before and after.
        let script = format!("sleep 5; {WAIT} fault 1 1 {}; sleep 5", fuse.file(FILE));
        step.run(&["sh", "-c", &script]);
        let truth = stalled_ns();
        assert!((SERVER_S * S..(SERVER_S + 2) * S).contains(&truth), "{truth}");
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
