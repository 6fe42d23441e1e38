//! What a tracer itself takes of a node full of jobs: time on a CPU, resident memory, BPF maps.

use super::subjects::{Place, Subject};
use crate::bench::jobs::{Jobs, Loop};
use crate::bench::watch::{read_cpu, read_rss_bytes};
use crate::process::say;
use anyhow::Result;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Jobs on the node, each of one process that wakes ten times a second.
pub const JOBS: usize = 100;

/// One tracer at one interval.
pub struct Row {
    /// The tracer.
    pub subject: &'static str,
    /// Between two readings.
    pub interval_s: u64,
    /// What was seen, or why nothing was.
    pub taken: Result<Taken, String>,
}

/// What it took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// Watched so long.
    pub span: Duration,
    /// User and system time as a part of one core.
    pub core_ratio: f64,
    /// Resident at the end.
    pub rss_bytes: u64,
    /// Resident at its peak.
    pub peak_rss_bytes: u64,
    /// Its BPF maps.
    pub map_bytes: u64,
}

/// Watches each tracer that tells at intervals, at each of these: (interval, span) in seconds.
///
/// # Errors
/// When the jobs cannot be made.
pub fn measure(place: &Place, subjects: &[Subject], spans: &[(u64, u64)]) -> Result<Vec<Row>> {
    let jobs = Jobs::start(JOBS, Loop::default())?;
    let mut rows = Vec::new();
    for subject in subjects.iter().filter(|subject| subject.has_interval()) {
        for &(interval_s, span_s) in spans {
            say(format_args!(
                "{}, {} jobs, every {interval_s} s: {span_s} s",
                subject.id(),
                jobs.count(),
            ));
            let taken = watch(place, *subject, interval_s, Duration::from_secs(span_s));
            let taken = taken.map_err(|error| format!("{error:#}"));
            rows.push(Row { subject: subject.id(), interval_s, taken });
        }
    }
    Ok(rows)
}

fn watch(place: &Place, subject: Subject, interval_s: u64, span: Duration) -> Result<Taken> {
    let mut beside = subject.start(place, interval_s)?;
    let attached = &mut beside.attached;
    let (begin, cpu_before) = (Instant::now(), read_cpu(attached.process())?);
    sleep(span);
    let (span, cpu) = (begin.elapsed(), read_cpu(attached.process())?);
    attached.look();
    let taken = Taken {
        span,
        core_ratio: (cpu - cpu_before).as_secs_f64() / span.as_secs_f64(),
        rss_bytes: read_rss_bytes(attached.process())?,
        peak_rss_bytes: attached.watch.peak_rss_bytes,
        map_bytes: attached.watch.map_bytes.values().sum(),
    };
    beside.end()?;
    Ok(taken)
}
