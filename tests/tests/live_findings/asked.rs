//! Rules for what a scheduler is asked for are silent about jobs of less than five minutes: so all of their jobs run
//! at once, for a little longer, asleep for most of the time, and so beside the other tests.

use std::{
    process::Child,
    time::{Duration, Instant, SystemTime},
};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    agent::Agent,
    disk::RamDisk,
    findings::said,
    rig::shaped::{Directories, Shaped},
    turns::turn,
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
const MEMORY: &str = "SLURM_MEM_PER_NODE";
const LIMIT: &str = "SLURM_JOB_END_TIME";
const GPUS: &str = "SLURM_JOB_GPUS";

/// Starts `script` in the cgroup of a job as Slurm does, with `asked` in its environment.
fn start(at: &Directories, job: u32, script: &str, asked: &[(&str, u64)]) -> Child {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let mut command = at.command("sh");
    command.args(["-c", script]).env("SLURM_JOB_ID", job.to_string());
    command.env("SLURM_JOB_UID", USER.to_string()).env("SLURM_JOB_START_TIME", now.to_string());
    for (name, value) in asked {
        // A limit ends so long after the start.
        let value = if *name == LIMIT { now + value } else { *value };
        command.env(name, value.to_string());
    }
    command.spawn().unwrap()
}

fn all_end_well(children: Vec<Child>) {
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    // Others' would be slower beside what is computed first.
    let computing = turn();
    // Where memory is counted, and the CPU time of tasks.
    let is_v1 = Hierarchies::read().unwrap().v1("memory").is_some();
    let (hierarchy, controllers) =
        if is_v1 { ("memory", &["memory", "cpuacct"][..]) } else { ("v2", &[""][..]) };
    let (fake, disks) = (driver(), [0, 1].map(|_| RamDisk::new(64 * MIB)));
    let folder = fake.folder().to_str().unwrap().to_owned();
    let shaped = Shaped::make(controllers);
    let agent = Agent::start_by(with(&fake), &format!("hierarchy = {hierarchy:?}")).unwrap();
    let begin = Instant::now();
    let job = |job, step, script: &str, asked: &[(&str, u64)]| {
        start(&shaped.job(USER, job, step), job, script, asked)
    };
    // Ended a little after its limit, or long before: a job ends with its cgroup.
    let limited = [(107, 3), (108, 3600)]
        .map(|(id, limit)| job(id, "step_0", "exec sleep 5", &[(LIMIT, limit)]));
    all_end_well(limited.into());
    [107, 108].into_iter().for_each(|job| shaped.remove_job(USER, job));

    let idle = format!("exec sleep {SECONDS}");
    let holds =
        format!("exec python3 -c 'import time; x = b\"x\" * (900 << 20); time.sleep({SECONDS})'");
    let gpu = |at: usize, percent: u32| {
        format!("exec {ALTERNATE} {folder} {at} {} {SECONDS} {percent} sleep", disks[at].path())
    };
    let running = vec![
        // Asked for much more than it needs, and the other for about that.
        job(101, "step_0", &idle, &[(MEMORY, 8192), (LIMIT, 3600)]),
        job(102, "step_0", &holds, &[(MEMORY, 1100), (LIMIT, 400)]),
        // A GPU that is hardly used, and one that is.
        job(105, "step_0", &gpu(0, 5), &[(GPUS, 0)]),
        job(106, "step_0", &gpu(1, 40), &[(GPUS, 1)]),
        // One task computes, or both do.
        job(103, "step_0/task_0", &idle, &[]),
        job(103, "step_0/task_1", &idle, &[]),
        job(104, "step_0/task_0", &idle, &[]),
        job(104, "step_0/task_1", &idle, &[]),
    ];
    let tasks = [(103, 0, 32_000), (103, 1, 100), (104, 0, 32_000), (104, 1, 32_000)];
    let computes = |(id, task, ms)| {
        let place = shaped.job(USER, id, &format!("step_0/task_{task}"));
        start(&place, id, &format!("exec {SPIN} alone {ms} >/dev/null"), &[])
    };
    all_end_well(tasks.map(computes).into());
    eprintln!("computed for {:?}", begin.elapsed());
    drop(computing);
    all_end_well(running);
    assert!(begin.elapsed() > Duration::from_secs(SECONDS));
    (101..=106).for_each(|job| shaped.remove_job(USER, job));
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
