//! Programs executed in jobs: what they tell is found, and the agent does not pay for each.

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    agent::{Agent, Points},
    agree::Agreement,
};

use super::{
    MOMENT,
    life::quiet,
    shaped::{Directories, Running, Shaped},
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

/// Jobs of root's that no environment belongs to, and programs that each executes a second.
const JOBS: std::ops::Range<u32> = 10_000..10_025;
const PER_SECOND: u32 = 20;
const SPAN: Duration = Duration::from_secs(10);
/// Unoptimised code on a busy machine. To ask each program takes five times as long.
const MOST_NS: u64 = if cfg!(debug_assertions) { 80_000 } else { 20_000 };

#[test]
fn programs_of_jobs_whose_owner_stays_unknown_cost_next_to_nothing() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let jobs: Vec<_> = JOBS.map(|job| shaped.job(0, job, "")).collect();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let cpu_ns = || agent.settle().unwrap().own("cpu_ns");
    let begin_ns = cpu_ns();
    thread::sleep(SPAN);
    let idle_ns = cpu_ns() - begin_ns;
    let per_second = PER_SECOND.to_string();
    let start = |directories: &Directories| {
        Running(directories.command(TEST_JOB).args(["execs", &per_second]).spawn().unwrap())
    };
    let begin_ns = cpu_ns();
    let begin = Instant::now();
    let running: Vec<_> = jobs.iter().map(start).collect();
    thread::sleep(SPAN);
    let busy_ns = cpu_ns() - begin_ns;
    drop(running);
    let ran_s = begin.elapsed().as_secs() + 1;
    let points = agent.stop().unwrap();
    let execs: u64 = JOBS.map(|job| points.sum(&job.to_string(), "job_sched", "execs")).sum();
    // And the one that executes the others.
    let most = (u64::from(PER_SECOND) * ran_s + 1) * jobs.len() as u64;
    eprintln!("{execs} programs; the agent's CPU: {busy_ns} ns, {idle_ns} ns without them");
    let mut agree = Agreement::new();
    agree.between("programs", execs, most / 3..=most);
    let each_ns = busy_ns.saturating_sub(idle_ns) / execs;
    agree.between("ns of the agent for each", each_ns, 0..=MOST_NS);
    agree.exact("events lost", points.own("dropped_cgroup_event"), 0);
    agree.end();
}

#[test]
fn a_users_programs_are_found_behind_many_of_the_schedulers() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    shaped.directory("slurm/uid_0");
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let named =
        |job: &str| [("SLURM_JOB_ID", job.to_owned()), ("SLURM_JOB_NAME", format!("n{job}"))];
    let many = "i=0; while [ $i -lt 40 ]; do true >/dev/null; /bin/true; i=$((i+1)); done;";
    let start = |number: u32, then: &str| {
        let job = shaped.job(0, number, "step_0");
        let mut command = job.command("sh");
        command.args(["-c", &format!("{many} {then}")]).stdin(Stdio::null());
        Running(command.spawn().unwrap())
    };
    // One that goes on for long is executed while nobody listens, another once somebody does again.
    let names = |job: &str| named(job).map(|(name, value)| format!("{name}={value}")).join(" ");
    let _early = start(10_101, &format!("exec env {} sleep 607", names("10101")));
    let _late = start(10_102, &format!("sleep 12; env {} sleep 1; sleep 607", names("10102")));
    for job in ["10101", "10102"] {
        let name = |points: &Points| points.fact(job, "name");
        let found = agent.wait_for(&format!("the name of {job}"), 2 * MOMENT, name).unwrap();
        assert_eq!(found, format!("n{job}"));
    }
}
