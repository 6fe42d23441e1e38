//! What the kernel has counted up to a moment, and what came between two moments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    group::{Group, since_all},
    lease::Lease,
};

/// Cumulative values of every slot at one moment, and the last ones of those that ended since the
/// snapshot before.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// CLOCK_MONOTONIC: spans are differences of this.
    pub monotonic_ns: u64,
    /// Groups of each lease of a slot.
    pub slots: BTreeMap<Lease, Vec<Group>>,
    /// The tracing's own groups (`jobtrace_self`), and those of the node's devices (agent).
    pub own: Vec<Group>,
}

/// What came between two snapshots.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Interval {
    /// Wall time of its end, the time stamp of its points.
    pub end_wall_ns: u64,
    /// Its length by CLOCK_MONOTONIC.
    pub span_ns: u64,
    /// Groups of each lease of a slot.
    pub slots: BTreeMap<Lease, Vec<Group>>,
    /// The tracing's own groups.
    pub own: Vec<Group>,
}

impl Snapshot {
    /// What came since `older`; a slot that `older` lacks began at zero.
    pub fn since(&self, older: &Self) -> Interval {
        let slot = |(slot, groups): (&Lease, &Vec<Group>)| {
            let before = older.slots.get(slot).map_or(&[][..], Vec::as_slice);
            (*slot, since_all(groups, before))
        };
        Interval {
            end_wall_ns: self.wall_ns,
            span_ns: self.monotonic_ns.saturating_sub(older.monotonic_ns),
            slots: self.slots.iter().map(slot).collect(),
            own: since_all(&self.own, &older.own),
        }
    }
}
