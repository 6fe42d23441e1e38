//! Slurm's jobs on both kinds of cgroups, each seen by two agents: one by job, one by step. Slurm has no
//! cgroups for block I/O, so that is `_system`'s.

use std::{collections::BTreeSet, fs, io::Write};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    account::Report,
    agent::{Agent, Points},
    agree::{Agreement, MS},
    disk::RamDisk,
    rig::{
        slurm::{JobId, Mode, Slurm},
        wait_for, workload,
    },
};

use super::MOMENT;

const AMOUNTS: &str = env!("CARGO_BIN_EXE_amounts");
const BREED: &str = env!("CARGO_BIN_EXE_breed");
const TOUCH: &str = env!("CARGO_BIN_EXE_touch");
const MIB: u64 = 1 << 20;
/// What the step daemon's child does in the job before it is the user's program, for each step.
const SETTING_UP_NS: u64 = 40 * MS;

/// The jobs of a test.
struct Jobs {
    steps: JobId,
    array: JobId,
    cancelled: JobId,
    greedy: Option<JobId>,
}

/// What is said of them.
struct Said {
    by_job: Points,
    by_step: Points,
}

impl Jobs {
    fn submit(slurm: &Slurm, disk: &str) -> Self {
        let fifo = slurm.folder().join("go");
        let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(status.success());
        let script = format!(
            "srun --overlap {AMOUNTS} {disk} 4 200 1000\nsrun --overlap {BREED} forks 50\n\
             echo parked\nread x < {}",
            fifo.display()
        );
        let named = ["--job-name=a b,c=d", "--account=physics", "--export=ALL,SLURM_JOB_GPUS=3"];
        let steps = slurm.sbatch(&script, &named).unwrap();
        let script = format!("{BREED} forks $((10 + SLURM_ARRAY_TASK_ID))\nexec sleep 0.7");
        let array = slurm.sbatch(&script, &["--array=0-2"]).unwrap();
        let cancelled = slurm.sbatch("exec sleep 601", &["--uid=65534"]).unwrap();
        let greedy = (slurm.mode() == Mode::V1).then(|| {
            let script = format!("exec {TOUCH} beyond {}", 256 << 20);
            slurm.sbatch(&script, &["--mem=64"]).unwrap()
        });
        Self { steps, array, cancelled, greedy }
    }
}

fn one_mode(mode: Mode, hierarchies: [&str; 2]) {
    let slurm = Slurm::start(mode).unwrap();
    let disk = RamDisk::new(4 * MIB);
    let [by_job, by_step] =
        [(hierarchies[0], false), (hierarchies[1], true)].map(|(name, steps)| {
            Agent::start(&format!("hierarchy = {name:?}\nsteps = {steps}")).unwrap()
        });
    let jobs = Jobs::submit(&slurm, &disk.path());
    wait_for("the steps' end", MOMENT, || {
        slurm.output(jobs.steps).ok()?.contains("parked").then_some(())
    })
    .unwrap();
    let mut agree = Agreement::new();
    let least = slurm.usage_ns(jobs.steps).unwrap();
    let so_far = by_job.settle().unwrap();
    let most = slurm.usage_ns(jobs.steps).unwrap();
    let number = jobs.steps.to_string();
    let ours = so_far.sum(&number, "job_sched", "on_cpu_ns");
    // The batch script and two steps.
    agree.near("on_cpu_ns of the job, its cgroup's", ours, least..=most, 1, 3 * SETTING_UP_NS);
    // sstat's whole seconds of the steps that run still are an order of magnitude.
    let known: u64 = slurm.sstat(jobs.steps).unwrap().iter().map(|used| used.cpu_s).sum();
    assert!(ours / 1_000_000_000 + 2 >= known, "sstat says {known} s, we {ours} ns");
    assert_eq!(so_far.fact(&number, "end"), None, "it runs still");

    slurm.scancel(jobs.cancelled).unwrap();
    fs::File::options()
        .write(true)
        .open(slurm.folder().join("go"))
        .unwrap()
        .write_all(b"x\n")
        .unwrap();
    for job in [Some(jobs.steps), Some(jobs.array), Some(jobs.cancelled), jobs.greedy]
        .into_iter()
        .flatten()
    {
        slurm.wait(job).unwrap();
        let gone = || slurm.job_cgroups(job).is_empty().then_some(());
        wait_for("a job's last directory", MOMENT, gone).unwrap();
    }
    let report = workload::report(&first_report(&slurm.output(jobs.steps).unwrap())).unwrap();
    let said = Said { by_job: by_job.stop().unwrap(), by_step: by_step.stop().unwrap() };
    numbers(&mut agree, &slurm, &jobs, &said, &report, &disk);
    facts(&slurm, &jobs, &said);
    agree.end();
}

