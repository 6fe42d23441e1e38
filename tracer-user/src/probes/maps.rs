//! The agent's ends of the maps.

use std::{
    collections::BTreeMap,
    os::fd::{AsFd, BorrowedFd},
};

use anyhow::{Context, Result, anyhow};
use aya::{
    Ebpf, Pod,
    maps::{ArrayOfMaps, IterableMap, MapData, PerCpuArray, Queue, RingBuf},
};
use tracer_ebpf::{job::JobBank, latency::LatencyBank, records::CpuRecord};

use super::{
    block_cells::BlockCells, hooks::FaultMode, id_table::IdTable, memlock::LiftedMemlock,
    words::Words,
};
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
    /// Cells of block I/O.
    pub blocks: BlockCells,
    /// Which cgroup is in which slot.
    pub ids: IdTable,
    /// Cgroups made and removed, programs executed.
    pub events: RingBuf<MapData>,
    /// Flags of each slot.
    pub flags: Words,
    spare: Queue<MapData, u32>,
    /// The slots in use.
    pub slots: BTreeMap<Slot, SlotMaps>,
    banks: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<JobBank>>>,
    latency: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<LatencyBank>>>,
}

/// Slots of the object.
const SLOTS: usize = 1024;

impl SlotMaps {
    /// Descriptor of the bank.
    pub fn bank_fd(&self) -> BorrowedFd<'_> {
        self.bank.map().fd().as_fd()
    }

    /// Descriptor of the latencies; full mode only.
    pub fn latency_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.latency.as_ref()?.map().fd().as_fd())
    }
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
        Ok(Self {
            cpus: take("CPUS")?.try_into().context("map CPUS")?,
            blocks: BlockCells::new(take("BLOCKS")?, take("CELL_CLAIMS")?)?,
            ids: IdTable::new(take("IDS")?)?,
            events: take("EVENTS")?.try_into().context("map EVENTS")?,
            flags: Words::map(take("SLOT_FLAGS")?, "SLOT_FLAGS", SLOTS)?,
            spare: take("SPARE_SLOTS")?.try_into().context("map SPARE_SLOTS")?,
            banks: take("BANKS")?.try_into().context("map BANKS")?,
            latency: take("LATENCY")?.try_into().context("map LATENCY")?,
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

    /// Offers `slot` to the kernel, for a cgroup nobody knows yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn offer(&mut self, slot: Slot) -> Result<()> {
        self.spare.push(u32::from(slot), 0).with_context(|| format!("cannot offer slot {slot}"))
    }

    /// Ends `slot`: from now on nothing new is charged to it. What it has been charged stays readable
    /// until [`Self::free_slot`]; its cgroups and stragglers go to `heir`, whose bank takes its place.
    ///
    /// # Errors
    /// When the kernel refuses to exchange the banks.
    pub fn end_slot(&mut self, slot: Slot, heir: Slot) -> Result<()> {
        self.ids.hand_over(slot, heir);
        self.flags.set(slot.into(), 0);
        let rest = self.slots.get(&heir).context("the heir has no bank")?;
        self.banks
            .set(slot.into(), &rest.bank, 0)
            .with_context(|| format!("cannot exchange the bank of slot {slot}"))?;
        if let Some(latency) = &rest.latency {
            self.latency
                .set(slot.into(), latency, 0)
                .with_context(|| format!("cannot exchange the latency bank of slot {slot}"))?;
        }
        Ok(())
    }

    /// Frees the memory of an ended slot; it may be added anew.
    pub fn free_slot(&mut self, slot: Slot) {
        self.blocks.free(slot);
        self.slots.remove(&slot);
    }
}
