//! What somebody changes of a job's memory limit and CPUs while it runs: what it holds follows within seconds.

use std::{fs, path::Path};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::tables::{CPU, Cpu, MEMORY, Memory},
};
use jobtrace_tests::agent::{Agent, Point, Points};

use super::{MOMENT, life::quiet, records::of, shaped::Shaped, slots::sleeper};

const JOB: u32 = 8_850;
const NAME: &str = "8850";
const MIB: u64 = 1 << 20;

/// v1 makes a directory without CPUs, which takes no task: each has its parent's, from the test's own on.
fn hand_down(job: &Path) {
    let mut own: Vec<_> = job.ancestors().take(4).collect();
    own.reverse();
    for directory in own {
        for name in ["cpuset.cpus", "cpuset.mems"] {
            let above = fs::read(directory.parent().unwrap().join(name)).unwrap();
            fs::write(directory.join(name), above).unwrap();
        }
    }
}

/// The job's last line of `measurement`.
fn last<'a>(points: &'a Points, measurement: &str) -> Option<&'a Point> {
    points.of(NAME).rfind(|point| point.measurement == measurement)
}

/// Whether the job held `bytes` of memory in the whole of its last interval.
fn holds(points: &Points, bytes: u64) -> Option<()> {
    let line = last(points, "job_memory")?;
    let seconds = line.float("interval_ns")? / 1e9;
    let held = line.float("held_byte_s")? / seconds;
    ((held / bytes as f64 - 1.0).abs() < 0.01).then_some(())
}

#[test]
fn a_limit_that_is_removed_and_cpus_that_are_taken_are_noticed() {
    let found = Hierarchies::read().unwrap();
    if let Some(name) = ["memory", "cpuset"].into_iter().find(|name| found.v1(name).is_none()) {
        assert!(Agent::start(&format!("hierarchy = {name:?}")).is_err(), "there is none");
        return;
    }
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller, "memory", "cpuset"]);
    let job = shaped.job(0, JOB, "");
    let [_, memory, cpuset] = &job.0[..] else { unreachable!("a directory of each") };
    hand_down(cpuset);
    let set_limit = |text: &str| fs::write(memory.join("memory.limit_in_bytes"), text).unwrap();
    set_limit(&(64 * MIB).to_string());
    let running = sleeper(&job);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    agent.wait_for("its limit", MOMENT, |points| holds(points, 64 * MIB)).unwrap();
    set_limit(&(32 * MIB).to_string());
    agent.wait_for("a lower one", MOMENT, |points| holds(points, 32 * MIB)).unwrap();

    set_limit("-1");
    let cpus = fs::read_to_string(cpuset.join("cpuset.cpus")).unwrap();
    let first = cpus.trim().split([',', '-']).next().unwrap();
    fs::write(cpuset.join("cpuset.cpus"), first).unwrap();
    let is_free =
        |points: &Points| last(points, "job_memory")?.number("held_byte_s").is_none().then_some(());
    agent.wait_for("no limit", MOMENT, is_free).unwrap();
    let has_one =
        |points: &Points| (last(points, "job_cpu")?.float("cores_held")? == 1.0).then_some(());
    agent.wait_for("one core", MOMENT, has_one).unwrap();
    // In intervals in which nothing of it is read either.
    for _ in 0..3 {
        let points = agent.settle().unwrap();
        assert_eq!((is_free(&points), has_one(&points)), (Some(()), Some(())));
        let line = last(&points, "job_cpu").unwrap();
        let cores = line.float("held_ns").unwrap() / line.float("interval_ns").unwrap();
        assert!((0.99..=1.01).contains(&cores), "{line:?}");
    }

    drop(running);
    shaped.remove_job(0, JOB);
    agent.wait_for("its end", MOMENT, |points| points.fact(NAME, "end")).unwrap();
    let (_, records) = agent.stop_with_records().unwrap();
    let totals = &of(&records, NAME).totals;
    let group = |table| totals.stats.group(table).unwrap();
    assert_eq!(group(&MEMORY).number(Memory::limit_bytes), None, "it had none at its end");
    assert!(group(&MEMORY).number(Memory::held_byte_s) > Some(0), "it had one before");
    assert_eq!(group(&CPU).number(Cpu::cores_held), Some(1_000));
}
