//! The agent's ends of the maps.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use aya::{
    Ebpf, Pod,
    maps::{ArrayOfMaps, IterableMap, Map, MapData, PerCpuArray, Queue, RingBuf},
};
use tracer_ebpf::{job::JobBank, latency::LatencyBank, records::CpuRecord};

use super::{
    block_cells::BlockCells,
    gap::VARIABLES,
    hooks::FaultMode,
    id_table::IdTable,
    memlock::LiftedMemlock,
    pins::{bank_pin, map_pin},
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
    /// The tasks' records.
    pub tasks: Map,
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
    /// Where banks are pinned.
    pins: Option<PathBuf>,
}

impl SlotMaps {
    /// Pins them, which takes them apart: the same, opened again.
    fn pinned(self, dir: &Path, slot: Slot) -> Result<Self> {
        let (bank, latency) = (bank_pin(dir, BANK, slot), bank_pin(dir, LATENCY_BANK, slot));
        let pinning = |path: &Path| format!("cannot pin {}", path.display());
        self.bank.pin(&bank).with_context(|| pinning(&bank))?;
        if let Some(map) = self.latency {
            map.pin(&latency).with_context(|| pinning(&latency))?;
        }
        Self::open(dir, slot)
    }

    fn open(dir: &Path, slot: Slot) -> Result<Self> {
        let bank = open_pin(&bank_pin(dir, BANK, slot))?.try_into().context("a bank")?;
        let latency = bank_pin(dir, LATENCY_BANK, slot);
        let latency = latency.exists().then(|| open_pin(&latency)).transpose()?;
        let latency = latency.map(TryInto::try_into).transpose().context("a latency bank")?;
        Ok(Self { bank, latency })
    }
}

/// Kinds of pinned banks.
const BANK: &str = "bank";
const LATENCY_BANK: &str = "latency";

/// The map pinned at `path`.
///
/// # Errors
/// When there is none.
pub fn open_pin(path: &Path) -> Result<Map> {
    let opened = MapData::from_pin(path).and_then(Map::from_map_data);
    opened.with_context(|| format!("cannot open {}", path.display()))
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
        Self::from(None, |name| {
            ebpf.take_map(name).ok_or_else(|| anyhow!("the BPF object has no map {name}"))
        })
    }

    /// Opens the maps pinned in `dir`, with the banks of those `slots` that have them.
    ///
    /// # Errors
    /// When a map is missing or of another kind.
    pub fn open(dir: &Path, slots: impl Fn(&Words) -> Vec<Slot>) -> Result<Self> {
        let mut maps = Self::from(Some(dir.to_owned()), |name| open_pin(&map_pin(dir, name)))?;
        for slot in slots(&maps.flags) {
            maps.slots.insert(slot, SlotMaps::open(dir, slot)?);
        }
        Ok(maps)
    }

    fn from(pins: Option<PathBuf>, mut take: impl FnMut(&str) -> Result<Map>) -> Result<Self> {
        Ok(Self {
            cpus: take("CPUS")?.try_into().context("map CPUS")?,
            tasks: take(VARIABLES)?,
            blocks: BlockCells::new(take("BLOCKS")?, take("CELL_CLAIMS")?)?,
            ids: IdTable::new(take("IDS")?)?,
            events: take("EVENTS")?.try_into().context("map EVENTS")?,
            flags: Words::map(take("SLOT_FLAGS")?, "SLOT_FLAGS", SLOTS)?,
            spare: take("SPARE_SLOTS")?.try_into().context("map SPARE_SLOTS")?,
            banks: take("BANKS")?.try_into().context("map BANKS")?,
            latency: take("LATENCY")?.try_into().context("map LATENCY")?,
            slots: BTreeMap::new(),
            pins,
        })
    }

    /// Pins the banks in `dir`, and those of slots to come.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&mut self, dir: &Path) -> Result<()> {
        for (slot, maps) in std::mem::take(&mut self.slots) {
            self.slots.insert(slot, maps.pinned(dir, slot)?);
        }
        self.set_pins(dir);
        Ok(())
    }

    /// Banks are, and new ones will be, pinned in `dir`.
    pub fn set_pins(&mut self, dir: &Path) {
        self.pins = Some(dir.to_owned());
    }

    /// Gives `slot` its banks.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or `slot` is past the last.
    pub fn add_slot(&mut self, slot: Slot, faults: FaultMode) -> Result<()> {
        let _lifted = LiftedMemlock::new();
        let bank = PerCpuArray::<MapData, Plain<JobBank>>::create(1, 0)
            .with_context(|| format!("cannot make the bank of slot {slot}"))?;
        let latency = (faults == FaultMode::Full)
            .then(|| PerCpuArray::<MapData, Plain<LatencyBank>>::create(1, 0))
            .transpose()
            .with_context(|| format!("cannot make the latency bank of slot {slot}"))?;
        let mut maps = SlotMaps { bank, latency };
        if let Some(dir) = &self.pins {
            self.unpin_bank(slot);
            maps = maps.pinned(dir, slot)?;
        }
        self.banks
            .set(slot.into(), &maps.bank, 0)
            .with_context(|| format!("cannot place the bank of slot {slot}"))?;
        if let Some(latency) = &maps.latency {
            self.latency
                .set(slot.into(), latency, 0)
                .with_context(|| format!("cannot place the latency bank of slot {slot}"))?;
        }
        self.slots.insert(slot, maps);
        Ok(())
    }

    fn unpin_bank(&self, slot: Slot) {
        for kind in [BANK, LATENCY_BANK] {
            if let Some(dir) = &self.pins {
                // Absent, or replaced by the next bank's.
                let _ = fs::remove_file(bank_pin(dir, kind, slot));
            }
        }
    }

    /// Takes back what was offered and not taken.
    pub fn take_back_offers(&mut self) {
        while self.spare.pop(0).is_ok() {}
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
        self.flags.set(slot.into(), 0);
        self.slots.remove(&slot);
        self.unpin_bank(slot);
    }
}
