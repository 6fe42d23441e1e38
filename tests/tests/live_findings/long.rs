//! Rules for what a scheduler is asked for are silent about jobs of less than five minutes: so all of their jobs run
//! at once, for a little longer, most of the time asleep.

use std::{
    process::Child,
    thread::sleep,
    time::{Duration, Instant, SystemTime},
};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::Agent,
    disk::RamDisk,
    findings::said,
    rig::shaped::{Directories, Shaped},
};

use super::gpu::{driver, with};

pub const RULES: [&str; 5] =
    ["time_limit", "slowest_node", "memory_unused", "time_unused", "gpu_too_large"];

const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const ALTERNATE: &str = env!("CARGO_BIN_EXE_alternate");
const USER: u32 = 65_534;
const MIB: u64 = 1 << 20;
/// A little more than the rules' five minutes.
const SECONDS: u64 = 306;

/// Starts `script` in the cgroup of a job as Slurm does, with `asked` in its environment.
fn start(at: &Directories, job: u32, script: &str, asked: &[(&str, u64)]) -> Child {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let mut command = at.command("sh");
    command.args(["-c", script]).env("SLURM_JOB_ID", job.to_string());
    command.env("SLURM_JOB_UID", USER.to_string()).env("SLURM_JOB_START_TIME", now.to_string());
    for (name, value) in asked {
        // A limit ends so long after the start.
        let value = if *name == "SLURM_JOB_END_TIME" { now + value } else { *value };
        command.env(name, value.to_string());
    }
    command.spawn().unwrap()
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    // Where memory is counted, and the CPU time of tasks.
    let is_v1 = Hierarchies::read().unwrap().v1("memory").is_some();
    let (hierarchy, controllers) =
        if is_v1 { ("memory", &["memory", "cpuacct"][..]) } else { ("v2", &[""][..]) };
    let (fake, disks) = (driver(), [0, 1].map(|_| RamDisk::new(64 * MIB)));
    let folder = fake.folder().to_str().unwrap().to_owned();
    let shaped = Shaped::make(controllers);
    let agent = Agent::start_by(with(&fake), &format!("hierarchy = {hierarchy:?}")).unwrap();
    let begin = Instant::now();
    let idle = format!("exec sleep {SECONDS}");
    let holds =
        format!("exec python3 -c 'import time; x = b\"x\" * (1200 << 20); time.sleep({SECONDS})'");
    // Before all others, so that a busy machine does not make it longer.
    let computes = |ms: u64| format!("chrt --rr 1 {SPIN} alone {ms} & sleep {SECONDS}; wait");
    let gpu = |at: usize, percent: u32| {
        format!("exec {ALTERNATE} {folder} {at} {} {SECONDS} {percent} sleep", disks[at].path())
    };
    const MEMORY: &str = "SLURM_MEM_PER_NODE";
    const LIMIT: &str = "SLURM_JOB_END_TIME";
    // Ended a little after its limit, or long before: a job ends with its cgroup.
    for (job, limit) in [(107, 3), (108, 3600)] {
        let place = shaped.job(USER, job, "step_0");
        let mut child = start(&place, job, "exec sleep 5", &[(LIMIT, limit)]);
        assert!(child.wait().unwrap().success());
        shaped.remove_job(USER, job);
    }
    let mut running = Vec::new();
    for (job, step, script, asked) in [
        // Asked for much more than it needs, and the other for about that.
        (101, "step_0", idle.clone(), &[(MEMORY, 8192), (LIMIT, 3600)][..]),
        (102, "step_0", holds, &[(MEMORY, 1500), (LIMIT, 400)]),
        // One task computes, or both do.
        (103, "step_0/task_0", computes(32_000), &[]),
        (103, "step_0/task_1", computes(100), &[]),
        (104, "step_0/task_0", computes(32_000), &[]),
        (104, "step_0/task_1", computes(32_000), &[]),
        // A GPU that is hardly used, and one that is.
        (105, "step_0", gpu(0, 10), &[("SLURM_JOB_GPUS", 0)]),
        (106, "step_0", gpu(1, 40), &[("SLURM_JOB_GPUS", 1)]),
    ] {
        let place = shaped.job(USER, job, step);
        running.push(start(&place, job, &script, asked));
    }
    for child in &mut running {
        assert!(child.wait().unwrap().success());
    }
    assert!(begin.elapsed() > Duration::from_secs(SECONDS));
    (101..=106).for_each(|job| shaped.remove_job(USER, job));
    sleep(Duration::from_secs(2));
    let (_, records) = agent.stop_with_records().unwrap();
    let said = |job: u32| {
        let of_job = records.iter().filter(|record| record.job().job == job.to_string());
        let said = said(of_job.cloned().collect());
        eprintln!("{job}: {said:?}");
        said
    };
    for (rule, speaks, silent) in [
        ("memory_unused", 101, 102),
        ("time_unused", 101, 102),
        ("slowest_node", 103, 104),
        ("gpu_too_large", 105, 106),
        ("time_limit", 107, 108),
    ] {
        assert!(RULES.contains(&rule));
        let (one, other) = (said(speaks), said(silent));
        assert!(one.contains(rule), "{rule} is silent: {one:?}");
        assert!(!other.contains(rule), "{rule} speaks of the other: {other:?}");
    }
}
