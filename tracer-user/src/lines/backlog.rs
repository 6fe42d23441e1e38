//! Intervals that wait to be written, while the disk refuses.
//!
//! Pure: it writes nothing and says nothing. Every interval goes through it, so that nothing measured
//! depends on the disk; past the caps the two oldest become one, which costs resolution and no count.

use std::{collections::VecDeque, mem::size_of};

use serde::{Deserialize, Serialize};
use tracer_ebpf::loglinear::BUCKETS;

use crate::model::{
    group::{Group, Value, follow_all},
    job::JobStats,
    point::{FieldValue, Point},
};

/// Attempts grow rarer up to one in so many intervals: each encodes all that waits.
const RAREST: u64 = 8;

/// An interval not yet written.
#[derive(Clone, Debug, PartialEq)]
pub struct Pending {
    /// Time stamp of its points: the wall time of its end, on the grid unless the agent ended.
    pub stamp_ns: u64,
    /// Its length by CLOCK_MONOTONIC.
    pub span_ns: u64,
    /// What the jobs did, and what the tracing cost; no series twice.
    pub jobs: Vec<JobStats>,
    /// Points that are no interval's (`job_info`), with time stamps of their own.
    pub facts: Vec<Point>,
}

/// What may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Caps {
    /// Intervals, at least two.
    pub intervals: usize,
    /// Bytes of memory, as estimated.
    pub bytes: usize,
}

impl Default for Caps {
    /// An hour of intervals of 10 s, 32 MiB.
    fn default() -> Self {
        Self { intervals: 360, bytes: 32 << 20 }
    }
}

/// The intervals that wait, in their order.
#[derive(Debug)]
pub struct Backlog {
    caps: Caps,
    pending: VecDeque<(usize, Pending)>,
    bytes: usize,
    merged: u64,
    failures: u32,
    pause: u64,
}

impl Pending {
    /// Wall time of its begin, nanoseconds since the Unix epoch.
    pub fn start_ns(&self) -> u64 {
        self.stamp_ns.saturating_sub(self.span_ns)
    }

    /// Appends the interval `later`.
    fn follow(&mut self, later: Self) {
        self.stamp_ns = later.stamp_ns;
        self.span_ns = self.span_ns.saturating_add(later.span_ns);
        for stats in later.jobs {
            match self.jobs.iter_mut().find(|known| known.job == stats.job) {
                Some(known) => follow_all(&mut known.groups, &stats.groups),
                None => self.jobs.push(stats),
            }
        }
        for point in later.facts {
            let is_same =
                |known: &Point| known.measurement == point.measurement && known.tags == point.tags;
            self.facts.retain(|known| !is_same(known));
            self.facts.push(point);
        }
    }

    /// Bytes of memory it takes, as estimated: within a few of each hundred.
    fn bytes(&self) -> usize {
        let of_group = |group: &Group| {
            let is_full = |value: &&Option<Value>| matches!(value, Some(Value::Histogram(hist)) if hist.buckets().next().is_some());
            let hists = group.values.iter().filter(is_full).count();
            size_of::<Group>()
                + group.values.len() * size_of::<Option<Value>>()
                + hists * BUCKETS * size_of::<u64>()
                + group.tags.iter().map(|tag| size_of::<String>() + tag.len()).sum::<usize>()
        };
        let of_job = |stats: &JobStats| {
            let names = stats.job.job.len() + stats.job.manager.len() + stats.job.user.len();
            size_of::<JobStats>() + names + stats.groups.iter().map(of_group).sum::<usize>()
        };
        let of_point = |point: &Point| {
            let tags = point.tags.iter().map(|(key, value)| 48 + key.len() + value.len());
            let fields = point.fields.iter().map(|(key, value)| {
                let text = if let FieldValue::Text(text) = value { text.len() } else { 0 };
                size_of::<(String, FieldValue)>() + key.len() + text
            });
            size_of::<Point>() + tags.sum::<usize>() + fields.sum::<usize>()
        };
        size_of::<Self>()
            + self.jobs.iter().map(of_job).sum::<usize>()
            + self.facts.iter().map(of_point).sum::<usize>()
    }
}

impl Backlog {
    /// An empty backlog.
    pub fn new(caps: Caps) -> Self {
        Self { caps, pending: VecDeque::new(), bytes: 0, merged: 0, failures: 0, pause: 0 }
    }

    /// Adds the newest interval. Past the caps the two oldest become one; where even that does not help
    /// (more jobs were seen than fit), the oldest is given back: its numbers are lost, and counted by
    /// the caller. The newest always stays.
    #[must_use = "what is given back is lost, and must be counted"]
    pub fn push(&mut self, interval: Pending) -> Vec<Pending> {
        self.pause = self.pause.saturating_sub(1);
        let bytes = interval.bytes();
        self.bytes += bytes;
        self.pending.push_back((bytes, interval));
        let mut lost = Vec::new();
        while self.is_over() && self.pending.len() > 1 {
            let oldest = self.take_oldest();
            // The newest keeps its own span: it is the one that a reader waits for.
            if self.pending.len() == 1 {
                lost.extend(oldest);
            } else if let (Some(mut oldest), Some(next)) = (oldest, self.take_oldest()) {
                oldest.follow(next);
                self.merged += 1;
                let bytes = oldest.bytes();
                self.bytes += bytes;
                self.pending.push_front((bytes, oldest));
            }
        }
        lost
    }

    /// All that waits, the oldest first; each is written with its own stamp and span.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> + Clone {
        self.pending.iter().map(|(_, pending)| pending)
    }

    /// Whether to try to write now: always, but ever more rarely after failures.
    pub fn is_due(&self) -> bool {
        self.pause == 0 && !self.pending.is_empty()
    }

    /// All that waits has been written.
    pub fn written(&mut self) {
        self.pending.clear();
        self.bytes = 0;
        self.failures = 0;
        self.pause = 0;
    }

    /// It could not be written. Gives how many attempts failed in a row, so that the first can be told.
    pub fn failed(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.pause = 1_u64.checked_shl(self.failures - 1).unwrap_or(RAREST).min(RAREST);
        self.failures
    }

    /// Attempts that failed in a row, up to now.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Intervals that were merged into the one before them, since the start.
    pub fn merged(&self) -> u64 {
        self.merged
    }

    fn take_oldest(&mut self) -> Option<Pending> {
        let (bytes, oldest) = self.pending.pop_front()?;
        self.bytes -= bytes;
        Some(oldest)
    }

    fn is_over(&self) -> bool {
        self.pending.len() > self.caps.intervals.max(2) || self.bytes > self.caps.bytes
    }
}