/// The output up to the second report.
fn first_report(printed: &str) -> String {
    let second = printed.rfind(r#"{"begin":"#).unwrap();
    printed[..second].to_owned()
}

fn numbers(
    agree: &mut Agreement,
    slurm: &Slurm,
    jobs: &Jobs,
    said: &Said,
    report: &Report,
    disk: &RamDisk,
) {
    let Said { by_job, by_step } = said;
    let steps = jobs.steps.to_string();
    let of_step = |step: &str| by_step.only(|point| point.tag("step") == step);
    // Slurm's daemon of the step is in the job on v2.
    let daemon = if slurm.mode() == Mode::V2 { 4 } else { 1 };
    let amounts = of_step("0");
    let sched = |field: &str| amounts.sum(&steps, "job_sched", field);
    let (low, high) = report.range(|all| all.on_cpu_ns).into_inner();
    agree.between(
        "step 0 on_cpu_ns",
        sched("on_cpu_ns"),
        low * 99 / 100..=high * 101 / 100 + daemon * SETTING_UP_NS,
    );
    let (low, high) = report.range(|all| all.run_delay_ns).into_inner();
    // Who sets the step up waits too, as long as the node is busy.
    let busy = high + 20 * daemon * SETTING_UP_NS;
    agree.between(
        "step 0 run_queue_wait_ns",
        sched("run_queue_wait_ns_sum"),
        low * 98 / 100..=high * 102 / 100 + busy,
    );
    let (low, high) = report.range(|all| all.minor).into_inner();
    let minor = amounts.sum(&steps, "job_fault", "minor");
    agree.between("step 0 minor", minor, low..=high + 4000 * daemon);
    let forks = |points: &Points, job: &str| points.sum(job, "job_sched", "forks");
    agree.between("step 0 forks", forks(&amounts, &steps), 1..=1 + 10 * daemon);
    agree.between("step 1 forks", forks(&of_step("1"), &steps), 50..=50 + 10 * daemon);
    let series = by_step.tags(&steps, "job_sched", "step");
    for step in ["0", "1", "batch", "extern"] {
        assert!(series.contains(step), "no series of step {step}: {series:?}");
    }
    for field in ["on_cpu_ns", "forks", "execs", "switches_voluntary"] {
        let [one, other] = [by_step, by_job].map(|points| points.sum(&steps, "job_sched", field));
        let plus = if field == "on_cpu_ns" { 2 * MS + SETTING_UP_NS } else { 60 };
        agree.near(&format!("{field}, steps and job"), one, other..=other, 1, plus);
    }
    for task in slurm.jobs(jobs.array).unwrap() {
        let index: u64 = task.all["ArrayTaskId"].parse().unwrap();
        let ours = forks(by_job, &task.id.to_string());
        agree.between(
            &format!("forks of task {index}"),
            ours,
            10 + index..=10 + index + 15 * daemon,
        );
        assert_eq!(by_job.fact(&task.id.to_string(), "array_task"), Some(index.to_string()));
        assert_eq!(by_job.fact(&task.id.to_string(), "array_job"), Some(jobs.array.to_string()));
    }
    agree.between(
        "cancelled, on_cpu_ns",
        by_job.sum(&jobs.cancelled.to_string(), "job_sched", "on_cpu_ns"),
        1..=daemon * 100 * MS,
    );
    if let Some(greedy) = jobs.greedy {
        for points in [by_job, by_step] {
            let kills = points.sum(&greedy.to_string(), "job_fault", "oom_kills");
            agree.between("killed for memory", kills, 1..=4);
        }
        agree.exact("kills of the sibling", by_job.sum(&steps, "job_fault", "oom_kills"), 0);
    }
    let device = by_job.only(|point| point.tag("device") == disk.name());
    agree.exact("read by the job", device.block(&steps, "read", "bytes"), 0);
    agree.between(
        "read by the rest of the node",
        device.block("_system", "read", "bytes"),
        4 * MIB * 98 / 100..=5 * MIB,
    );
}

fn facts(slurm: &Slurm, jobs: &Jobs, Said { by_job, by_step }: &Said) {
    let steps = jobs.steps.to_string();
    let fact = |field: &str| by_job.fact(&steps, field).unwrap_or_default();
    assert_eq!(fact("name"), "a b,c=d");
    assert_eq!((fact("account").as_str(), fact("partition").as_str()), ("physics", "main"));
    assert_eq!((fact("nodes").as_str(), fact("node_count").as_str()), (slurm.node(), "1"));
    assert_eq!((fact("gpus_held").as_str(), fact("gpu_count").as_str()), ("3", "1"));
    let all = [Some(jobs.steps), Some(jobs.cancelled), jobs.greedy].into_iter().flatten();
    let tasks = slurm.jobs(jobs.array).unwrap().into_iter().map(|task| task.id);
    for job in all.chain(tasks) {
        let (name, owner) =
            (job.to_string(), if job == jobs.cancelled { "nobody" } else { "root" });
        for points in [by_job, by_step] {
            assert_eq!(points.tags(&name, "job_info", "manager"), ["slurm"].into(), "{name}");
            let users = points.tags(&name, "job_sched", "user");
            // On v2 nobody knows before the first program of the user's.
            let mut allowed: BTreeSet<_> = [owner].into();
            if slurm.mode() == Mode::V2 {
                allowed.insert("");
            }
            assert!(users.contains(owner) && users.is_subset(&allowed), "{name}: {users:?}");
            let uid = points.fact(&name, "uid");
            assert_eq!(uid.as_deref(), Some(if owner == "root" { "0" } else { "65534" }), "{name}");
        }
        let told = |field: &str| by_job.info(&name).unwrap().number(field);
        let (start, end) = (told("start").unwrap(), told("end").unwrap());
        assert!(end > start && end - start < 120_000_000_000, "{name}: {start} to {end}");
        let sum = by_job.sum(&name, "job_sched", "on_cpu_ns");
        assert_eq!(told("sched_on_cpu_ns"), Some(sum), "the totals at the end of {name}");
    }
}

#[test]
fn slurm_on_v1() {
    let found = Hierarchies::read().unwrap();
    let needed = ["freezer", "memory", "cpuset", "cpuacct"];
    if needed.iter().any(|name| found.v1(name).is_none()) {
        assert!(Slurm::start(Mode::V1).is_err(), "without v1 there is no Slurm on v1");
        return;
    }
    one_mode(Mode::V1, ["freezer", "memory"]);
}

#[test]
fn slurm_on_v2() {
    one_mode(Mode::V2, ["v2", "v2"]);
}
