//! The table from cgroup id to job slot: sets of eight, found by the id.
//!
//! The kernel hands ids out in sequence, to each directory and to each file in it: those of cgroups lie 8
//! apart in v1's freezer, 33 in its memory controller. A set is one cache line: a look-up on the switch
//! path is eight compares and no hash.
//!
//! Who writes what keeps it free of locks. The agent owns ways `0..KERNEL_WAYS_FROM`. In the rest only
//! the kernel turns an empty entry into a used one (in `cgroup_mkdir`, which the kernel serialises),
//! and only the agent turns a used one into an empty one.

/// Slots of the maps; slot 0 is the rest of the node.
pub const SLOTS: usize = 1024;
/// Most slots to give: all but that one.
pub const MOST_SLOTS: u16 = SLOTS as u16 - 1;

/// Sets per hierarchy.
pub const SETS: u32 = 1024;
/// Entries of a set: one cache line.
pub const WAYS: usize = 8;
/// First way that the kernel fills.
pub const KERNEL_WAYS_FROM: usize = 4;
/// Hierarchies with a table each: the tasks', and block I/O's where cgroup v1 has another.
pub const HIERARCHIES: u32 = 2;
/// Bits of an entry that hold the slot.
pub const SLOT_BITS: u32 = 16;

/// Flag of a slot: the cgroups made inside its own are its own too.
pub const INHERITED: u64 = 1;
/// Flag of a slot: the programs its tasks execute are told of.
pub const TELL_EXECS: u64 = 2;

/// Flag of a slot, for the agent itself: offered to the kernel, and nobody has been seen in it.
pub const SPARE: u64 = 4;
/// Flag of a slot, for the agent itself: ended; its cgroups are another's.
pub const ENDED: u64 = 8;
/// Where the flags of a slot hold, for the agent itself, the slot of its heir.
pub const HEIR_SHIFT: u32 = 8;
/// Where the flags of a slot hold, for the agent itself, its lease.
pub const LEASE_SHIFT: u32 = 32;

/// A set of entries.
pub type IdSet = [u64; WAYS];

/// The entry that maps cgroup `id` to `slot`; 0 is the empty entry. Ids are below 2^48.
#[inline(always)]
pub const fn entry(id: u64, slot: u16) -> u64 {
    id << SLOT_BITS | slot as u64
}

/// Slot of cgroup `id` in its set; 0 (the rest of the node) where it has no entry.
#[inline(always)]
pub fn slot_in(set: &IdSet, id: u64) -> u16 {
    let mut way = 0;
    while way < WAYS {
        let entry = set[way];
        if entry >> SLOT_BITS == id {
            return entry as u16;
        }
        way += 1;
    }
    0
}

/// Index of the set that holds `id` in hierarchy table `hierarchy`. The sum spreads ids evenly whatever
/// their distance is; the low bits alone put those that lie 8 apart into every eighth set.
#[inline(always)]
pub const fn set_of(hierarchy: u32, id: u64) -> u32 {
    hierarchy * SETS + ((id + (id >> 5)) as u32 & (SETS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_found_by_its_whole_id() {
        let mut set: IdSet = [0; WAYS];
        set[5] = entry(0x1_0000_0007, 9);
        assert_eq!(slot_in(&set, 0x1_0000_0007), 9);
        assert_eq!(slot_in(&set, 7), 0);
    }

    #[test]
    fn ids_of_any_distance_find_room() {
        for (distance, first) in (1..80).flat_map(|distance| [(distance, 1), (distance, 358_004)]) {
            let mut sets = [0; SETS as usize];
            for index in 0..600 {
                sets[set_of(0, first + index * distance) as usize] += 1;
            }
            assert!(sets.iter().all(|ids| *ids <= KERNEL_WAYS_FROM), "{distance} apart");
        }
    }

    #[test]
    fn hierarchies_have_sets_of_their_own() {
        assert_eq!(set_of(0, 5), 5);
        assert_eq!(set_of(1, 5), SETS + 5);
    }
}
