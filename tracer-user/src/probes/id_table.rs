//! The agent's side of the table from cgroup id to slot; who writes what is told in
//! [`tracer_ebpf::ids`].

use anyhow::{Context, Result, ensure};
use aya::maps::{Map, MapData};
use tracer_ebpf::ids::{self, HIERARCHIES, KERNEL_WAYS_FROM, SETS, SLOT_BITS, WAYS};

use super::events::Cgroup;
use crate::{bpf::words::Words, model::lease::Slot};

const ENTRIES: usize = (SETS * HIERARCHIES) as usize * WAYS;

/// The table.
pub struct IdTable(Words);

impl IdTable {
    /// The table in map `IDS`.
    ///
    /// # Errors
    /// When the map cannot be mapped.
    pub fn new(map: Map) -> Result<Self> {
        Words::map(map, "IDS").map(Self)
    }

    /// The map itself.
    pub fn data(&self) -> &MapData {
        self.0.data()
    }

    /// Maps cgroup `id` of table `hierarchy` to `slot`.
    ///
    /// # Errors
    /// When its set has no free way, or the id is past what an entry holds.
    pub fn insert(&mut self, hierarchy: u32, id: u64, slot: Slot) -> Result<()> {
        ensure!(id < 1 << (64 - SLOT_BITS), "cgroup id {id} is past 48 bits");
        let first = first_way(hierarchy, id);
        // In its place, wherever that is: a task that switches meanwhile finds the one or the other.
        if let Some(at) = self.way_of(hierarchy, id) {
            self.0.set(at, ids::entry(id, slot));
            return Ok(());
        }
        let free = (first..first + KERNEL_WAYS_FROM).find(|&at| self.0.get(at) == 0);
        let free = free.with_context(|| {
            format!("the table of cgroups has no room for number {id}: it counts in _system")
        })?;
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

    /// Slot of cgroup `id`; `None` where it has no entry.
    pub fn get(&self, hierarchy: u32, id: u64) -> Option<Slot> {
        self.way_of(hierarchy, id).map(|at| self.0.get(at) as Slot)
    }

    /// Maps every cgroup of `slot` to `heir`, or forgets them where that is 0.
    pub fn hand_over(&mut self, slot: Slot, heir: Slot) {
        for at in 0..ENTRIES {
            let entry = self.0.get(at);
            if entry != 0 && entry as Slot == slot {
                let id = entry >> SLOT_BITS;
                self.0.set(at, if heir == 0 { 0 } else { ids::entry(id, heir) });
            }
        }
    }

    /// Every cgroup that has an entry.
    pub fn all(&self) -> Vec<Cgroup> {
        let cgroup = |(at, entry): (usize, u64)| Cgroup {
            table: (at / (SETS as usize * WAYS)) as u32,
            id: entry >> SLOT_BITS,
        };
        self.entries().map(cgroup).collect()
    }

    /// Every slot that has an entry, as often as it has one.
    pub fn slots(&self) -> Vec<Slot> {
        self.entries().map(|(_, entry)| entry as Slot).collect()
    }

    fn entries(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        (0..ENTRIES).map(|at| (at, self.0.get(at))).filter(|(_, entry)| *entry != 0)
    }

    /// Whether the kernel has no way left for another cgroup in the set of `id`.
    pub fn is_crowded(&self, hierarchy: u32, id: u64) -> bool {
        let first = first_way(hierarchy, id);
        (first + KERNEL_WAYS_FROM..first + WAYS).all(|at| self.0.get(at) != 0)
    }

    /// Whether both lie in the kernel's ways of one set.
    pub fn shares_set(&self, one: Cgroup, other: Cgroup) -> bool {
        let first = first_way(other.table, other.id);
        first_way(one.table, one.id) == first
            && self.way_of(one.table, one.id).is_some_and(|at| at >= first + KERNEL_WAYS_FROM)
    }

    fn way_of(&self, hierarchy: u32, id: u64) -> Option<usize> {
        let first = first_way(hierarchy, id);
        (first..first + WAYS).find(|&at| self.0.get(at) >> SLOT_BITS == id)
    }
}

fn first_way(hierarchy: u32, id: u64) -> usize {
    ids::set_of(hierarchy.min(HIERARCHIES - 1), id) as usize * WAYS
}
