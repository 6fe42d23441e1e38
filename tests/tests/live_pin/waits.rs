//! Waits for file systems across two agents that see other mounts than each other.

use std::{process::Command, thread::sleep, time::Duration};

use jobtrace_tests::{
    agree::Agreement,
    rig::{
        PATIENCE,
        fuse::{FILE, Fuse, Request},
        wait_for,
    },
    traced::program,
};
use tracer_ebpf::tables::wait::FILE_CALLS;

use crate::site::{Site, kill, sums, terminate};

const WAIT: &str = env!("CARGO_BIN_EXE_wait");
/// More than an interval of the agent's.
const TICK: Duration = Duration::from_millis(1500);
const JOB: &str = "reads";

#[test]
fn waits_for_two_file_systems_that_look_alike_are_told_once() {
    let site = Site::new();
    // In a mount namespace of its own it does not see what is mounted from now on.
    let mut blind = Command::new("unshare");
    blind.args(["--mount", "--propagation", "private"]).arg(program().expect("jobtrace"));
    let mut agent = site.agent_by(blind);
    let late = [(Request::Read, Duration::from_millis(10))];
    let [one, two] = [(); 2].map(|()| Fuse::mount(&late).expect("FUSE"));
    let job = site.directory(JOB);
    // Until it is known whose it is it has a slot of its own.
    sleep(TICK);
    let read = |fuse: &Fuse, count: &str| {
        job.run(&[WAIT, "read", count, "10", &fuse.file(FILE)]);
    };
    read(&one, "7");
    read(&two, "5");
    let told = || sums(&site.lines(), "job_sched", "blocked_read_waits").get(JOB).copied();
    wait_for("both are told", PATIENCE, || told().filter(|told| *told >= 11)).expect("an interval");
    kill(&mut agent);
    read(&two, "3");
    // This one sees both.
    let agent = site.agent();
    read(&one, "2");
    sleep(TICK);
    terminate(agent);
    assert!(site.log().contains("took over"), "{}", site.log());

    let lines = site.lines();
    let of = |measurement: &str, field: &str| {
        sums(&lines, measurement, field).get(JOB).copied().unwrap_or(0)
    };
    let mut agree = Agreement::new();
    for (what, filed) in [("waits", "blocked_ns_count"), ("ns", "blocked_ns_sum")] {
        let calls = FILE_CALLS.map(|call| of("job_sched", &format!("blocked_{call}_{what}")));
        let (least, slept) =
            (calls.iter().sum::<u64>(), of("job_sched", &format!("sleep_other_{what}")));
        agree.between(&format!("job_wait, {filed}"), of("job_wait", filed), least..=least + slept);
    }
    agree.between("reads that were waited for", of("job_sched", "blocked_read_waits"), 15..=17 * 3);
    agree.end();
}
