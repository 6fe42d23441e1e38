//! Points of `job_hist`: the buckets of a job's histograms, one series each.

use super::{
    buckets::{BucketStyle, Width, rows},
    group::{Group, Value},
    job::JobStats,
    point::{FieldValue, Origin, Point},
};

/// Name of the measurement.
pub const JOB_HIST: &str = "job_hist";

/// One point for each non-empty bucket of each histogram of `stats`, an interval: `n` is the count of
/// this bucket alone, not cumulative.
pub fn hist_points(origin: &Origin, stats: &JobStats, time_ns: u64) -> Vec<Point> {
    bucket_points(origin, stats, Width::Fine, BucketStyle::Le, time_ns)
}

/// One point for each bucket of each histogram of `stats`, an interval, that `width` and `style` ask for.
pub fn bucket_points(
    origin: &Origin,
    stats: &JobStats,
    width: Width,
    style: BucketStyle,
    time_ns: u64,
) -> Vec<Point> {
    let job_tags = origin.job_tags(&stats.job);
    let mut points = Vec::new();
    for group in &stats.groups {
        for (metric, tag, count) in group_rows(group, width, style) {
            let mut tags = job_tags.clone();
            tags.extend(group.own_tags());
            tags.push(("metric".into(), metric));
            tags.push((style.tag().into(), tag));
            let fields = vec![(style.field().into(), FieldValue::Integer(count))];
            points.push(Point { measurement: JOB_HIST.into(), tags, fields, time_ns });
        }
    }
    points
}

/// Metric, bucket and count of each bucket of `group`.
fn group_rows(group: &Group, width: Width, style: BucketStyle) -> Vec<(String, String, u64)> {
    let mut all = Vec::new();
    for (field, value) in group.fields() {
        let Some(Value::Histogram(hist)) = value else { continue };
        let metric = format!("{}.{}", group.measurement.key, field.name);
        let rows = rows(hist, field.unit, width, style);
        all.extend(rows.into_iter().map(|(tag, count)| (metric.clone(), tag, count)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        buckets::le,
        hist::Hist,
        job::Job,
        tables::{BLOCK, Block, SCHED, Sched},
    };
    use tracer_ebpf::table::Unit;

    fn origin() -> Origin {
        Origin { cluster: String::new(), host: "n1".into() }
    }

    fn stats(group: Group) -> JobStats {
        JobStats { job: Job::system(), groups: vec![group] }
    }

    fn tag<'a>(point: &'a Point, key: &str) -> Option<&'a str> {
        point.tags.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_non_empty_bucket_is_a_point() {
        let mut group = Group::unknown(&SCHED, vec![]);
        group.set(Sched::on_cpu_ns, 5);
        group.set_hist(Sched::run_queue_wait_ns, Hist::from_buckets(100, 70, [(0, 2), (1, 1)]));
        group.set_hist(Sched::sleep_ns, Hist::default());
        let points = hist_points(&origin(), &stats(group), 9);
        let shown: Vec<_> = points
            .iter()
            .map(|p| (tag(p, "metric").unwrap(), tag(p, "le").unwrap(), p.fields[0].clone()))
            .collect();
        let n = |count| ("n".into(), FieldValue::Integer(count));
        assert_eq!(
            shown,
            [("sched.run_queue_wait_ns", "63", n(2)), ("sched.run_queue_wait_ns", "127", n(1))]
        );
        assert!(points.iter().all(|p| p.measurement == "job_hist" && p.time_ns == 9));
        assert_eq!(tag(&points[0], "job"), Some("_system"));
        assert_eq!(tag(&points[0], "host"), Some("n1"));
    }

    #[test]
    fn the_measurements_own_tags_tell_the_buckets_apart() {
        let mut group = Group::unknown(&BLOCK, vec!["sda".into(), "read".into()]);
        group.set_hist(Block::size_bytes, Hist::from_buckets(4096, 4096, [(28, 1)]));
        let points = hist_points(&origin(), &stats(group), 0);
        assert_eq!(tag(&points[0], "device"), Some("sda"));
        assert_eq!(tag(&points[0], "op"), Some("read"));
        assert_eq!(tag(&points[0], "metric"), Some("block.size_bytes"));
    }

    #[test]
    fn bounds_are_in_the_public_unit() {
        assert_eq!(le(Unit::Nanoseconds, 0), "63");
        let of_512_watts = tracer_ebpf::loglinear::bucket_of(512_000) as usize;
        assert_eq!(le(Unit::Milliwatts, of_512_watts), "524.287");
        assert_eq!(le(Unit::PartsPerMillion, 127), i64::MAX.to_string());
    }

    #[test]
    fn a_bucket_keeps_its_bound_whatever_the_largest_value() {
        let hist = |max| Hist::from_buckets(max, max, [(40, 1), (127, 1)]);
        let bounds = |max| {
            let mut group = Group::unknown(&SCHED, vec![]);
            group.set_hist(Sched::sleep_ns, hist(max));
            let points = hist_points(&origin(), &stats(group), 0);
            points.iter().map(|p| tag(p, "le").unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(bounds(u64::MAX), bounds(33_000));
        assert_eq!(bounds(1)[1], i64::MAX.to_string());
    }
}
