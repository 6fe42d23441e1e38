//! What jobs held and did not use: the one definition of "idle" for lists and sums.
//!
//! Cores are those of a job on a node: what its records left of what they held, less what its steps used where these are
//! told apart, never negative. GPUs are those of each record. Added up from there, all lists and sums agree. Core hours
//! and GPU hours are never added to each other; one number of both only puts rows in order.

use crate::{record::head::Head, view::rules::CORES_OF_A_GPU};

/// Core time of a part of a job, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cores {
    /// Held and not used.
    Left(u64),
    /// Used by a step, of what its job holds.
    Used(u64),
    /// Nobody knows what was held, or what was used.
    Unknown,
}

impl Cores {
    /// What `head` tells.
    pub fn of<Text>(head: &Head<Text>) -> Self {
        match (head.core_counted_ns(), head.on_cpu_ns) {
            (Some(held), Some(used)) => Self::Left(held.saturating_sub(used)),
            (None, Some(used)) if head.step.is_some() => Self::Used(used),
            _ => Self::Unknown,
        }
    }

    /// What it left, 0 of others.
    pub fn left_ns(self) -> u64 {
        if let Self::Left(ns) = self { ns } else { 0 }
    }

    /// What all `parts` of a job on one node left; `None` where nobody knows what it held.
    pub fn idle_ns(parts: impl Iterator<Item = Self>) -> Option<u64> {
        let (mut left, mut used_ns) = (None, 0u64);
        for part in parts {
            match part {
                Self::Left(ns) => left = Some(ns.saturating_add(left.unwrap_or(0))),
                Self::Used(ns) => used_ns = used_ns.saturating_add(ns),
                Self::Unknown => {}
            }
        }
        left.map(|ns: u64| ns.saturating_sub(used_ns))
    }
}

/// GPU time that a part of a job held and did not use, ns; nothing where either is unknown.
pub(super) fn idle_gpu_ns<Text>(head: &Head<Text>) -> u64 {
    let both = head.gpu_held_ns.zip(head.gpu_busy_ns);
    both.map_or(0, |(held, busy)| held.saturating_sub(busy))
}

/// One number of both, to put things in order.
pub(super) fn weight(core_hours: f64, gpu_hours: f64) -> f64 {
    core_hours + gpu_hours * CORES_OF_A_GPU as f64
}
