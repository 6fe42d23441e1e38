//! The backlog: what is written in the end adds up to what was measured, whatever fails between.

use jobtrace::{
    lines::backlog::{Backlog, Caps, Pending},
    model::{
        group::{Group, follow_all},
        hist::Hist,
        job::{Job, JobStats},
        point::{FieldValue, Point},
        tables::{BLOCK, Block, CPU, Cpu, MEMORY, Memory, SCHED, Sched},
    },
};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
};

const SECOND: u64 = 1_000_000_000;
const WIDE: usize = usize::MAX;

fn job(number: u8) -> Job {
    Job { job: number.to_string(), manager: "slurm".into(), user: String::new(), ..Job::default() }
}

/// One job's interval: every kind of field.
fn stats(number: u8, amount: u64) -> JobStats {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, amount);
    let bucket = (amount % 100) as usize;
    let hist = Hist::from_buckets(amount, amount, [(bucket, amount % 7)]);
    sched.set_hist(Sched::run_queue_wait_ns, hist);
    let mut block = Group::unknown(&BLOCK, vec![format!("sd{}", amount % 2), "read".into()]);
    block.set(Block::bytes, amount * 4096);
    let mut memory = Group::unknown(&MEMORY, vec![]);
    memory.set(Memory::current_bytes, (!amount.is_multiple_of(3)).then_some(amount));
    memory.set(Memory::peak_bytes, amount);
    let mut cpu = Group::unknown(&CPU, vec![]);
    cpu.set(Cpu::cores_held, amount % 5 * 1000);
    JobStats { job: job(number), groups: vec![sched, block, memory, cpu] }
}

fn interval(at: u64, jobs: Vec<JobStats>) -> Pending {
    Pending { stamp_ns: at * 10 * SECOND, span_ns: 10 * SECOND + at, jobs, facts: Vec::new() }
}

