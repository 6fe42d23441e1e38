//! The agent's side of the table from cgroup id to slot; who writes what is told in
//! [`tracer_ebpf::ids`].

use anyhow::{Context, Result, ensure};
use aya::maps::Map;
use tracer_ebpf::ids::{self, HIERARCHIES, KERNEL_WAYS_FROM, SETS, SLOT_BITS, WAYS};

use super::words::Words;
use crate::model::job::Slot;

const ENTRIES: usize = (SETS * HIERARCHIES) as usize * WAYS;

/// The table.
pub struct IdTable(Words);

impl IdTable {
    /// The table in map `IDS`.
    ///
    /// # Errors
    /// When the map cannot be mapped.
    pub fn new(map: Map) -> Result<Self> {
        Words::map(map, "IDS", ENTRIES).map(Self)
    }

    /// Maps cgroup `id` of table `hierarchy` to `slot`.
    ///
    /// # Errors
    /// When its set has no free way, or the id is past what an entry holds.
    pub fn insert(&mut self, hierarchy: u32, id: u64, slot: Slot) -> Result<()> {
        ensure!(id < 1 << (64 - SLOT_BITS), "cgroup id {id} is past 48 bits");
        self.remove(hierarchy, id);
        let first = first_way(hierarchy, id);
        let free = (first..first + KERNEL_WAYS_FROM).find(|&at| self.0.get(at) == 0);
        let free = free.with_context(|| format!("no room to track cgroup {id}"))?;
        self.0.set(free, ids::entry(id, slot));
        Ok(())
    }

    /// Forgets cgroup `id` of table `hierarchy`, whoever entered it.
    pub fn remove(&mut self, hierarchy: u32, id: u64) {
        let first = first_way(hierarchy, id);
        for at in first..first + WAYS {
            if self.0.get(at) >> SLOT_BITS == id {
                self.0.set(at, 0);
            }
        }
    }

    /// Forgets every cgroup of `slot`.
    pub fn remove_slot(&mut self, slot: Slot) {
        for at in 0..ENTRIES {
            let entry = self.0.get(at);
            if entry != 0 && entry as Slot == slot {
                self.0.set(at, 0);
            }
        }
    }
}

fn first_way(hierarchy: u32, id: u64) -> usize {
    ids::set_of(hierarchy.min(HIERARCHIES - 1), id) as usize * WAYS
}
