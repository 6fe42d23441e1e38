//! Export profiles: what each writes, and that quantiles taken from the buckets the way Prometheus and
//! VictoriaMetrics take them are those of the histogram.

use std::collections::BTreeMap;

use jobtrace::{
    lines::{
        line,
        profile::{BucketStyle, Profile, Profiles, points},
    },
    model::{
        group::Group,
        hist::{Hist, QUANTILES},
        job::{Job, JobStats},
        point::{FieldValue, Origin, Point},
        tables::{BLOCK, Block, SCHED, Sched},
    },
};
use proptest::{collection::vec, prelude::*};
use tracer_ebpf::loglinear::{bucket_low, bucket_of};

const STYLES: [BucketStyle; 3] = [BucketStyle::Le, BucketStyle::Prom, BucketStyle::Vmrange];

fn job(job: &str, manager: &str) -> Job {
    Job { job: job.into(), manager: manager.into(), user: "ada".into(), ..Job::default() }
}

fn stats(waits: Hist) -> JobStats {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, 5);
    sched.set_hist(Sched::run_queue_wait_ns, waits);
    JobStats { job: job("42", "slurm"), groups: vec![sched] }
}

fn lines(stats: &JobStats, profile: Profile, style: BucketStyle) -> Vec<String> {
    let origin = Origin { cluster: String::new(), host: "n1".into() };
    let mut text = Vec::new();
    let points = points(&origin, stats, profile, style, 20_000_000_000, 13_000_000_000);
    points.iter().for_each(|point| line::encode(point, &mut text));
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn each_profile_has_its_lines() {
    let mut stats = stats(Hist::from_buckets(900, 700, [(5, 2), (6, 1), (9, 1)]));
    let mut block = Group::unknown(&BLOCK, vec!["sda".into(), "read".into()]);
    block.set_hist(Block::size_bytes, Hist::from_buckets(4096, 4096, [(20, 1)]));
    stats.groups.push(block);
    let tail = |from: usize, lines: Vec<String>| {
        let bucket = |line: &String| line.strip_prefix("job_hist,").unwrap().to_owned();
        lines[from..].iter().map(bucket).collect::<Vec<_>>()
    };
    let tags = "host=n1,job=42";
    let more = "manager=slurm,metric=sched.run_queue_wait_ns,user=ada";
    let block = "device=sda,host=n1,job=42";
    let size = "manager=slurm,metric=block.size_bytes,op=read,user=ada";
    let at = "20000000000";

    let summary = lines(&stats, Profile::Summary, BucketStyle::Le);
    assert_eq!(
        summary[0],
        format!(
            "job_sched,host=n1,job=42,manager=slurm,user=ada on_cpu_ns=5i,run_queue_wait_ns_count=4i,\
             run_queue_wait_ns_sum=900i,run_queue_wait_ns_min=320i,run_queue_wait_ns_max=700i,\
             run_queue_wait_ns_p50=383i,run_queue_wait_ns_p90=700i,run_queue_wait_ns_p99=700i,\
             run_queue_wait_ns_p999=700i,interval_ns=13000000000i {at}"
        )
    );
    assert_eq!(summary.len(), 2, "{summary:?}");
    assert!(summary[1].ends_with(&format!("interval_ns=13000000000i {at}")), "{summary:?}");

    let histogram = lines(&stats, Profile::Histogram, BucketStyle::Le);
    assert_eq!(histogram[..2], summary);
    let expected = [
        format!("{tags},le=511,{more} n=3i {at}"),
        format!("{tags},le=1023,{more} n=1i {at}"),
        format!("{block},le=8191,{size} n=1i {at}"),
    ];
    assert_eq!(tail(2, histogram), expected);

    let full = lines(&stats, Profile::Full, BucketStyle::Le);
    let expected = [
        format!("{tags},le=383,{more} n=2i {at}"),
        format!("{tags},le=447,{more} n=1i {at}"),
        format!("{tags},le=767,{more} n=1i {at}"),
        format!("{block},le=5119,{size} n=1i {at}"),
    ];
    assert_eq!(tail(2, full), expected);

    let ranges = lines(&stats, Profile::Histogram, BucketStyle::Vmrange);
    let tags = "host=n1,job=42,manager=slurm,metric=sched.run_queue_wait_ns,user=ada";
    let expected = format!("job_hist,{tags},vmrange=255...511 bucket=3i {at}");
    assert_eq!(ranges[2], expected);
}

#[test]
fn a_job_goes_before_its_manager_and_the_manager_before_the_rest() {
    let text = r#"{"by_manager":{"slurm":"histogram","none":"summary"},"by_job":{"42":"full"}}"#;
    let profiles: Profiles = serde_json::from_str(text).unwrap();
    for (id, manager, expected) in [
        ("42", "slurm", Profile::Full),
        ("43", "slurm", Profile::Histogram),
        ("42", "pbs", Profile::Full),
        ("7", "pbs", Profile::Summary),
        ("_system", "none", Profile::Summary),
    ] {
        assert_eq!(profiles.of(&job(id, manager)), expected, "{manager} {id}");
    }
    assert_eq!(Profiles::default().of(&job("1", "run")), Profile::Summary);
    let error = serde_json::from_str::<Profiles>(r#"{"by_user":{}}"#).unwrap_err().to_string();
    assert!(error.contains("by_user"), "{error}");
    assert!(serde_json::from_str::<Profiles>(r#"{"default":"fine"}"#).is_err());
}

/// Counts by the tag that tells buckets apart, of any number of intervals and nodes: what
/// `sum by (le) (sum_over_time(job_hist_bucket[…]))` gives.
fn summed(intervals: &[Hist], profile: Profile, style: BucketStyle) -> BTreeMap<String, u64> {
    let origin = Origin::default();
    let mut sums = BTreeMap::new();
    for hist in intervals {
        let points = points(&origin, &stats(hist.clone()), profile, style, 0, 0);
        for Point { tags, fields, .. } in points.iter().filter(|p| p.measurement == "job_hist") {
            let (_, bucket) = tags.iter().find(|(key, _)| key == style.tag()).unwrap();
            let [(field, FieldValue::Integer(count))] = &fields[..] else { panic!("{fields:?}") };
            assert_eq!(field, style.field());
            *sums.entry(bucket.clone()).or_default() += count;
        }
    }
    sums
}

/// Cumulative counts by upper bound, in order. Ranges are added up as MetricsQL does: with a zero at each
/// lower bound that no range ends at.
fn cumulative(sums: &BTreeMap<String, u64>, style: BucketStyle) -> Vec<(f64, f64)> {
    let bound = |text: &str| text.parse::<f64>().unwrap();
    let mut bounds: Vec<(f64, f64)> = Vec::new();
    match style {
        BucketStyle::Prom => {
            bounds.extend(sums.iter().map(|(le, count)| (bound(le), *count as f64)));
            bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        BucketStyle::Vmrange | BucketStyle::Le => {
            let mut ranges: Vec<_> = sums
                .iter()
                .map(|(range, count)| {
                    let (lower, upper) = range.split_once("...").unwrap();
                    (bound(lower), bound(upper), *count as f64)
                })
                .collect();
            ranges.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut total = 0.0;
            for (lower, upper, count) in ranges {
                if bounds.last().is_none_or(|(last, _)| *last < lower) {
                    bounds.push((lower, total));
                }
                total += count;
                bounds.push((upper, total));
            }
        }
    }
    bounds
}

/// The bucket in which `histogram_quantile` finds its answer, between whose ends it interpolates.
fn quantile_bucket(bounds: &[(f64, f64)], q: f64) -> (f64, f64) {
    assert!(bounds.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "cumulative: {bounds:?}");
    let rank = q * bounds.last().unwrap().1;
    let at = bounds.iter().position(|(_, count)| *count >= rank).unwrap();
    (if at == 0 { 0.0 } else { bounds[at - 1].0 }, bounds[at].0)
}

fn hist() -> impl Strategy<Value = Hist> {
    let values = vec((6..43_u32, any::<u32>()), 0..20);
    values.prop_map(|values| {
        let values =
            values.into_iter().map(|(power, low)| (1_u64 << power) + u64::from(low) % (1 << power));
        let mut hist = Hist::default();
        for value in values {
            hist.merge(&Hist::from_buckets(value, value, [(bucket_of(value) as usize, 1)]));
        }
        hist
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn quantiles_from_summed_buckets_are_the_histograms(
        intervals in vec(hist(), 1..6),
        profile in prop_oneof![Just(Profile::Histogram), Just(Profile::Full)],
        style in prop_oneof![Just(BucketStyle::Prom), Just(BucketStyle::Vmrange)],
    ) {
        let mut whole = Hist::default();
        intervals.iter().for_each(|hist| whole.merge(hist));
        let sums = summed(&intervals, profile, style);
        let Some(quantiles) = whole.quantiles() else {
            prop_assert!(sums.is_empty());
            return Ok(());
        };
        let bounds = cumulative(&sums, style);
        prop_assert_eq!(bounds.last().unwrap().1, whole.count() as f64);
        for ((name, q), value) in QUANTILES.iter().zip(quantiles) {
            let (lower, upper) = quantile_bucket(&bounds, *q);
            prop_assert!(lower < value as f64 && value as f64 <= upper, "{name} {value}: {lower} {upper}");
            // As narrow as the profile promises.
            let index = bucket_of(value) as usize;
            if profile == Profile::Full && index < 127 {
                let below = if index == 0 { 0 } else { bucket_low(index) - 1 };
                prop_assert_eq!((lower, upper), (below as f64, bucket_low(index + 1) as f64 - 1.0));
            } else if upper.is_finite() && upper > 64.0 {
                prop_assert_eq!(lower, ((upper as u64).div_ceil(2) - 1) as f64);
            }
        }
    }

    #[test]
    fn no_style_loses_a_count(hist in hist(), profile in prop_oneof![Just(Profile::Histogram), Just(Profile::Full)]) {
        for style in STYLES {
            let sums = summed(std::slice::from_ref(&hist), profile, style);
            let total = match style {
                BucketStyle::Prom => sums.get("+Inf").copied().unwrap_or(0),
                _ => sums.values().sum(),
            };
            prop_assert_eq!(total, hist.count());
        }
    }
}
