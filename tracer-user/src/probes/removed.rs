//! Cgroups that were removed: their entries stay a while for late completions of their write-back.

use std::time::{Duration, Instant};

use super::{events::Cgroup, id_table::IdTable};

/// A removed cgroup is remembered this long.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// Cgroups removed, and when; the oldest first.
#[derive(Default)]
pub struct Removed(Vec<(Instant, Cgroup)>);

impl Removed {
    /// Keeps the entry of a removed cgroup, as long as its set in `ids` has room for new ones.
    pub fn remember(&mut self, cgroup: Cgroup, now: Instant, ids: &mut IdTable) {
        self.0.push((now, cgroup));
        while ids.is_crowded(cgroup.table, cgroup.id) {
            let same_set = |(_, other): &(Instant, Cgroup)| ids.shares_set(*other, cgroup);
            let Some(oldest) = self.0.iter().position(same_set) else { return };
            let (_, oldest) = self.0.remove(oldest);
            ids.remove(oldest.table, oldest.id);
        }
    }

    /// Clears the entries of cgroups removed a while before `now`.
    pub fn forget(&mut self, now: Instant, ids: &mut IdTable) {
        self.0.retain(|&(at, cgroup)| {
            let keep = now.duration_since(at) < FORGET_AFTER;
            if !keep {
                ids.remove(cgroup.table, cgroup.id);
            }
            keep
        });
    }
}
