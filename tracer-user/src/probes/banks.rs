//! The banks of the slots: each slot's own maps, made before its first cgroup, kept and emptied for the next.

use std::{
    collections::BTreeMap,
    fs,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use aya::maps::{Map, MapData, PerCpuArray};
use tracer_ebpf::{
    ids::SLOTS,
    tables::{job::JobBank, latency::LatencyBank},
};

use super::{
    bank::{BANK, LATENCY_BANK, Plain, SlotBanks, bank_pin},
    options::FaultMode,
    place::{Place, fill},
};
use crate::{
    bpf::{maps::TakeMap, memlock::LiftedMemlock},
    model::lease::Slot,
};

/// The banks of all slots.
pub struct Banks {
    slots: BTreeMap<Slot, SlotBanks>,
    banks: MapData,
    latency: MapData,
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
            banks: places(take, "BANKS")?,
            latency: places(take, "LATENCY")?,
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

    /// Gives each of `slots` its banks; one that was used before has them, empty. To put banks into their
    /// places costs the kernel a grace period, 10 ms or so: so they stay there, and those of all `slots` share it.
    ///
    /// # Errors
    /// When the kernel has no memory for them, or one is past the last.
    pub fn add_all(&mut self, slots: &[Slot]) -> Result<()> {
        let new = slots.iter().copied().filter(|slot| !self.slots.contains_key(slot));
        let new: Vec<Slot> = new.collect();
        if new.is_empty() {
            return Ok(());
        }
        let _lifted = LiftedMemlock::lift();
        let made = new.into_iter().map(|slot| Ok((slot, self.make(slot)?)));
        let made = made.collect::<Result<Vec<_>>>()?;
        let (banks, latencies) = (self.banks.fd().as_fd(), self.latency.fd().as_fd());
        let mut places = Vec::new();
        for &(slot, ref made) in &made {
            places.push(Place { all: banks, slot, bank: made.bank_fd() });
            let latency = made.latency_fd();
            places.extend(latency.map(|bank| Place { all: latencies, slot, bank }));
        }
        fill(&places)?;
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

/// The map `name` of the places of one kind of bank.
fn places(take: &mut TakeMap<'_>, name: &str) -> Result<MapData> {
    let Map::ArrayOfMaps(places) = take(name)? else { bail!("map {name} is no array of maps") };
    Ok(places)
}
