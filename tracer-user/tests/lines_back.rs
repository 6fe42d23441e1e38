//! Values written as lines and read back: what a report of many lines tells is what was measured.

use jobtrace::{
    lines::{
        decode::Skipped,
        gather::{Gathered, JobTold},
        line::encode,
        profile::{BucketStyle, Profile, points},
        read,
    },
    model::{
        group::{Group, Value, follow_all},
        hist::Hist,
        info::{Exit, JobInfo},
        job::{Job, JobStats},
        point::{FieldValue, Origin, Point},
        points::info_point,
        tables::{self, BLOCK, Block, CPU, Cpu, SCHED, Sched},
    },
};
use proptest::{collection::vec, option, prelude::*};
use tracer_ebpf::{loglinear::bucket_of, table::Kind};

const SPAN_NS: u64 = 10_000_000_000;

fn origin() -> Origin {
    Origin { cluster: "c 1".into(), host: "n,1".into() }
}

fn job() -> Job {
    Job { job: "4711".into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() }
}

/// Sums of histograms of such values stay below 2^51: up to there a float of public units says exactly which number
/// of held ones it was.
const MOST: u64 = 1 << 39;

fn hist() -> impl Strategy<Value = Hist> {
    let values = vec((0..MOST, 1..100_u64), 0..12);
    values.prop_map(|values| {
        let mut hist = Hist::default();
        for (value, times) in values {
            hist.add(bucket_of(value) as usize, times);
            hist.sum += value * times;
            hist.max = hist.max.max(value);
        }
        hist
    })
}

/// Any of the measurements, with values known and unknown.
fn group() -> impl Strategy<Value = Group> {
    let values = vec((option::of(0..MOST), option::of(hist())), 40);
    (0..tables::ALL.len(), values, "[a-z0-9 ,=]{1,8}").prop_map(|(table, values, tag)| {
        let table = tables::ALL[table];
        let mut group = Group::unknown(table, vec![tag; table.tags.len()]);
        let fields = table.fields.iter().zip(&mut group.values);
        for ((field, value), (number, hist)) in fields.zip(values) {
            *value = match field.kind {
                Kind::Histogram => hist.map(Value::Histogram),
                _ => number.map(Value::Number),
            };
        }
        group
    })
}

/// The series of one interval, each once and with something in it.
fn interval() -> impl Strategy<Value = Vec<Group>> {
    vec(group(), 0..6).prop_map(|groups| {
        let mut interval: Vec<Group> = Vec::new();
        for group in groups.into_iter().filter(|group| !group.is_idle()) {
            if !interval.iter().any(|known| known.same_series(&group)) {
                interval.push(group);
            }
        }
        interval
    })
}

fn text(groups: &[Group], style: BucketStyle, profile: Profile, time_ns: u64) -> String {
    let stats = JobStats { job: job(), groups: groups.to_vec() };
    let mut text = Vec::new();
    for point in points(&origin(), &stats, profile, style, time_ns, SPAN_NS) {
        encode(&point, &mut text);
    }
    String::from_utf8(text).unwrap()
}

fn gathered(texts: &[&str]) -> (Vec<JobTold>, Skipped) {
    let mut gathered = Gathered::default();
    for text in texts {
        read::points(text).for_each(|point| gathered.add(&point.unwrap()));
    }
    let skipped = gathered.skipped();
    (gathered.finish(), skipped)
}

fn sorted(mut groups: Vec<Group>) -> Vec<Group> {
    groups.sort_by_key(|group| (group.measurement.name, group.tags.clone()));
    groups
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn full_lines_tell_what_was_measured_in_any_order(
        first in interval(),
        second in interval(),
        style in proptest::sample::select(vec![BucketStyle::Le, BucketStyle::Prom, BucketStyle::Vmrange]),
        is_swapped in any::<bool>(),
    ) {
        let mut expected = first.clone();
        follow_all(&mut expected, &second);
        let first = text(&first, style, Profile::Full, 2 * SPAN_NS);
        let second = text(&second, style, Profile::Full, 3 * SPAN_NS);
        let texts = if is_swapped { [&*second, &*first] } else { [&*first, &*second] };
        let (told, skipped) = gathered(&texts);
        prop_assert_eq!(skipped, Skipped::default());
        if expected.is_empty() {
            prop_assert!(told.is_empty());
            return Ok(());
        }
        prop_assert_eq!(told.len(), 1);
        prop_assert_eq!((&told[0].origin, &told[0].stats.job), (&origin(), &job()));
        prop_assert_eq!(sorted(told[0].stats.groups.clone()), sorted(expected));
        let from_ns = if first.is_empty() { 2 } else { 1 } * SPAN_NS;
        prop_assert_eq!(told[0].from_ns, from_ns);
    }

    #[test]
    fn without_buckets_the_figures_of_an_interval_stay(hist in hist()) {
        let mut group = Group::unknown(&SCHED, Vec::new());
        group.set(Sched::on_cpu_ns, 1);
        group.set_hist(Sched::sleep_ns, hist.clone());
        let (told, _) = gathered(&[&text(&[group], BucketStyle::Le, Profile::Summary, SPAN_NS)]);
        let read = told[0].stats.group(&SCHED).unwrap().hist(Sched::sleep_ns).unwrap();
        let figures = |hist: &Hist| (hist.count(), hist.sum, hist.min(), hist.max, hist.quantiles());
        prop_assert_eq!(figures(read), figures(&hist));
    }

    #[test]
    fn no_text_ends_the_program(
        lines in vec((0..tables::ALL.len(), 0..30_usize, any::<i64>(), ".{0,6}"), 0..30),
    ) {
        let mut gathered = Gathered::default();
        for (table, field, number, tag) in lines {
            let table = tables::ALL[table];
            let field = table.fields[field % table.fields.len()].name;
            let number = number.unsigned_abs() >> 1;
            let metric = format!("{}.{field}", table.key);
            for line in [
                format!("{},host=n,job=1 {field}={number}i,{field}_count={number}i 5\n", table.name),
                format!("{},host=n,job=1 {field}_sum={number}i,{field}_min={number}.0 5\n", table.name),
                format!("job_hist,host=n,job=1,le=63,metric={metric} n={number}i 5\n"),
                format!("job_hist,host=n,job=1,le=+Inf,metric={metric} bucket={number}i 5\n"),
                format!("job_info,host=n,job=1 uid={number}i,name=\"a\",x={number}i 5\n"),
                format!("{tag},host=n {tag}={number}i 5\n"),
            ] {
                for point in read::points(&line).filter_map(Result::ok) {
                    gathered.add(&point);
                }
            }
        }
        for told in gathered.finish() {
            for (_, value) in told.stats.groups.iter().flat_map(Group::fields) {
                if let Some(Value::Histogram(hist)) = value {
                    prop_assert!(hist.count() <= 2 << 56);
                    let _ = hist.quantiles();
                }
            }
        }
    }
}

