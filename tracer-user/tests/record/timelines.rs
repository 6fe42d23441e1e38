//! Timelines: whatever the intervals, sums stay sums and peaks stay peaks.

use jobtrace::{
    model::tables::{Block, Gpu, MEMORY, Net},
    record::{
        series::SERIES,
        timeline::{FIRST_WIDTH_NS, MOST_COLUMNS, Timeline},
    },
};
use proptest::{collection::vec, prelude::*};

use super::*;

/// What a job did in an interval, by the series of the timeline.
fn interval(amounts: [u64; 9]) -> Vec<Group> {
    let [on_cpu, wait, blocked, memory, read, written, net, busy, gpu_memory] = amounts;
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, on_cpu);
    sched.set_hist(Sched::run_queue_wait_ns, Hist::from_buckets(wait, wait, [(0, 1)]));
    sched.set_hist(Sched::blocked_ns, Hist::from_buckets(blocked, blocked, [(0, 1)]));
    let mut held = Group::unknown(&MEMORY, vec![]);
    held.set(Memory::anon_bytes, memory / 2);
    held.set(Memory::shmem_bytes, memory - memory / 2);
    // The page cache is no need of the job's.
    held.set(Memory::file_bytes, u64::MAX);
    let block = |op: &str, bytes: u64| {
        let mut block = Group::unknown(&BLOCK, vec!["sda".into(), op.into()]);
        block.set(Block::bytes, bytes);
        block
    };
    let mut tcp = Group::unknown(&NET, vec!["tcp".into()]);
    tcp.set(Net::sent_bytes, net / 3);
    tcp.set(Net::received_bytes, net - net / 3);
    let mut gpu = Group::unknown(&GPU, GPU.tags.iter().map(|tag| (*tag).to_owned()).collect());
    gpu.set(Gpu::busy_ns, busy);
    gpu.set(Gpu::memory_used_bytes, gpu_memory);
    vec![sched, held, block("read", read), block("write", written), tcp, gpu]
}

fn totals(timeline: &Timeline) -> Vec<Option<u64>> {
    let of = |at: usize| {
        let values = timeline.columns().filter_map(|column| column[at]);
        match SERIES[at].kind {
            Kind::Peak => values.max(),
            _ => values.reduce(|a, b| a + b),
        }
    };
    (0..SERIES.len()).map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..Default::default() })]

    #[test]
    fn nothing_is_lost_or_moved(
        begin_ns in 0..1u64 << 61,
        intervals in vec((0..5_000 * SECOND, prop::array::uniform9(0..1u64 << 40)), 1..60),
    ) {
        let mut timeline = Timeline::new(begin_ns);
        let (mut expected, mut end_ns) = ([0u64; 9], begin_ns);
        for (span_ns, amounts) in intervals {
            timeline.add(span_ns, &interval(amounts));
            end_ns += span_ns;
            for (at, amount) in amounts.into_iter().enumerate() {
                let sum = &mut expected[at];
                *sum = if SERIES[at].kind == Kind::Peak { amount.max(*sum) } else { *sum + amount };
            }
        }
        prop_assert_eq!(totals(&timeline), expected.map(Some).to_vec());
        let count = timeline.columns().count() as u64;
        prop_assert!(count <= MOST_COLUMNS);
        prop_assert_eq!(timeline.end_ns(), end_ns);
        let width_ns = timeline.width_ns();
        prop_assert!((width_ns / FIRST_WIDTH_NS).is_power_of_two());
        prop_assert_eq!(timeline.start_ns(), begin_ns / width_ns * width_ns);
        // No wider than needed: half as wide, they would be too many.
        let half = width_ns / 2;
        prop_assert!(half < FIRST_WIDTH_NS || end_ns.div_ceil(half) - begin_ns / half > MOST_COLUMNS);
        // What was in it when is where it was.
        let again: Vec<_> = timeline.columns().collect();
        let of = Timeline::of(begin_ns, end_ns, width_ns, &again);
        prop_assert_eq!(of.as_ref(), Some(&timeline));
        prop_assert_eq!(Timeline::merge(&[&timeline]), of);
    }

    #[test]
    fn columns_tell_when(at_s in 0..200u64, amount in 1..1u64 << 40) {
        let mut timeline = Timeline::new(4 * SECOND);
        let idle = interval([0; 9]);
        timeline.add(at_s * SECOND, &idle);
        timeline.add(SECOND, &interval([amount; 9]));
        timeline.add((239 - at_s) * SECOND, &idle);
        for (at, column) in (0u64..).zip(timeline.columns()) {
            let expected = if at == at_s { amount } else { 0 };
            prop_assert_eq!(column, [Some(expected); 9], "column {}", at);
        }
        // Twice as wide, it is in the half of its index.
        timeline.add(SECOND, &idle);
        let columns: Vec<_> = timeline.columns().collect();
        prop_assert_eq!(columns[at_s as usize / 2][0], Some(amount));
        prop_assert_eq!((timeline.width_ns(), columns.len()), (2 * SECOND, 121));
    }
}

