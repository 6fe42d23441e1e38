//! The agent with jobs of Slurm's shape: each job's numbers are the kernel's and nobody else's, jobs
//! of milliseconds count, and all jobs and `_system` together are the node.

use std::{fs, ops::RangeInclusive, thread, time::Duration};

use jobtrace_tests::{
    account::Node,
    agent::Points,
    agree::{Agreement, MS},
    disk::RamDisk,
};

use super::{Found, workload};
use crate::jobs::{self, Ran};

const MIB: u64 = 1 << 20;
const BYTES: u64 = 64 << 10;
/// Transfers of a round of `mixed`, each way.
const TRANSFERS: u64 = 32;

/// A job of everything, one of forks, one of direct reads, and one that rests, all at once.
pub fn jobs_agree() -> Found {
    let disks =
        [RamDisk::new(128 * 4096), RamDisk::new((TRANSFERS + 1) * BYTES), RamDisk::new(4 * MIB)];
    let [pages, file, data] = disks.each_ref().map(RamDisk::path);
    let place = jobs::place();
    let agent = jobs::agent().unwrap();
    let all = [71, 72, 73, 74].map(|job| jobs::make(&place, job).unwrap());
    let [mixed, breed, amounts, rest] = ["mixed", "breed", "amounts", "rest"].map(workload);
    let works: [&[&str]; 4] = [
        &[&mixed, "2", &pages, &file],
        &[&breed, "forks", "50"],
        &[&amounts, &data, "4", "200", "1000"],
        &[&rest, "sleep", "20", "50"],
    ];
    let ran = thread::scope(|scope| {
        let one = |(job, words)| scope.spawn(move || jobs::run(job, words));
        let handles: Vec<_> = all.iter().zip(works).map(one).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect::<Vec<_>>()
    });
    (71..75).for_each(|job| place.remove_job(0, job));
    let points = agent.stop().unwrap();
    let mut agree = Agreement::new();
    for (job, ran) in ["71", "72", "73", "74"].into_iter().zip(&ran) {
        agrees(&mut agree, &points, job, ran);
    }
    let mixed = &ran[0].report;
    let forks = mixed.fact("forks") + mixed.fact("children");
    // Where tracepoints can be preempted (Linux 7.2), two tasks may meet in one program on a CPU: the
    // kernel skips the second, which is told as bpf_missed. That many may be short, no more.
    let skipped: u64 = points.0.iter().filter_map(|point| point.number("bpf_missed")).sum();
    for (job, forks) in [("71", forks), ("72", 50), ("73", 1), ("74", 0)] {
        for (field, truth) in [("forks", forks), ("execs", 1)] {
            let ours = points.sum(job, "job_sched", field);
            agree.between(&format!("{job} {field}"), ours, truth.saturating_sub(skipped)..=truth);
        }
    }
    let direct = mixed.fact("direct") * TRANSFERS;
    let of_file = points.only(|point| point.tag("device") == disks[1].name());
    agree.exact("71 bytes read", of_file.block("71", "read", "bytes"), direct * BYTES);
    let written = (direct + mixed.fact("buffered")) * BYTES;
    agree.exact("71 bytes written", points.block("71", "write", "bytes"), written);
    agree.exact("73 bytes read", points.block("73", "read", "bytes"), 4 * MIB);
    for quiet in ["72", "74"] {
        let bytes = points.block(quiet, "read", "bytes") + points.block(quiet, "write", "bytes");
        agree.exact(&format!("{quiet} bytes of block I/O"), bytes, 0);
    }
    // Each job's process is the guest's own program first, outside the job.
    let execs = points.total("job_sched", "execs");
    agree.between("execs of the node", execs, 8_u64.saturating_sub(skipped)..=8);
    agree.between("runs that the kernel skipped", skipped, 0..=2);
    dropped_nothing(&mut agree, &points, works.len() as u64);
    Ok(agree)
}

/// A process tree's own account, and what the points say of its job.
fn agrees(agree: &mut Agreement, points: &Points, job: &str, ran: &Ran) {
    let mut exact = |what: &str, field: (&str, &str), truth: RangeInclusive<u64>| {
        agree.between(&format!("{job} {what}"), points.sum(job, field.0, field.1), truth);
    };
    let sched = "job_sched";
    exact("switches_voluntary", (sched, "switches_voluntary"), ran.range(|all| all.voluntary));
    let truth = ran.range(|all| all.involuntary);
    exact("switches_involuntary", (sched, "switches_involuntary"), truth);
    let truth = ran.range(|all| all.run_delay_ns);
    exact("run_queue_wait_ns", (sched, "run_queue_wait_ns_sum"), truth);
    exact("migrations", (sched, "migrations"), ran.range(|all| all.migrations));
    // What runs at a reading is known by the clock, interrupts included, and never taken back.
    let truth = ran.range(|all| all.on_cpu_ns);
    let most = truth.end() + truth.end() / 100 + 5 * MS;
    exact("on_cpu_ns", (sched, "on_cpu_ns"), *truth.start()..=most);
    exact("minor", ("job_fault", "minor"), ran.faults(|all| all.minor));
    exact("major", ("job_fault", "major"), ran.faults(|all| all.major));
}