#[test]
fn what_no_table_has_is_skipped_and_counted() {
    let text = "\
        # DML\n\
        job_sched,cluster=c,host=n,job=1,rack=r7 on_cpu_ns=5i,share=0.5,sleep_ns_p42=1i 50\n\
        job_sched,host=n,job=1,manager=run forks=7.0 50\n\
        job_later,host=n,job=1 on_cpu_ns=5i 50\n\
        job_sched on_cpu_ns=5i 50\n\
        job_hist,host=n,job=1,le=64,metric=sched.sleep_ns n=1i 50\n\
        job_hist,host=n,job=1,le=63,metric=sched.forks n=1i 50\n\
        job_info,host=n,job=1 name=5i,uid=7i,sched_on_cpu_ns=9i,sched_later_ns=9i 50\n";
    let (told, skipped) = gathered(&[text]);
    assert_eq!(skipped, Skipped { lines: 4, fields: 5, tags: 1 });
    let of = |cluster: &str, manager: &str| {
        let is_it =
            |told: &&JobTold| told.origin.cluster == cluster && told.stats.job.manager == manager;
        told.iter().find(is_it).unwrap().clone()
    };
    let first = of("c", "");
    assert_eq!(first.stats.group(&SCHED).unwrap().number(Sched::on_cpu_ns), Some(5));
    assert_eq!((first.from_ns, first.to_ns), (50, 50), "no line says how long");
    assert_eq!(of("", "run").stats.group(&SCHED).unwrap().number(Sched::forks), None);
    let info = of("", "");
    let fields: Vec<_> = info.facts.fields().collect();
    assert_eq!(fields, [("uid".into(), FieldValue::Integer(7))]);
    assert_eq!(info.totals, [("sched_on_cpu_ns".to_owned(), FieldValue::Integer(9))].into());
}

#[test]
fn the_newest_facts_and_states_stand() {
    let info = JobInfo { name: "a".into(), start_wall_ns: 3, ..JobInfo::default() };
    let line = |point: &Point| {
        let mut text = Vec::new();
        encode(point, &mut text);
        String::from_utf8(text).unwrap()
    };
    let begun = line(&info_point(&origin(), &job(), &info, None, None, 10));
    let exit = Exit { code: Some(3), signal: None };
    let renamed = JobInfo { name: "b".into(), ..info };
    let ended = line(&info_point(&origin(), &job(), &renamed, Some((20, exit)), Some(17), 20));
    let cpu = |held| {
        let mut cpu = Group::unknown(&CPU, Vec::new());
        cpu.set(Cpu::cores_held, held);
        cpu.set(Cpu::tasks, 2);
        cpu.set(Cpu::throttled_ns, 4);
        cpu
    };
    let early = text(&[cpu(1_500)], BucketStyle::Le, Profile::Summary, 10);
    let late = text(&[cpu(2_000)], BucketStyle::Le, Profile::Summary, 20);
    let (told, _) = gathered(&[&ended, &late, &begun, &early]);
    let known: Vec<_> = told[0].facts.fields().collect();
    assert!(known.contains(&("name".into(), FieldValue::Text("b".into()))), "{known:?}");
    assert!(known.contains(&("exit".into(), FieldValue::Integer(3))), "{known:?}");
    let cpu = told[0].stats.group(&CPU).unwrap();
    assert_eq!(cpu.number(Cpu::cores_held), Some(2_000));
    assert_eq!((cpu.number(Cpu::tasks), cpu.number(Cpu::throttled_ns)), (Some(2), Some(8)));
}

#[test]
fn log2_buckets_stand_at_the_highest_of_theirs() {
    let mut block = Group::unknown(&BLOCK, vec!["vda".into(), "read".into()]);
    block.set_hist(Block::size_bytes, Hist::from_buckets(9_000, 4096, [(24, 1), (25, 2)]));
    let text = text(&[block], BucketStyle::Le, Profile::Histogram, SPAN_NS);
    let (told, skipped) = gathered(&[&text]);
    assert_eq!(skipped, Skipped::default());
    let read = told[0].stats.group(&BLOCK).unwrap().hist(Block::size_bytes).unwrap();
    assert_eq!((read.sum, read.max), (9_000, 4096));
    assert_eq!(read.buckets().collect::<Vec<_>>(), [(27, 3)]);
}
