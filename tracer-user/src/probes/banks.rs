//! The banks of the slots: each slot's own maps, made before its first cgroup, kept and emptied for the next.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use aya::{
    Pod,
    maps::{ArrayOfMaps, IterableMap, MapData, PerCpuArray, PerCpuValues},
};
use tracer_ebpf::{
    ids::SLOTS,
    tables::{job::JobBank, latency::LatencyBank},
};

use super::options::FaultMode;
use crate::{
    bpf::{maps::TakeMap, memlock::LiftedMemlock, pins::open_pin},
    model::lease::Slot,
};

/// A kernel-side struct, for maps that want plain data.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

// SAFETY: all of them are structs of integers without padding that matters, valid for any bytes.
unsafe impl Pod for Plain<JobBank> {}
// SAFETY: as above.
unsafe impl Pod for Plain<LatencyBank> {}

/// Kinds of pinned banks.
const BANK: &str = "bank";
const LATENCY_BANK: &str = "latency";

/// File of a slot's pinned bank.
fn bank_pin(dir: &Path, kind: &str, slot: Slot) -> PathBuf {
    dir.join(format!("{kind}-{slot}"))
}

/// A slot's own maps; dropping them frees the memory once the kernel has let go.
pub struct SlotBanks {
    /// Scheduling and faults, per CPU.
    bank: PerCpuArray<MapData, Plain<JobBank>>,
    /// Fault latencies, per CPU; full mode only.
    latency: Option<PerCpuArray<MapData, Plain<LatencyBank>>>,
}

impl SlotBanks {
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

    /// Descriptor of the bank.
    pub fn bank_fd(&self) -> BorrowedFd<'_> {
        self.bank.map().fd().as_fd()
    }

    /// Descriptor of the latencies; full mode only.
    pub fn latency_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.latency.as_ref()?.map().fd().as_fd())
    }
}

/// The banks of all slots.
pub struct Banks {
    slots: BTreeMap<Slot, SlotBanks>,
    banks: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<JobBank>>>,
    latency: ArrayOfMaps<MapData, PerCpuArray<MapData, Plain<LatencyBank>>>,
    faults: FaultMode,
    /// Where banks are pinned.
    pins: Option<PathBuf>,
}

impl Banks {
    /// None yet, of a set that times `faults`.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub fn new(take: &mut TakeMap<'_>, faults: FaultMode) -> Result<Self> {
        Ok(Self {
            slots: BTreeMap::new(),
            banks: take("BANKS")?.try_into().context("map BANKS")?,
            latency: take("LATENCY")?.try_into().context("map LATENCY")?,
            faults,
            pins: None,
        })
    }

    /// Takes those that are pinned in `dir`.
    ///
    /// # Errors
    /// When one is of another kind.
    pub fn open(&mut self, dir: &Path) -> Result<()> {
        for slot in (0..SLOTS as Slot).filter(|slot| bank_pin(dir, BANK, *slot).exists()) {
            self.slots.insert(slot, SlotBanks::open(dir, slot)?);
        }
        self.set_pins(dir);
        Ok(())
    }

    /// Pins the banks in `dir`, and those of slots to come.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&mut self, dir: &Path) -> Result<()> {
        for (slot, banks) in std::mem::take(&mut self.slots) {
            self.slots.insert(slot, banks.pinned(dir, slot)?);
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
    pub fn add(&mut self, slot: Slot) -> Result<()> {
        if self.slots.contains_key(&slot) {
            return Ok(());
        }
        let _lifted = LiftedMemlock::lift();
        let bank = PerCpuArray::<MapData, Plain<JobBank>>::create(1, 0)
            .with_context(|| format!("cannot make the bank of slot {slot}"))?;
        let latency = (self.faults == FaultMode::Full)
            .then(|| PerCpuArray::<MapData, Plain<LatencyBank>>::create(1, 0))
            .transpose()
            .with_context(|| format!("cannot make the latency bank of slot {slot}"))?;
        let mut made = SlotBanks { bank, latency };
        if let Some(dir) = &self.pins {
            // Of an agent that was killed here, before the bank had its place.
            for kind in [BANK, LATENCY_BANK] {
                let _ = fs::remove_file(bank_pin(dir, kind, slot));
            }
            made = made.pinned(dir, slot)?;
        }
        self.banks
            .set(slot.into(), &made.bank, 0)
            .with_context(|| format!("cannot place the bank of slot {slot}"))?;
        if let Some(latency) = &made.latency {
            self.latency
                .set(slot.into(), latency, 0)
                .with_context(|| format!("cannot place the latency bank of slot {slot}"))?;
        }
        self.slots.insert(slot, made);
        Ok(())
    }

    /// Those of `slot`.
    ///
    /// # Errors
    /// When it has none.
    pub fn of(&self, slot: Slot) -> Result<&SlotBanks> {
        self.slots.get(&slot).with_context(|| format!("slot {slot} has no bank"))
    }

    /// Those of each slot that has some.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &SlotBanks> {
        self.slots.values()
    }

    /// Forgets those of all slots but `slots`.
    pub fn keep_only(&mut self, slots: &[Slot]) {
        self.slots.retain(|slot, _| slots.contains(slot));
    }

    /// Empties those of an ended slot that nothing is charged to any more.
    ///
    /// # Errors
    /// When the kernel refuses to write them.
    pub fn clear(&mut self, slot: Slot) -> Result<()> {
        let Some(banks) = self.slots.get_mut(&slot) else { return Ok(()) };
        banks.clear().with_context(|| format!("cannot empty the bank of slot {slot}"))
    }
}
