//! HdrHistogram's interval log (`.hlog`): an interval's histograms in the form that its tools read.
//!
//! Pure. One line for each histogram that is not empty, told apart by its `Tag=`. Refuses other values
//! than the buckets': each stands at its bucket's upper bound.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use crate::model::{
    group::{Group, Value},
    hist::Hist,
    job::{Job, JobStats},
};

/// The last line of each log, a comment: a log without it is torn.
pub const END: &str = "#[End]\n";

/// An interval's histograms.
#[derive(Clone, Copy)]
pub struct HlogInterval<'a> {
    /// Wall time of its begin.
    pub start_wall_ns: u64,
    /// Its length.
    pub span_ns: u64,
    /// What the jobs did.
    pub jobs: &'a [JobStats],
}

/// The log of `intervals`, in their order; time stamps are seconds since the Unix epoch.
///
/// # Errors
/// None that its input could cause.
pub fn document(intervals: &[HlogInterval]) -> Result<String> {
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    if let Some(first) = intervals.first() {
        builder.with_start_time(UNIX_EPOCH + Duration::from_nanos(first.start_wall_ns));
    }
    let mut log = builder.begin_log_with(&mut text, &mut serializer)?;
    for interval in intervals {
        let start = Duration::from_nanos(interval.start_wall_ns);
        let span = Duration::from_nanos(interval.span_ns);
        for (tag, hist) in interval.jobs.iter().flat_map(histograms) {
            log.write_histogram(&hist.to_hdr(), start, span, Tag::new(&tag))
                .map_err(|error| anyhow!("cannot write an interval log: {error}"))?;
        }
    }
    drop(log);
    text.extend(END.as_bytes());
    Ok(String::from_utf8(text)?)
}

/// The histograms of `stats` that are not empty, with their tags.
fn histograms(stats: &JobStats) -> Vec<(String, &Hist)> {
    let mut found = Vec::new();
    for group in &stats.groups {
        for (field, value) in group.fields() {
            if let Some(Value::Histogram(hist)) = value
                && hist.count() > 0
            {
                found.push((tag(&stats.job, group, field.name), hist));
            }
        }
    }
    found
}

/// `manager/job/measurement.field`, and behind it the measurement's own tags: `/sda/read`. What a tag of
/// an interval log cannot hold is `_`.
fn tag(job: &Job, group: &Group, field: &str) -> String {
    let mut tag = format!("{}/{}/{}.{field}", job.manager, job.job, group.measurement.key);
    for own in &group.tags {
        tag.push('/');
        tag.push_str(own);
    }
    let is_refused = |c: char| c.is_control() || c == ',' || c.is_whitespace();
    tag.replace(is_refused, "_")
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{
        Deserializer,
        interval_log::{IntervalLogIterator, LogEntry},
    };

    use super::*;
    use crate::model::tables::{BLOCK, Block, SCHED, Sched};

    const SECOND: u64 = 1_000_000_000;

    fn stats(job: &str, groups: Vec<Group>) -> JobStats {
        let job =
            Job { job: job.into(), manager: "slurm".into(), user: "ada".into(), ..Job::default() };
        JobStats { job, groups }
    }

    #[test]
    fn the_counts_come_back() {
        let waits = Hist::from_buckets(150_000, 140_000, [(0, 5), (9, 2), (40, 1)]);
        let sizes = Hist::from_buckets(1 << 41, u64::MAX, [(60, 7), (127, 3)]);
        let mut sched = Group::unknown(&SCHED, vec![]);
        sched.set_hist(Sched::run_queue_wait_ns, waits.clone());
        sched.set_hist(Sched::sleep_ns, Hist::default());
        let mut block = Group::unknown(&BLOCK, vec!["sd a,b".into(), "read".into()]);
        block.set_hist(Block::size_bytes, sizes.clone());
        let jobs = [stats("42", vec![sched]), stats("4 3\n", vec![block])];
        let interval = |start| HlogInterval {
            start_wall_ns: start * SECOND,
            span_ns: 10 * SECOND,
            jobs: &jobs,
        };
        let text = document(&[interval(1_700_000_000), interval(1_700_000_010)]).unwrap();

        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(line) = entry.unwrap() else { continue };
            assert_eq!(line.duration(), Duration::from_secs(10));
            let base64 = line.encoded_histogram();
            let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, base64).unwrap();
            let hdr: hdrhistogram::Histogram<u64> =
                Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
            let tag = line.tag().unwrap().as_str().to_owned();
            found.push((line.start_timestamp().as_secs(), tag, hdr));
        }
        let waits_tag = "slurm/42/sched.run_queue_wait_ns";
        let sizes_tag = "slurm/4_3_/block.size_bytes/sd_a_b/read";
        let shown: Vec<_> = found.iter().map(|(at, tag, _)| (*at, tag.as_str())).collect();
        assert_eq!(
            shown,
            [
                (1_700_000_000, waits_tag),
                (1_700_000_000, sizes_tag),
                (1_700_000_010, waits_tag),
                (1_700_000_010, sizes_tag)
            ]
        );
        for (hist, (_, tag, hdr)) in [&waits, &sizes].iter().cycle().zip(&found) {
            assert_eq!(hdr.len(), hist.count(), "{tag}");
            for (index, count) in hist.buckets() {
                assert_eq!(hdr.count_at(hist.bound(index)), count, "bucket {index} of {tag}");
            }
        }
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n#[StartTime: 1700000000.000")
        );
        assert!(text.ends_with(END));
    }

    #[test]
    fn a_log_without_histograms_is_whole_all_the_same() {
        let text = document(&[]).unwrap();
        assert!(text.ends_with(END) && text.lines().all(|line| line.starts_with('#')), "{text}");
    }
}
