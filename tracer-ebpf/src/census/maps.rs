//! The maps. Two are those of the programs that always run: whose slot a cgroup is, and whose lease a slot.

use aya_ebpf::{
    btf_maps::{Array, ArrayOfMaps},
    macros::{btf_map, map},
    maps::{HashMap, LruHashMap, RingBuf},
};
use tracer_ebpf::{
    MMAPABLE,
    ids::{self, HIERARCHIES, IdSet, LEASE_SHIFT, SETS, SLOTS},
    tables::census::{
        LOOKED as MOST_LOOKED, LookedKey, PYTHONS as MOST_PYTHONS, Python, RING_BYTES,
        SIGHTS as MOST_SIGHTS, SightKey, SlotCensus,
    },
    tables::io_file::IO_INSTANCES,
};

/// The table of cgroups, which the agent puts here.
#[btf_map]
static SHARED_IDS: ArrayOfMaps<Array<IdSet, { (SETS * HIERARCHIES) as usize }, MMAPABLE>, 1> =
    ArrayOfMaps::new();
/// The flags of the slots, with their leases, likewise.
#[btf_map]
static SHARED_FLAGS: ArrayOfMaps<Array<u64, SLOTS, MMAPABLE>, 1> = ArrayOfMaps::new();
/// What was seen: of a program how often it was executed, else 1.
#[map]
pub static SIGHTS: HashMap<SightKey, u64> = HashMap::with_max_entries(MOST_SIGHTS, 0);
/// What processes had mapped that need not be looked through again.
#[map]
pub static LOOKED: LruHashMap<LookedKey, u64> = LruHashMap::with_max_entries(MOST_LOOKED, 0);
/// What file systems were met as, by their mounts' numbers.
#[map]
pub static INSTANCES: LruHashMap<u64, u64> = LruHashMap::with_max_entries(IO_INSTANCES, 0);
/// Python processes, by their numbers.
#[map]
pub static PYTHONS: HashMap<u32, Python> = HashMap::with_max_entries(MOST_PYTHONS, 0);
#[btf_map]
static SLOT_CENSUS: Array<SlotCensus, SLOTS, MMAPABLE> = Array::new();
/// First sightings.
#[map]
pub static SIGHTINGS: RingBuf = RingBuf::with_byte_size(RING_BYTES, 0);

/// Slot of cgroup `id` of the tasks' hierarchy; 0 where no job owns it.
#[inline(always)]
pub fn slot_of(id: u64) -> u16 {
    match SHARED_IDS.get_value(0, &ids::set_of(0, id)) {
        Some(set) => ids::slot_in(set, id),
        None => 0,
    }
}

/// Lease of `slot`; 0 where nobody has it.
#[inline(always)]
pub fn lease_of(slot: u16) -> u32 {
    SHARED_FLAGS.get_value(0, &slot.into()).map_or(0, |flags| (*flags >> LEASE_SHIFT) as u32)
}

/// What is counted of `slot`.
#[inline(always)]
pub fn slot_census(slot: u32) -> Option<*mut SlotCensus> {
    SLOT_CENSUS.get_ptr_mut(slot)
}
