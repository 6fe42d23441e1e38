//! Groups of every table: an interval is a subtraction, a merge an addition, unknown is neither.

use std::collections::BTreeMap;

use jobtrace::model::{
    group::{Group, Value, merge_all, since_all},
    hist::Hist,
    job::{Job, attribute},
    snapshot::Interval,
    tables,
    tables::{Block, Sched},
};
use proptest::{collection::vec, prelude::*};
use tracer_ebpf::table::{Kind, Measurement};

/// One step of a value's growth, or `None` for a step in which it stays unknown.
type Step = Option<(u32, Vec<(usize, u32)>)>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fields = tables::ALL.iter().map(|table| table.fields.len()).max().unwrap_or(0);
    let step = prop_oneof![
        1 => Just(None),
        3 => (any::<u32>(), vec((0..128_usize, any::<u32>()), 0..4)).prop_map(Some),
    ];
    vec(step, fields)
}

fn table() -> impl Strategy<Value = &'static Measurement> {
    (0..tables::ALL.len()).prop_map(|index| tables::ALL[index])
}

/// A group that has grown by each of `growth`, cumulative.
fn grown(table: &'static Measurement, growth: &[&[Step]]) -> Group {
    let tags = table.tags.iter().map(|tag| format!("a {tag}")).collect();
    let mut group = Group::unknown(table, tags);
    for steps in growth {
        for ((field, value), step) in table.fields.iter().zip(&mut group.values).zip(*steps) {
            let Some((number, buckets)) = step else { continue };
            let number = u64::from(*number);
            let old = match value {
                Some(Value::Number(old)) => *old,
                _ => 0,
            };
            let grown = match field.kind {
                Kind::Counter => Value::Number(old + number),
                Kind::Gauge => Value::Number(number),
                Kind::Peak => Value::Number(old.max(number)),
                Kind::Constant => Value::Number(64),
                Kind::Histogram => {
                    let counts = buckets.iter().map(|(index, count)| (*index, u64::from(*count)));
                    let mut hist = match value.take() {
                        Some(Value::Histogram(hist)) => hist,
                        _ => Hist::default(),
                    };
                    // A value of its bucket: the largest is in the highest bucket.
                    let max = buckets.iter().filter(|(_, count)| *count > 0).map(|(i, _)| *i).max();
                    let max = max.map_or(0, tracer_ebpf::loglinear::bucket_low);
                    hist.merge(&Hist::from_buckets(number, max, counts));
                    Value::Histogram(hist)
                }
            };
            *value = Some(grown);
        }
    }
    group
}

fn merged(a: &Group, b: &Group) -> Group {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_interval_that_follows_what_was_before_is_what_is_now(
        table in table(), before in steps(), during in steps(),
    ) {
        let older = grown(table, &[&before]);
        let newer = grown(table, &[&before, &during]);
        let mut sum = older.clone();
        sum.follow(&newer.since(&older));
        prop_assert_eq!(&sum, &newer);
        // Nothing at all came between a moment and itself, and a state is no happening.
        let nothing = newer.since(&newer);
        for (field, value) in table.fields.iter().zip(&nothing.values) {
            match (field.kind, value) {
                (Kind::Counter, Some(value)) => prop_assert_eq!(value, &Value::Number(0)),
                (_, Some(Value::Histogram(hist))) => prop_assert_eq!(hist, &Hist::default()),
                _ => {}
            }
        }
    }

    #[test]
    fn intervals_that_follow_each_other_are_one_interval(
        table in table(), a in steps(), b in steps(), c in steps(),
    ) {
        let [first, second, third] =
            [grown(table, &[&a]), grown(table, &[&a, &b]), grown(table, &[&a, &b, &c])];
        let mut followed = second.since(&first);
        followed.follow(&third.since(&second));
        let whole = third.since(&first);
        for (field, (value, expected)) in
            table.fields.iter().zip(followed.values.iter().zip(&whole.values))
        {
            match (value, expected) {
                // The largest value of an interval may be its bucket's bound.
                (Some(Value::Histogram(value)), Some(Value::Histogram(expected))) => {
                    prop_assert_eq!(value.sum, expected.sum);
                    prop_assert!(value.buckets().eq(expected.buckets()));
                }
                _ => prop_assert_eq!(value, expected, "{}", field.name),
            }
        }
    }

    #[test]
    fn the_order_of_merging_does_not_matter(
        table in table(), a in steps(), b in steps(), c in steps(),
    ) {
        let [a, b, c] = [a, b, c].map(|steps| grown(table, &[&steps]));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(&merged(&a, &Group::unknown(table, a.tags.clone())), &a);
    }

    #[test]
    fn unknown_stays_unknown_and_known_stays_known(table in table(), a in steps(), b in steps()) {
        let [a, b] = [a, b].map(|steps| grown(table, &[&steps]));
        let known = |group: &Group| group.values.iter().map(Option::is_some).collect::<Vec<_>>();
        let either: Vec<_> = known(&a).iter().zip(known(&b)).map(|(a, b)| *a || b).collect();
        prop_assert_eq!(known(&merged(&a, &b)), either);
        prop_assert_eq!(known(&a.since(&b)), known(&a));
    }

    #[test]
    fn a_recording_brings_a_group_back(table in table(), a in steps()) {
        let group = grown(table, &[&a]);
        let text = serde_json::to_string(&group).unwrap();
        prop_assert_eq!(serde_json::from_str::<Group>(&text).unwrap(), group);
    }

    #[test]
    fn jobs_and_the_rest_of_the_node_add_up_to_the_node(slots in vec((0..6_u32, steps()), 1..8)) {
        let groups = |steps: &Vec<Step>| tables::ALL.map(|table| grown(table, &[steps])).to_vec();
        let mut interval = Interval::default();
        for (slot, steps) in &slots {
            interval.slots.insert(*slot, groups(steps));
        }
        let job = |job: &str| Job { job: job.into(), manager: "run".into(), user: String::new(), ..Job::default() };
        // Two slots of one job, one of another, the rest nobody's.
        let jobs = BTreeMap::from([(1, job("1")), (2, job("1")), (3, job("3"))]);
        let mut by_slot = Vec::new();
        interval.slots.values().for_each(|groups| merge_all(&mut by_slot, groups));
        let mut by_job = Vec::new();
        let stats = attribute(interval.slots.clone(), |lease| jobs.get(&lease));
        prop_assert!(stats.len() <= 3);
        stats.iter().for_each(|stats| merge_all(&mut by_job, &stats.groups));
        prop_assert_eq!(by_job, by_slot);
    }
}

#[test]
fn a_counter_that_fell_shows_zero_not_a_fortune() {
    let mut older = Group::unknown(&tables::SCHED, vec![]);
    older.set(Sched::forks, 10);
    let mut newer = older.clone();
    newer.set(Sched::forks, 3);
    assert_eq!(newer.since(&older).number(Sched::forks), Some(0));
}

#[test]
fn a_series_unknown_before_began_at_zero() {
    let block = |device: &str, ops| {
        let mut group = Group::unknown(&tables::BLOCK, vec![device.into(), "read".into()]);
        group.set(Block::ops, ops);
        group
    };
    let interval = since_all(&[block("sda", 5), block("sdb", 7)], &[block("sda", 2)]);
    let ops: Vec<_> = interval.iter().map(|group| group.number(Block::ops)).collect();
    assert_eq!(ops, [Some(3), Some(7)]);
}
