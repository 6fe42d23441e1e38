//! The agent's own intervals while it counts, with as much CPU as its unit gives it.

use std::{fs, thread::sleep, time::Duration};

use jobtrace_tests::{
    agent::Agent, agree::tried_again, own_cgroup::OwnCgroup, rig::mount::Tmpfs, traced::program,
};

use super::{BEGUN, Desk, FILE_OPS, OWNER, Running, Shaped, begun, quiet};

/// `CPUQuota=50%` of the unit, by the kernel's usual period: file, text.
const QUOTAS: [(&str, &str); 2] = [("cpu.cfs_quota_us", "50000"), ("cpu.max", "50000 100000")];

/// The kernel verifies the largest program in one go, for which it takes a second of CPU here, and twice as long within
/// the quota: of intervals of a second, a tenth of which they may be late, one is.
const INTERVAL: &str = "3s";
/// So long after the end of an interval loading goes on beyond the end of the next one.
const BAD_MOMENT: Duration = Duration::from_secs(2);

#[test]
fn the_agent_is_on_time_while_it_loads_and_counts_within_its_units_quota() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = Tmpfs::mount(64 << 20).unwrap();
    let cgroup = OwnCgroup::make("quota", &["cpu"]);
    let mut start = cgroup.inside();
    start.arg(program().unwrap());
    let agent =
        Agent::start_by(start, &format!("hierarchy = {hierarchy:?}\ninterval = {INTERVAL:?}"))
            .unwrap();
    let desk = Desk::of(&agent);
    let job = shaped.job(OWNER, 9_807, "step_0");
    let _sleeper = Running(job.command("sleep").arg("600").spawn().unwrap());
    // Its start is over.
    agent.settle().unwrap();
    let quota = QUOTAS
        .into_iter()
        .find_map(|(name, quota)| Some((cgroup.directory_with(name)?.join(name), quota)));
    let (file, quota) = quota.expect("a CPU controller to hold the agent back with");
    fs::write(&file, quota).unwrap();
    tried_again(|| {
        let round = agent.log().matches(BEGUN).count() + 1;
        let before = agent.settle().unwrap().own("late_intervals");
        sleep(BAD_MOMENT);
        let asked = desk.ask(0, &["9807", "--for", "1h"]);
        begun(&agent, round);
        job.run(&[FILE_OPS, disk.path().to_str().unwrap(), "1"]);
        agent.settle().unwrap();
        drop(asked);
        // What it unloads is told of by the next intervals.
        let points = agent.settle().unwrap();
        let told = loaded_in(&agent);
        eprintln!("loaded in {told}, {before} late before");
        assert_eq!(points.own("late_intervals") - before, 0, "{}", agent.log());
    });
    agent.stop().unwrap();
}

/// What the agent says last of how long it loaded.
fn loaded_in(agent: &Agent) -> String {
    let log = agent.log();
    log.rsplit("; loaded in ").next().unwrap().lines().next().unwrap().to_owned()
}
