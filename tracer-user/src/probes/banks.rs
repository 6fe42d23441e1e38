//! The banks of the slots: each slot's own maps, made before its first cgroup, kept and emptied for the next.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use aya::maps::{MapData, PerCpuArray};
use tracer_ebpf::{
    ids::SLOTS,
    tables::{job::JobBank, latency::LatencyBank},
};

use super::{
    bank::{BANK, LATENCY_BANK, Plain, SlotBanks, bank_pin},
    options::FaultMode,
    place::{Places, place},
};
use crate::{
    bpf::{maps::TakeMap, memlock::LiftedMemlock},
    model::lease::Slot,
};

/// The banks of all slots.
pub struct Banks {
    slots: BTreeMap<Slot, SlotBanks>,
    banks: Places<JobBank>,
    latency: Places<LatencyBank>,
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
        self.add_all(&[slot])
    }

    /// Gives each of `slots` its banks, as [`Self::add`] does. Those of both kinds are placed at once: they
    /// share their grace periods.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or one is past the last.
    pub fn add_all(&mut self, slots: &[Slot]) -> Result<()> {
        let new = slots.iter().copied().filter(|slot| !self.slots.contains_key(slot));
        let _lifted = LiftedMemlock::lift();
        let made = new.map(|slot| Ok((slot, self.make(slot)?)));
        let made = made.collect::<Result<Vec<_>>>()?;
        if made.is_empty() {
            return Ok(());
        }
        place(&mut self.banks, &mut self.latency, &made)?;
        self.slots.extend(made);
        Ok(())
    }

    fn make(&self, slot: Slot) -> Result<SlotBanks> {
        let bank = PerCpuArray::<MapData, Plain<JobBank>>::create(1, 0)
            .with_context(|| format!("cannot create the bank of slot {slot}"))?;
        let latency = (self.faults == FaultMode::Full)
            .then(|| PerCpuArray::<MapData, Plain<LatencyBank>>::create(1, 0))
            .transpose()
            .with_context(|| format!("cannot create the latency bank of slot {slot}"))?;
        let made = SlotBanks { bank, latency };
        let Some(dir) = &self.pins else { return Ok(made) };
        // Of an agent that was killed here, before the bank had its place.
        for kind in [BANK, LATENCY_BANK] {
            let _ = fs::remove_file(bank_pin(dir, kind, slot));
        }
        made.pinned(dir, slot)
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
