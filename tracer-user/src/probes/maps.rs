//! The agent's ends of the maps.

use std::{collections::BTreeMap, os::fd::AsFd, ptr::NonNull};

use anyhow::{Context, Result, anyhow, ensure};
use aya::{
    Ebpf, Pod,
    maps::{Array, ArrayOfMaps, Map, MapData, PerCpuArray, RingBuf},
};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tracer_ebpf::{
    block::{BlockCell, BlockKey, CELL_SETS, CellSet},
    ids::{self, HIERARCHIES, IdSet, KERNEL_WAYS_FROM, SETS, WAYS},
    job::JobBank,
    latency::LatencyBank,
    records::CpuRecord,
};

use super::{hooks::FaultMode, memlock::LiftedMemlock};
use crate::model::job::Slot;

/// A kernel-side struct, for maps that want plain data.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

// SAFETY: all of them are structs of integers without padding that matters, valid for any bytes.
unsafe impl Pod for Plain<JobBank> {}
// SAFETY: as above.
unsafe impl Pod for Plain<LatencyBank> {}
// SAFETY: as above.
unsafe impl Pod for Plain<CellSet> {}
// SAFETY: as above.
unsafe impl Pod for Plain<CpuRecord> {}

/// A slot's own maps; dropping them frees the memory once the kernel has let go.
pub struct SlotMaps {
    /// Scheduling and faults, per CPU.
    pub bank: PerCpuArray<MapData, Plain<JobBank>>,
    /// Fault latencies, per CPU; full mode only.
    pub latency: Option<PerCpuArray<MapData, Plain<LatencyBank>>>,
}

/// All maps the agent reads or writes.
pub struct Maps {
    /// What runs on each CPU.
    pub cpus: PerCpuArray<MapData, Plain<CpuRecord>>,
    /// Cgroups made and removed.
    pub events: RingBuf<MapData>,
    /// The slots in use.
    pub slots: BTreeMap<Slot, SlotMaps>,
    banks: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<JobBank>>>,
    latency: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<LatencyBank>>>,
    ids: IdTable,
    blocks: Array<MapData, Plain<CellSet>>,
}

impl Maps {
    /// Takes the maps of a loaded object.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub fn take(ebpf: &mut Ebpf) -> Result<Self> {
        let mut take = |name: &str| {
            ebpf.take_map(name).ok_or_else(|| anyhow!("the BPF object has no map {name}"))
        };
        let Map::Array(ids) = take("IDS")? else {
            return Err(anyhow!("map IDS of the BPF object is no array"));
        };
        Ok(Self {
            cpus: take("CPUS")?.try_into().context("map CPUS")?,
            blocks: take("BLOCKS")?.try_into().context("map BLOCKS")?,
            events: take("EVENTS")?.try_into().context("map EVENTS")?,
            banks: take("BANKS")?.try_into().context("map BANKS")?,
            latency: take("LATENCY")?.try_into().context("map LATENCY")?,
            ids: IdTable::map(ids)?,
            slots: BTreeMap::new(),
        })
    }

    /// Gives `slot` its banks.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or `slot` is past the last.
    pub fn add_slot(&mut self, slot: Slot, faults: FaultMode) -> Result<()> {
        let _lifted = LiftedMemlock::new();
        let bank = PerCpuArray::<MapData, Plain<JobBank>>::create(1, 0)
            .with_context(|| format!("cannot make the bank of slot {slot}"))?;
        self.banks
            .set(slot.into(), &bank, 0)
            .with_context(|| format!("cannot place the bank of slot {slot}"))?;
        let latency = match faults {
            FaultMode::Major => None,
            FaultMode::Full => {
                let bank = PerCpuArray::<MapData, Plain<LatencyBank>>::create(1, 0)
                    .with_context(|| format!("cannot make the latency bank of slot {slot}"))?;
                self.latency
                    .set(slot.into(), &bank, 0)
                    .with_context(|| format!("cannot place the latency bank of slot {slot}"))?;
                Some(bank)
            }
        };
        self.slots.insert(slot, SlotMaps { bank, latency });
        Ok(())
    }

    /// The cells of block I/O in use.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn block_cells(&self) -> Result<Vec<(BlockKey, BlockCell)>> {
        let mut cells = Vec::new();
        for index in 0..CELL_SETS {
            let set = self.blocks.get(&index, 0).context("cannot read the cells of block I/O")?.0;
            let used = set.keys.iter().zip(set.cells);
            cells.extend(used.filter_map(|(&word, cell)| Some((BlockKey::of_word(word)?, cell))));
        }
        Ok(cells)
    }

    /// Maps cgroup `id` of table `hierarchy` to `slot`.
    ///
    /// # Errors
    /// When its set has no free way, or the id is past what an entry holds.
    pub fn track(&mut self, hierarchy: u32, id: u64, slot: Slot) -> Result<()> {
        self.ids.insert(hierarchy, id, slot)
    }

    /// Forgets cgroup `id` of table `hierarchy`, whoever entered it.
    pub fn forget(&mut self, hierarchy: u32, id: u64) {
        self.ids.remove(hierarchy, id);
    }
}

/// The id table in our own memory: entries are single words, so that a write to one never touches
/// its neighbours, which the kernel may be filling.
struct IdTable {
    sets: NonNull<IdSet>,
    _map: MapData,
}

// SAFETY: the mapping belongs to this value alone on our side, and all accesses are volatile.
unsafe impl Send for IdTable {}

impl IdTable {
    const BYTES: usize = (SETS * HIERARCHIES) as usize * size_of::<IdSet>();

    fn map(map: MapData) -> Result<Self> {
        // SAFETY: a fresh mapping of a map whose size both sides share.
        let sets = unsafe {
            mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.fd().as_fd(),
                0,
            )
        };
        let sets = NonNull::new(sets.context("cannot map the id table")?.cast())
            .context("cannot map the id table")?;
        Ok(Self { sets, _map: map })
    }

    /// The entry at `way` of the set of `id`.
    fn word(&self, hierarchy: u32, id: u64, way: usize) -> *mut u64 {
        let set = ids::set_of(hierarchy.min(HIERARCHIES - 1), id) as usize;
        // SAFETY: `set` is below SETS * HIERARCHIES, `way` below WAYS.
        unsafe { self.sets.as_ptr().add(set).cast::<u64>().add(way) }
    }

    fn insert(&mut self, hierarchy: u32, id: u64, slot: Slot) -> Result<()> {
        ensure!(id < 1 << 48, "cgroup id {id} is past 48 bits");
        self.remove(hierarchy, id);
        let free = (0..KERNEL_WAYS_FROM)
            .map(|way| self.word(hierarchy, id, way))
            // SAFETY: `word` points into the mapping.
            .find(|&word| unsafe { word.read_volatile() } == 0);
        let word = free.with_context(|| format!("no room to track cgroup {id}"))?;
        // SAFETY: as above; this way is the agent's alone.
        unsafe { word.write_volatile(ids::entry(id, slot)) };
        Ok(())
    }

    fn remove(&mut self, hierarchy: u32, id: u64) {
        for way in 0..WAYS {
            let word = self.word(hierarchy, id, way);
            // SAFETY: as above; only the agent empties an entry.
            unsafe {
                if word.read_volatile() >> ids::SLOT_BITS == id {
                    word.write_volatile(0);
                }
            }
        }
    }
}

impl Drop for IdTable {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, not used after this. Failing leaves it to the exit.
        let _ = unsafe { munmap(self.sets.as_ptr().cast(), Self::BYTES) };
    }
}
