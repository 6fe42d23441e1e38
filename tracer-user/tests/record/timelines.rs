//! Timelines: whatever the intervals, sums are exact, columns nearly so, and no peak is understated.

use jobtrace::{
    model::tables::{Block, Gpu, MEMORY, Net},
    record::{
        series::SERIES,
        timeline::{Column, FINENESS, FIRST_WIDTH_NS, MOST_COLUMNS, Timeline},
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

/// An interval: its begin and its end, and what came in it.
type Came = (u64, u64, [u64; 9]);

/// What came in the columns of `timeline`, to the unit: each interval's amounts evenly over its time.
fn came(timeline: &Timeline, intervals: &[Came]) -> Vec<[u64; 9]> {
    let count = timeline.columns().count() as u64;
    let until = |column: u64| timeline.start_ns() + column * timeline.width_ns();
    let sums_until = |ns: u64, is_end: bool| -> [u64; 9] {
        std::array::from_fn(|at| {
            let part = |(from, to, amounts): &Came| match ns {
                _ if is_end => amounts[at],
                _ if ns <= *from => 0,
                _ if ns >= *to => amounts[at],
                _ => {
                    (u128::from(amounts[at]) * u128::from(ns - from) / u128::from(to - from)) as u64
                }
            };
            intervals.iter().map(part).sum()
        })
    };
    let peaks_in = |column: u64, at: usize| {
        let is_in = |(from, to, _): &&Came| match (*from).max(until(column)) {
            _ if from == to => {
                column == ((from - timeline.start_ns()) / timeline.width_ns()).min(count - 1)
            }
            from => from < until(column + 1).min(*to),
        };
        intervals.iter().filter(is_in).map(|(_, _, amounts)| amounts[at]).max().unwrap_or(0)
    };
    let column = |column: u64| {
        let (before, after) =
            (sums_until(until(column), false), sums_until(until(column + 1), column + 1 == count));
        std::array::from_fn(|at| match SERIES[at].kind {
            Kind::Peak => peaks_in(column, at),
            _ => after[at] - before[at],
        })
    };
    (0..count).map(column).collect()
}

/// Asserts that `columns` are as near to `came` as the record's document says.
fn assert_near(columns: &[Column], came: &[[u64; 9]]) -> Result<(), TestCaseError> {
    prop_assert_eq!(columns.len(), came.len());
    for (at, series) in SERIES.iter().enumerate() {
        let largest = came.iter().map(|came| came[at]).max().unwrap_or(0);
        for (number, (column, came)) in columns.iter().zip(came).enumerate() {
            let (shown, came) = (column[at].unwrap(), came[at]);
            let is_near = shown == came || shown.abs_diff(came).saturating_mul(FINENESS) < largest;
            prop_assert!(
                is_near,
                "{} of column {number}: {shown} for {came} of {largest}",
                series.name
            );
            prop_assert!(
                series.kind != Kind::Peak || shown >= came,
                "{number}: {shown} for {came}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..Default::default() })]

    #[test]
    fn nothing_is_lost_or_moved(
        begin_ns in 0..1u64 << 61,
        intervals in vec((0..5_000 * SECOND, 0..41u32, prop::array::uniform9(0..1u64 << 40)), 1..60),
    ) {
        let mut timeline = Timeline::new(begin_ns);
        let (mut expected, mut all, mut end_ns) = ([0u64; 9], Vec::new(), begin_ns);
        for (span_ns, shift, amounts) in intervals {
            // Of all sizes, so that steps grow on the way.
            let amounts = amounts.map(|amount| amount >> shift);
            timeline.add(span_ns, &interval(amounts));
            all.push((end_ns, end_ns + span_ns, amounts));
            end_ns += span_ns;
            for (at, amount) in amounts.into_iter().enumerate() {
                let sum = &mut expected[at];
                *sum = if SERIES[at].kind == Kind::Peak { amount.max(*sum) } else { *sum + amount };
            }
        }
        let columns: Vec<_> = timeline.columns().collect();
        for (at, told) in totals(&timeline).into_iter().enumerate() {
            let is_peak = SERIES[at].kind == Kind::Peak;
            prop_assert!(is_peak || told == Some(expected[at]), "{at}: {told:?} of {}", expected[at]);
        }
        assert_near(&columns, &came(&timeline, &all))?;
        prop_assert!(columns.len() as u64 <= MOST_COLUMNS);
        prop_assert!(timeline.memory_bytes() <= 6_000, "{} bytes", timeline.memory_bytes());
        prop_assert_eq!(timeline.end_ns(), end_ns);
        let width_ns = timeline.width_ns();
        prop_assert!((width_ns / FIRST_WIDTH_NS).is_power_of_two());
        prop_assert_eq!(timeline.start_ns(), begin_ns / width_ns * width_ns);
        // No wider than needed: half as wide, they would be too many.
        let half = width_ns / 2;
        prop_assert!(half < FIRST_WIDTH_NS || end_ns.div_ceil(half) - begin_ns / half > MOST_COLUMNS);
        // What was in it when is where it was.
        let of = Timeline::of(begin_ns, end_ns, width_ns, &columns);
        prop_assert_eq!(of.as_ref(), Some(&timeline));
        prop_assert_eq!(Timeline::merge(&[&timeline]), of);
    }

    #[test]
    fn another_agent_goes_on_with_the_same(
        intervals in vec((0..900 * SECOND, 0..41u32, prop::array::uniform9(0..1u64 << 40)), 1..40),
        handed_over in 0..40usize,
    ) {
        let mut one = Timeline::new(7 * SECOND);
        let mut other = one.clone();
        for (number, (span_ns, shift, amounts)) in intervals.into_iter().enumerate() {
            if number == handed_over {
                let text = serde_json::to_string(&other).unwrap();
                other = serde_json::from_str(&text).unwrap();
            }
            let groups = interval(amounts.map(|amount| amount >> shift));
            // Where nothing is known of the last columns, what is left over is in an earlier one.
            let known = if number % 3 == 2 { &groups[..1] } else { &groups[..] };
            one.add(span_ns, known);
            other.add(span_ns, known);
            prop_assert_eq!(&one, &other);
        }
    }

    #[test]
    fn columns_tell_when(at_s in 0..200u64, amount in 1..1u64 << 40) {
        let mut timeline = Timeline::new(4 * SECOND);
        let idle = interval([0; 9]);
        timeline.add(at_s * SECOND, &idle);
        timeline.add(SECOND, &interval([amount; 9]));
        timeline.add((239 - at_s) * SECOND, &idle);
        let expected = |count: u64, of: u64| -> Vec<_> {
            (0..count).map(|at| [if at == of { amount } else { 0 }; 9]).collect()
        };
        let columns: Vec<_> = timeline.columns().collect();
        assert_near(&columns, &expected(240, at_s))?;
        let is_empty = |(at, column): (usize, &Column)| at as u64 == at_s || *column == [Some(0); 9];
        prop_assert!(columns[..239].iter().enumerate().all(is_empty), "nothing is nothing");
        // Twice as wide, it is in the half of its index.
        timeline.add(SECOND, &idle);
        let columns: Vec<_> = timeline.columns().collect();
        assert_near(&columns, &expected(121, at_s / 2))?;
        prop_assert_eq!(timeline.width_ns(), 2 * SECOND);
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
fn what_is_left_over_is_where_something_is_known() {
    let mut timeline = Timeline::new(0);
    timeline.add(SECOND, &interval([1 << 40; 9]));
    timeline.add(SECOND, &interval([3; 9]));
    timeline.add(2 * SECOND, &[]);
    let columns: Vec<_> = timeline.columns().collect();
    assert_eq!(columns[2..], [[None; 9]; 2]);
    assert_eq!(totals(&timeline)[0], Some((1 << 40) + 3));
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), timeline);
    for (key, damage) in [("steps", "0"), ("rest", "1000000000000000")] {
        let at = text.find(&format!("\"{key}\":[")).unwrap() + key.len() + 4;
        let rest = &text[at + text[at..].find(',').unwrap()..];
        let damaged = format!("{}{damage}{rest}", &text[..at]);
        assert!(serde_json::from_str::<Timeline>(&damaged).is_err(), "{key}: {damaged}");
    }
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
    assert!((8 << 30..8_592_000_000).contains(&totals(&timeline)[3].unwrap()));
    assert!((121..=240).contains(&timeline.columns().count()));
}

#[test]
fn memory_of_which_only_the_charge_was_read_is_what_it_was() {
    let memory = |used: Option<u64>, charged: Option<u64>| {
        let mut memory = Group::unknown(&MEMORY, vec![]);
        memory.set(Memory::anon_bytes, used);
        memory.set(Memory::shmem_bytes, used.map(|_| 0));
        memory.set(Memory::current_bytes, charged);
        vec![memory]
    };
    let second = FIRST_WIDTH_NS;
    let begin_ns = 1_795_305_600 * second;
    let mut record = Record::new(&Origin::default(), Job::default(), JobInfo::default(), begin_ns);
    for (used, charged) in
        [(None, Some(9)), (Some(7), Some(9)), (None, Some(9)), (None, None), (Some(5), Some(6))]
    {
        record.add(second, &memory(used, charged), &[]);
    }
    let at = SERIES.iter().position(|series| series.name == "memory_bytes").unwrap();
    let columns: Vec<_> = record.timeline.columns().map(|column| column[at]).collect();
    assert_eq!(columns[..5], [None, Some(7), Some(7), None, Some(5)], "unknown is not what was");
}
