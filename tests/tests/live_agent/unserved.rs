//! Jobs that wait for a slot: what their files show is told, in lines and records alike; what adds up over time counts from
//! when they have one.

use std::{fs, time::Duration};

use jobtrace::{
    cgroup::hierarchies::Hierarchies,
    model::{
        gaps::NO_SLOT,
        tables::{CPU, Cpu, fact},
    },
    record::Record,
};
use jobtrace_tests::{
    agent::{Agent, Points},
    agree::Agreement,
    rig::wait_for,
};
use tracer_ebpf::table::Kind;

use super::{
    MOMENT,
    life::quiet,
    records::{agrees, of},
    shaped::{Running, Shaped},
    slots::sleeper,
};

const FIRST: u32 = 9_500;
const JOBS: usize = 12;

/// Jobs in directories of their own, each of half a core where that can be said.
struct Crowd {
    shaped: Shaped,
    running: Vec<Option<Running>>,
}

impl Crowd {
    fn start(controller: &str) -> Self {
        let has_quota = !controller.is_empty() && Hierarchies::read().unwrap().v1("cpu").is_some();
        let controllers = [controller, "cpu"];
        let shaped = Shaped::make(&controllers[..1 + usize::from(has_quota)]);
        let start = |index| {
            let job = shaped.job(0, FIRST + index as u32, "");
            if has_quota {
                fs::write(job.0[1].join("cpu.cfs_quota_us"), "50000").unwrap();
            }
            Some(sleeper(&job))
        };
        let running = (0..JOBS).map(start).collect();
        Self { shaped, running }
    }

    fn end(&mut self, index: usize) {
        self.running[index] = None;
        self.shaped.remove_job(0, FIRST + index as u32);
    }
}

fn name(index: usize) -> String {
    (FIRST as usize + index).to_string()
}

/// Which of the jobs the probes have counted for.
fn served(points: &Points) -> Vec<usize> {
    (0..JOBS).filter(|index| points.sum(&name(*index), "job_sched", "on_cpu_ns") > 0).collect()
}

fn waited_ns(record: &Record) -> u64 {
    record.totals.gaps.iter().find(|gap| gap.what == NO_SLOT).map_or(0, |gap| gap.for_ns)
}

/// Of `job`, which never had a slot.
fn shows_states_alone(points: &Points, record: &Record, job: &str) {
    for (field, value) in record.totals.stats.groups.iter().flat_map(|group| group.fields()) {
        let adds_up = matches!(field.kind, Kind::Counter | Kind::Histogram);
        assert!(!adds_up || value.is_none(), "{} of {job}: {value:?}", field.name);
    }
    let cpu = record.totals.stats.group(&CPU).expect("its files were read");
    let lines = points.only(|point| point.tag("job") == job && point.measurement == "job_cpu");
    assert!(!lines.0.is_empty(), "lines tell as much");
    for line in &lines.0 {
        assert_eq!(line.number("tasks"), Some(1), "{line:?}");
        assert!(line.number("held_ns").or(line.number("throttled_ns")).is_none(), "{line:?}");
    }
    let last = lines.0.last().and_then(|line| line.float("cores_held"));
    assert_eq!(last, cpu.number(Cpu::cores_held).map(|millicores| millicores as f64 / 1e3));
    assert_eq!(waited_ns(record), record.totals.elapsed_ns, "it says what was not counted");
    assert!(record.totals.elapsed_ns > 0 && record.facts.has(const { fact("end") }));
}

#[test]
fn a_job_tells_what_its_files_show_without_a_slot_and_counts_from_when_it_has_one() {
    let (hierarchy, controller) = quiet();
    let mut crowd = Crowd::start(controller);
    let agent =
        Agent::start(&format!("hierarchy = {hierarchy:?}\nslots = 8\nspare_slots = 2")).unwrap();
    agent.settle().unwrap();
    let first = served(&agent.settle().unwrap());
    assert!((1..JOBS - 2).contains(&first.len()), "{first:?} have a slot");
    let never = (0..JOBS).rfind(|index| !first.contains(index)).unwrap();
    crowd.end(never);
    let recorded = || agent.recorded().ok().filter(|jobs| jobs.contains(&name(never)));
    wait_for("the record of one that never had a slot", Duration::from_secs(30), recorded).unwrap();
    // A slot for one that waits.
    crowd.end(first[0]);
    let is_late = |index: &usize| !first.contains(index);
    let late = agent.wait_for("a slot", MOMENT, |points| served(points).into_iter().find(is_late));
    let late = late.unwrap();
    agent.settle().unwrap();
    let (points, records) = agent.stop_with_records().unwrap();

    let (late, never) = (name(late), name(never));
    shows_states_alone(&points, of(&records, &never), &never);
    let record = of(&records, &late);
    let mut agree = Agreement::new();
    assert!(agrees(&mut agree, &points, record) > 2, "the record is the sum of the lines");
    let totals = &record.totals;
    let from = record.facts.number(const { fact("counted_from") }).expect("it says since when");
    agree.exact("elapsed_ns since then", record.timeline.end_ns() - from, totals.elapsed_ns);
    let cpu = totals.stats.group(&CPU).unwrap();
    let millicores = cpu.number(Cpu::cores_held).expect("a quota or a set of CPUs");
    let held_ns = millicores * totals.elapsed_ns / 1_000;
    // Each interval is rounded down.
    let least = held_ns - totals.intervals - 2;
    agree.between("core time held since then", cpu.number(Cpu::held_ns).unwrap(), least..=held_ns);
    agree.end();
    assert!(
        waited_ns(record) > 0 && from - record.facts.number(const { fact("start") }).unwrap() > 0
    );
}