/// Everything in `intervals` as one.
fn total(intervals: &[Pending]) -> (u64, Vec<JobStats>) {
    let mut jobs: Vec<JobStats> = Vec::new();
    for stats in intervals.iter().flat_map(|pending| &pending.jobs) {
        match jobs.iter_mut().find(|known| known.job == stats.job) {
            Some(known) => follow_all(&mut known.groups, &stats.groups),
            None => jobs.push(stats.clone()),
        }
    }
    (intervals.iter().map(|pending| pending.span_ns).sum(), jobs)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_written_is_what_was_measured(
        ticks in vec((btree_map(0..4_u8, 0..1000_u64, 0..4), any::<bool>()), 1..40),
        intervals in 0..6_usize,
        bytes in prop_oneof![Just(WIDE), 2_000..40_000_usize],
    ) {
        let mut backlog = Backlog::new(Caps { intervals, bytes });
        let (mut measured, mut written, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        let last = ticks.len();
        for (at, (jobs, works)) in ticks.into_iter().enumerate() {
            let jobs = jobs.into_iter().map(|(number, amount)| stats(number, amount)).collect();
            let pending = interval(at as u64, jobs);
            measured.push(pending.clone());
            let gone = backlog.push(pending);
            // What is lost is older than all that waits.
            written.extend(gone.iter().cloned());
            lost.extend(gone);
            prop_assert!(backlog.pending().count() <= intervals.max(2));
            prop_assert_eq!(backlog.pending().last().map(|p| p.stamp_ns), Some(at as u64 * 10 * SECOND));
            if works || at + 1 == last {
                written.extend(backlog.pending().cloned());
                backlog.written();
            } else {
                backlog.failed();
            }
        }
        prop_assert_eq!(total(&written), total(&measured));
        prop_assert!(written.is_sorted_by(|a, b| a.stamp_ns < b.stamp_ns));
        prop_assert!(bytes != WIDE || lost.is_empty());
        let merged = measured.len() - written.len();
        prop_assert_eq!(backlog.merged(), merged as u64);
    }
}

#[test]
fn within_the_caps_nothing_is_merged() {
    let mut backlog = Backlog::new(Caps { intervals: 3, bytes: WIDE });
    let all: Vec<_> = (1..4).map(|at| interval(at, vec![stats(1, at)])).collect();
    for pending in &all {
        assert!(backlog.push(pending.clone()).is_empty());
        backlog.failed();
    }
    assert!(backlog.pending().eq(&all));
    assert_eq!(backlog.merged(), 0);
}

#[test]
fn the_two_oldest_become_one_whose_span_is_their_sum() {
    let mut backlog = Backlog::new(Caps { intervals: 2, bytes: WIDE });
    for at in 1..4 {
        assert!(backlog.push(interval(at, vec![stats(1, at * 6)])).is_empty());
    }
    let waiting: Vec<_> = backlog.pending().collect();
    let shown: Vec<_> = waiting.iter().map(|p| (p.stamp_ns, p.span_ns, p.start_ns())).collect();
    let span = 20 * SECOND + 3;
    let expected = [(20 * SECOND, span, 0), (30 * SECOND, 10 * SECOND + 3, 20 * SECOND - 3)];
    assert_eq!(shown, expected);
    let job = &waiting[0].jobs[0];
    let [sched, memory, cpu] = [&SCHED, &MEMORY, &CPU].map(|of| job.group(of).unwrap());
    assert_eq!(sched.number(Sched::on_cpu_ns), Some(6 + 12));
    assert_eq!(sched.hist(Sched::run_queue_wait_ns).unwrap().count(), 6 + 5);
    assert_eq!(memory.number(Memory::current_bytes), None);
    assert_eq!(memory.number(Memory::peak_bytes), Some(12));
    assert_eq!(cpu.number(Cpu::cores_held), Some(2000), "the later, not the sum");
    assert_eq!(backlog.merged(), 1);
}

#[test]
fn more_jobs_than_fit_cost_the_oldest_interval_and_never_the_newest() {
    let mut backlog = Backlog::new(Caps { intervals: 10, bytes: 20_000 });
    let mut lost = Vec::new();
    for at in 0..40_u8 {
        lost.extend(backlog.push(interval(at.into(), vec![stats(at, 6)])));
    }
    assert!(!lost.is_empty());
    assert!(lost.iter().chain(backlog.pending()).map(|p| p.jobs.len()).sum::<usize>() == 40);
    // A single interval may be as large as it is.
    let mut backlog = Backlog::new(Caps { intervals: 10, bytes: 1 });
    assert!(backlog.push(interval(1, vec![stats(1, 6)])).is_empty());
    assert_eq!(backlog.push(interval(2, vec![stats(1, 6)])).len(), 1);
    assert_eq!(backlog.pending().count(), 1);
}

#[test]
fn of_facts_that_say_the_same_the_later_stands() {
    let fact = |job: &str, time_ns| Point {
        measurement: "job_info".into(),
        tags: vec![("job".into(), job.into())],
        fields: vec![("start".into(), FieldValue::Integer(1))],
        time_ns,
    };
    let mut backlog = Backlog::new(Caps { intervals: 2, bytes: WIDE });
    for (at, facts) in
        [vec![fact("1", 1)], vec![fact("2", 2), fact("1", 3)], vec![]].into_iter().enumerate()
    {
        let pending = Pending { facts, ..interval(at as u64, vec![]) };
        assert!(backlog.push(pending).is_empty());
    }
    let first = backlog.pending().next().unwrap();
    assert_eq!(first.facts, [fact("2", 2), fact("1", 3)]);
}

#[test]
fn attempts_grow_rarer_up_to_one_in_eight() {
    let mut backlog = Backlog::new(Caps::default());
    assert!(!backlog.is_due(), "nothing waits");
    let mut tried = Vec::new();
    for at in 0..40 {
        assert!(backlog.push(interval(at, vec![])).is_empty());
        if backlog.is_due() {
            tried.push(at);
            assert_eq!(backlog.failed() as usize, tried.len());
        }
    }
    assert_eq!(tried, [0, 1, 3, 7, 15, 23, 31, 39]);
    backlog.written();
    assert!(backlog.push(interval(40, vec![])).is_empty());
    assert!(backlog.is_due());
}