#[test]
fn what_nobody_told_is_unknown() {
    let mut timeline = Timeline::new(0);
    timeline.add(2 * SECOND, &[]);
    timeline.add(SECOND, &interval([1; 9])[..1]);
    let columns: Vec<_> = timeline.columns().collect();
    assert_eq!(columns.len(), 3);
    assert_eq!(columns[1], [None; 9]);
    assert_eq!(columns[2][..4], [Some(1), Some(1), Some(1), None]);
}

#[test]
fn no_program_writes_such_columns() {
    let of = |begin, width, end, count| Timeline::of(begin, end, width, &vec![[None; 9]; count]);
    assert!(of(4 * SECOND, 2 * SECOND, 7 * SECOND, 2).is_some());
    assert!(of(5 * SECOND, 2 * SECOND, 7 * SECOND, 2).is_some());
    assert!(of(4 * SECOND, 2 * SECOND, 5 * SECOND, 2).is_none(), "ends in the first");
    assert!(of(4 * SECOND, 2 * SECOND, 9 * SECOND, 2).is_none(), "ends behind the last");
    assert!(of(5 * SECOND, 2 * SECOND, 4 * SECOND, 1).is_none(), "ends before it began");
    assert!(of(0, 3 * SECOND, 5 * SECOND, 2).is_none(), "no power of two");
    assert!(of(0, 0, 0, 1).is_none());
    assert!(of(0, SECOND, 0, 0).is_none());
    assert!(of(0, SECOND, 240 * SECOND, 241).is_none());
    assert!(of(1 << 63, 1 << 9, u64::MAX, 5).is_none());
}

#[test]
fn a_clock_may_show_anything() {
    let mut timeline = Timeline::new(u64::MAX);
    timeline.add(u64::MAX, &interval([3; 9]));
    timeline.add(1, &interval([4; 9]));
    assert_eq!(totals(&timeline)[..4], [Some(7), Some(7), Some(7), Some(4)]);
    let mut timeline = Timeline::new(0);
    timeline.add(u64::MAX, &interval([u64::MAX; 9]));
    let other = Timeline::new(u64::MAX);
    assert!(Timeline::merge(&[&timeline, &other]).unwrap().columns().count() <= 240);
}

#[test]
fn a_year_fits() {
    let mut timeline = Timeline::new(1_700_000_000 * SECOND);
    let amounts = [3_000_000_007, 1, 0, 8 << 30, 5, 0, 1 << 20, 0, 0];
    let mut ticks = 0;
    while ticks < 365 * 8_640 {
        // By the day from the second day on: a tick is tried ten thousand times by then.
        let step = if ticks < 17_280 { 1 } else { 8_640 };
        let sum = |at: usize| amounts[at] * if SERIES[at].kind == Kind::Peak { 1 } else { step };
        timeline.add(10 * SECOND * step, &interval(std::array::from_fn(sum)));
        ticks += step;
    }
    assert_eq!(totals(&timeline)[0], Some(3_000_000_007 * ticks));
    assert_eq!(totals(&timeline)[3], Some(8 << 30));
    assert!((121..=240).contains(&timeline.columns().count()));
}
