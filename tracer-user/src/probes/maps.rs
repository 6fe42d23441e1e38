//! The agent's ends of the maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use aya::{
    Ebpf, Pod,
    maps::{IterableMap, Map, MapData, PerCpuArray, PerCpuValues, Queue, RingBuf},
};
use tracer_ebpf::{job::JobBank, latency::LatencyBank, records::CpuRecord};

use super::{
    block_cells::BlockCells,
    gap::VARIABLES,
    hooks::FaultMode,
    id_table::IdTable,
    memlock::LiftedMemlock,
    pins::{bank_pin, map_pin},
    place::{Banks, place},
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
    /// Page faults in progress; full mode only.
    pub faults: Words,
    spare: Queue<MapData, u32>,
    /// The slots in use.
    pub slots: BTreeMap<Slot, SlotMaps>,
    banks: Banks<JobBank>,
    latency: Banks<LatencyBank>,
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

    fn clear(&mut self) -> Result<()> {
        let cpus = aya::util::nr_cpus().map_err(|(path, error)| {
            anyhow::Error::new(error).context(format!("cannot read {path}"))
        })?;
        // SAFETY: all integers.
        let bank: Plain<JobBank> = unsafe { std::mem::zeroed() };
        self.bank.set(0, PerCpuValues::try_from(vec![bank; cpus])?, 0)?;
        if let Some(latency) = &mut self.latency {
            // SAFETY: all integers.
            let bank: Plain<LatencyBank> = unsafe { std::mem::zeroed() };
            latency.set(0, PerCpuValues::try_from(vec![bank; cpus])?, 0)?;
        }
        Ok(())
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

    /// Opens the maps pinned in `dir`, with the banks of the slots that have them.
    ///
    /// # Errors
    /// When a map is missing or of another kind.
    pub fn open(dir: &Path) -> Result<Self> {
        let mut maps = Self::from(Some(dir.to_owned()), |name| open_pin(&map_pin(dir, name)))?;
        for slot in (0..SLOTS as Slot).filter(|slot| bank_pin(dir, BANK, *slot).exists()) {
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
            flags: Words::map(take("SLOT_FLAGS")?, "SLOT_FLAGS")?,
            faults: Words::map(take("FAULTS")?, "FAULTS")?,
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

    /// Gives `slot` its banks; one that was used before has them, empty. To put a bank into its place
    /// costs the kernel a grace period, 10 ms or so: so it stays there.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or `slot` is past the last.
    pub fn add_slot(&mut self, slot: Slot, faults: FaultMode) -> Result<()> {
        self.add_slots(&[slot], faults)
    }

    /// Gives each of `slots` its banks, as [`Self::add_slot`] does. Those of both kinds are placed at
    /// once: they share their grace periods.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or one is past the last.
    pub fn add_slots(&mut self, slots: &[Slot], faults: FaultMode) -> Result<()> {
        let new = slots.iter().copied().filter(|slot| !self.slots.contains_key(slot));
        let _lifted = LiftedMemlock::new();
        let made = new.map(|slot| Ok((slot, self.make_banks(slot, faults)?)));
        let made = made.collect::<Result<Vec<_>>>()?;
        if made.is_empty() {
            return Ok(());
        }
        place(&mut self.banks, &mut self.latency, &made)?;
        self.slots.extend(made);
        Ok(())
    }

    fn make_banks(&self, slot: Slot, faults: FaultMode) -> Result<SlotMaps> {
        let bank = PerCpuArray::<MapData, Plain<JobBank>>::create(1, 0)
            .with_context(|| format!("cannot create the bank of slot {slot}"))?;
        let latency = (faults == FaultMode::Full)
            .then(|| PerCpuArray::<MapData, Plain<LatencyBank>>::create(1, 0))
            .transpose()
            .with_context(|| format!("cannot create the latency bank of slot {slot}"))?;
        let maps = SlotMaps { bank, latency };
        let Some(dir) = &self.pins else { return Ok(maps) };
        // Of an agent that was killed here, before the bank had its place.
        for kind in [BANK, LATENCY_BANK] {
            let _ = fs::remove_file(bank_pin(dir, kind, slot));
        }
        maps.pinned(dir, slot)
    }

    /// The slots that are on offer. The queue is turned round once, and never found empty meanwhile.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn offered(&mut self) -> Result<BTreeSet<Slot>> {
        let mut offered = BTreeSet::new();
        while let Ok(slot) = self.spare.pop(0) {
            self.offer(slot as Slot)?;
            if !offered.insert(slot as Slot) {
                break;
            }
        }
        Ok(offered)
    }

    /// Offers `slot` to the kernel, for a cgroup nobody knows yet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn offer(&mut self, slot: Slot) -> Result<()> {
        self.spare.push(u32::from(slot), 0).with_context(|| format!("cannot offer slot {slot}"))
    }

    /// Takes back a slot on offer; `None` where there is none.
    pub fn withdraw(&mut self) -> Option<Slot> {
        self.spare.pop(0).ok().map(|slot| slot as Slot)
    }

    /// Empties an ended slot that nothing is charged to any more; it may be added anew.
    ///
    /// # Errors
    /// When the kernel refuses to write its banks.
    pub fn free_slot(&mut self, slot: Slot) -> Result<()> {
        if let Some(maps) = self.slots.get_mut(&slot) {
            maps.clear().with_context(|| format!("cannot empty the bank of slot {slot}"))?;
        }
        self.blocks.free(slot);
        self.flags.set(slot.into(), 0);
        Ok(())
    }
}