/// But that each of as many tasks as `entered` a job may have been blocked in its move there: that wait is neither's.
fn dropped_nothing(agree: &mut Agreement, points: &Points, entered: u64) {
    let own = points.0.iter().filter(|point| point.measurement == "jobtrace_self");
    let names: std::collections::BTreeSet<&String> = own
        .flat_map(|point| point.fields.keys())
        .filter(|name| name.starts_with("dropped_"))
        .collect();
    for name in names {
        let most = if name == "dropped_wait_cell" { entered } else { 0 };
        agree.between(name, points.own(name), 0..=most);
    }
}

/// Each has one process, which ends at once.
pub fn short_jobs() -> Found {
    const JOBS: std::ops::Range<u32> = 200..220;
    let place = jobs::place();
    let breed = workload("breed");
    let agent = jobs::agent().unwrap();
    for job in JOBS {
        jobs::make(&place, job).unwrap().run(&[&breed]);
        place.remove_job(0, job);
    }
    let points = agent.stop().unwrap();
    let mut agree = Agreement::new();
    let names: Vec<String> = JOBS.map(|job| job.to_string()).collect();
    let with = |field: &str, wanted: fn(u64) -> bool| {
        names.iter().filter(|job| wanted(points.sum(job, "job_sched", field))).count() as u64
    };
    agree.exact("jobs with one exec", with("execs", |execs| execs == 1), names.len() as u64);
    agree.exact("jobs with time on CPU", with("on_cpu_ns", |ns| ns > 0), names.len() as u64);
    let ended = names.iter().filter(|job| points.fact(job, "end").is_some()).count() as u64;
    agree.exact("jobs told as ended", ended, names.len() as u64);
    dropped_nothing(&mut agree, &points, names.len() as u64);
    Ok(agree)
}

/// A job's child that wants more than the job's limit, and the job gone before the next reading.
pub fn out_of_memory() -> Found {
    killed(false)
}

/// The same, and the job stays until it was read.
pub fn out_of_memory_read() -> Found {
    killed(true)
}

fn killed(stays: bool) -> Found {
    let place = jobs::place();
    let agent = jobs::agent().unwrap();
    let job = jobs::make(&place, 300).unwrap();
    let limit = |name: &str| job.0.iter().map(|at| at.join(name)).find(|file| file.exists());
    let Some(file) = limit("memory.max").or_else(|| limit("memory.limit_in_bytes")) else {
        return Err("this kernel has no memory controller of cgroup v1: nothing is limited".into());
    };
    fs::write(file, (32 * MIB).to_string()).unwrap();
    let touch = workload("touch");
    let beyond = (128 * MIB).to_string();
    let status = job.command(&touch).args(["beyond", &beyond]).status().unwrap();
    if stays {
        agent.settle().unwrap();
    }
    place.remove_job(0, 300);
    let points = agent.stop().unwrap();
    let mut agree = Agreement::new();
    agree.exact("status, 128 and SIGKILL", status.code().unwrap_or(-1) as u64, 137);
    // Without a hook the cgroup's file tells, as long as it is there.
    let last = points.of("300").rfind(|point| point.measurement == "job_fault");
    let known = last.is_some_and(|point| point.number("oom_kills").is_some());
    if !known && points.sum("300", "job_fault", "oom_kills") == 0 {
        return Err("oom_kills is unknown: no hook and no file of the cgroup told".into());
    }
    // The kernel tells it when the directory goes. It charges in batches, beyond the limit too.
    let peaks = points.of("300").filter_map(|point| point.number("peak_bytes"));
    agree.between("peak_bytes", peaks.max().unwrap_or(0), 31 * MIB..=33 * MIB);
    agree.exact("oom_kills", points.sum("300", "job_fault", "oom_kills"), 1);
    agree.exact("oom_kills of the node", points.sum("_system", "job_fault", "oom_kills"), 0);
    Ok(agree)
}

/// Forks and time on CPU of all jobs and `_system`, against the node's own totals: read within and
/// around the time in which the agent counts.
pub fn conservation() -> Found {
    let place = jobs::place();
    let breed = workload("breed");
    let spin = workload("spin");
    let outer = Node::read("");
    let agent = jobs::agent().unwrap();
    let inner = Node::read("");
    let job = jobs::make(&place, 400).unwrap();
    job.run(&[&breed, "forks", "40"]);
    job.run(&[&spin, "crowd", "4", "300"]);
    place.remove_job(0, 400);
    thread::sleep(Duration::from_millis(1500));
    let inside = Node::read("");
    let points = agent.stop().unwrap();
    let outside = Node::read("");
    let mut agree = Agreement::new();
    let forks = points.total("job_sched", "forks");
    let bounds = inside.forks - inner.forks..=outside.forks - outer.forks;
    agree.between("forks, processes of /proc/stat", forks, bounds);
    agree.exact("forks of the job", points.sum("400", "job_sched", "forks"), 44);
    let switches = points.total("job_sched", "switches_voluntary")
        + points.total("job_sched", "switches_involuntary");
    let own = points.sum("400", "job_sched", "switches_voluntary");
    // The kernel counts the idle tasks' switches too.
    agree.between(
        "switches, ctxt of /proc/stat",
        switches,
        own..=outside.switches - outer.switches,
    );
    if let (Some(first), Some(last)) = (inner.on_cpu_ns, inside.on_cpu_ns) {
        let most = outside.on_cpu_ns.unwrap() - outer.on_cpu_ns.unwrap();
        let on_cpu = points.total("job_sched", "on_cpu_ns");
        agree.between("on_cpu_ns, cpuacct of the root", on_cpu, last - first..=most);
    }
    Ok(agree)
}
