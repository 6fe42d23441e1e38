//! A row of `jobtrace usage`: what was held and used.

use serde::Serialize;

use super::HOUR_NS;
use crate::{
    record::head::Head,
    report::idle::{Cores, idle_gpu_ns, weight},
};

const HOUR_S: f64 = 3600.0;

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Whose it is; empty: unknown.
    pub key: String,
    /// Jobs: an id that is used again, or requeued, is another one.
    pub jobs: u64,
    /// Core hours held, while it was counted what was used.
    pub core_hours_held: f64,
    /// Core hours on CPU.
    pub core_hours_used: f64,
    /// Core hours held and not used: what each job leaves on each node, added up.
    pub idle_core_hours: f64,
    /// GPU hours held.
    pub gpu_hours_held: f64,
    /// GPU hours in which a kernel ran.
    pub gpu_hours_used: f64,
    /// GPU hours held and not used.
    pub idle_gpu_hours: f64,
    /// Memory allowed times the time, GiB hours, of jobs with a limit.
    pub memory_gib_hours_held: f64,
    /// The most memory that those jobs needed times the time.
    pub memory_gib_hours_used: f64,
    /// Core hours held by jobs without GPUs on nodes on which others held some.
    pub cpu_only_core_hours: f64,
    /// Those of them in which no other job was on the node, so that nobody was kept waiting.
    pub cpu_only_alone_core_hours: f64,
    /// Core hours held while what counts their use was detached: in no other sum.
    pub not_counted_core_hours: f64,
    /// Records that lack what they held or used: not in the sums.
    pub unknown: u64,
    /// The site's policies that it is over.
    pub policies: Vec<String>,
}

impl Row {
    /// Adds `share` of what the record of `head` holds; what a step uses of its job's cores, and what all of them leave,
    /// is for [`Self::add_cores`].
    pub(super) fn add_head<Text>(&mut self, head: &Head<Text>, share: f64) {
        let hours = |ns: Option<u64>| ns.unwrap_or(0) as f64 / HOUR_NS as f64 * share;
        match Cores::of(head) {
            Cores::Left(_) => {
                let counted_ns = head.core_counted_ns();
                self.core_hours_held += hours(counted_ns);
                let lacking_ns = head.core_held_ns.zip(counted_ns).map(|(all, part)| all - part);
                self.not_counted_core_hours += hours(lacking_ns);
                self.core_hours_used += hours(head.on_cpu_ns);
            }
            Cores::Used(_) => {}
            Cores::Unknown => self.unknown += 1,
        }
        if head.gpu_busy_ns.is_some() {
            self.gpu_hours_held += hours(head.gpu_held_ns);
            self.gpu_hours_used += hours(head.gpu_busy_ns);
        }
        self.idle_gpu_hours += hours(Some(idle_gpu_ns(head)));
        let memory = head.memory_limit_bytes.zip(head.memory_used_peak_bytes);
        // That of a step is within its job's.
        if let Some((limit, used)) = memory.filter(|_| head.step.is_none()) {
            let gib_hours = |byte_s: f64| byte_s / (1u64 << 30) as f64 / HOUR_S * share;
            let elapsed_s = head.elapsed_ns.unwrap_or(0) as f64 * HOUR_S / HOUR_NS as f64;
            let held = head.memory_held_byte_s.map(|byte_s| byte_s as f64);
            let used = used as f64 * elapsed_s;
            // As the limit was over time; what was needed counts for all of it, and so does that.
            let held = held.unwrap_or(limit as f64 * elapsed_s).max(used);
            self.memory_gib_hours_held += gib_hours(held);
            self.memory_gib_hours_used += gib_hours(used);
        }
    }

    /// Adds `share` of the cores of a part of a job on a node, of which all left `idle_ns` and each `left_ns`.
    pub(super) fn add_cores(&mut self, part: Cores, idle: Option<(u64, u64)>, share: f64) {
        let hours = |ns: u64| ns as f64 / HOUR_NS as f64 * share;
        match (part, idle) {
            (Cores::Left(ns), Some((idle_ns, left_ns))) if left_ns > 0 => {
                self.idle_core_hours += hours(idle_ns) * (ns as f64 / left_ns as f64);
            }
            (Cores::Used(ns), Some(_)) => self.core_hours_used += hours(ns),
            (Cores::Used(_), None) => self.unknown += 1,
            _ => {}
        }
    }

    /// What it left idle, as one number to put rows in order.
    pub(super) fn waste(&self) -> f64 {
        weight(self.idle_core_hours, self.idle_gpu_hours)
    }

    /// Adds the sums of `more`; the jobs of both may be the same ones.
    pub(super) fn add(&mut self, more: &Self) {
        self.core_hours_held += more.core_hours_held;
        self.core_hours_used += more.core_hours_used;
        self.not_counted_core_hours += more.not_counted_core_hours;
        self.idle_core_hours += more.idle_core_hours;
        self.gpu_hours_held += more.gpu_hours_held;
        self.gpu_hours_used += more.gpu_hours_used;
        self.idle_gpu_hours += more.idle_gpu_hours;
        self.memory_gib_hours_held += more.memory_gib_hours_held;
        self.memory_gib_hours_used += more.memory_gib_hours_used;
        self.unknown += more.unknown;
    }
}
