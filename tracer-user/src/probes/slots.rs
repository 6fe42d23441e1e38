//! The life of a slot: leased to a job's cgroups, ended with the job or in favour of another lease, free
//! for the next; and the cgroups it is charged for.

mod offers;
mod told;

use std::{iter, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use aya::maps::MapData;
use tracer_ebpf::ids::{INHERITED, TELL_EXECS};

use offers::Offers;

use super::{
    bank::SlotBanks, banks::Banks, events::Cgroup, id_table::IdTable, leases::Leases,
    options::Options, removed::Removed,
};
use crate::{
    base::layout::Layout,
    bpf::{maps::TakeMap, preemption::Ahead, ring::Ring, words::Words},
    model::lease::{Lease, Slot},
};

/// The slots, their leases and what the kernel is told of them.
pub struct Slots {
    leases: Leases,
    banks: Banks,
    /// Which cgroup is in which slot.
    ids: IdTable,
    /// Flags of each slot.
    flags: Words,
    offers: Offers,
    /// Cgroups made and removed, programs executed.
    ring: Ring,
    /// Table of the block hierarchy's ids.
    block_table: u32,
    /// Cgroups that this side found no room for in the kernel's table.
    no_room: u64,
    removed: Removed,
    /// The kernel's flags of slots on offer.
    spare_flags: u64,
}

impl Slots {
    /// Those of loaded or pinned programs: none is given yet.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub(super) fn new(take: &mut TakeMap<'_>, layout: &Layout, options: &Options) -> Result<Self> {
        Ok(Self {
            leases: Leases::new(options.most_slots),
            banks: Banks::new(take, options.faults)?,
            ids: IdTable::new(take("IDS")?)?,
            flags: Words::map(take("SLOT_FLAGS")?, "SLOT_FLAGS")?,
            offers: Offers::new(take)?,
            ring: Ring::map(take("EVENTS")?, "EVENTS")?,
            block_table: layout.block_table(),
            no_room: 0,
            removed: Removed::default(),
            spare_flags: 0,
        })
    }

    /// Takes over those that another agent left in the maps, with `no_room` counted there, and with the
    /// banks pinned in `dir`. `pause` lets a cgroup be entered that took a spare slot a moment ago.
    ///
    /// # Errors
    /// When the maps cannot be read.
    pub(super) fn restore(&mut self, dir: &Path, no_room: u64, pause: impl FnOnce()) -> Result<()> {
        self.banks.open(dir)?;
        self.no_room = no_room;
        let most = self.leases.most();
        let words = (0..=most).map(|slot| (slot, self.flags.get(slot.into())));
        self.leases = Leases::restore(most, words);
        // An offer that the agent before did not live to make is made now.
        let offered = self.offers.all()?;
        let others: Vec<_> = self.leases.spare().filter(|slot| !offered.contains(slot)).collect();
        if !others.is_empty() {
            pause();
        }
        let taken = self.ids.slots();
        for slot in others.into_iter().filter(|slot| !taken.contains(slot)) {
            self.offers.make(slot)?;
        }
        // Killed between the placing of a bank and its lease: the bank may not be in its place.
        let used = self.leases.used().map(|(_, slot)| slot);
        self.banks.keep_only(&used.chain(self.leases.spare()).collect::<Vec<_>>());
        Ok(())
    }

    /// What other objects find slots by: the table of cgroups and the slots' flags.
    pub(super) fn shared(&self) -> (&MapData, &MapData) {
        (self.ids.data(), self.flags.data())
    }

    /// The banks, and who has which.
    pub(super) fn banks(&mut self) -> &mut Banks {
        &mut self.banks
    }

    /// The leases.
    pub(super) fn held(&self) -> &Leases {
        &self.leases
    }

    /// Cgroups that this side found no room for in the kernel's table.
    pub(super) fn no_room(&self) -> u64 {
        self.no_room
    }

    /// The banks of `slot`.
    ///
    /// # Errors
    /// When it has none.
    pub(super) fn bank(&self, slot: Slot) -> Result<&SlotBanks> {
        self.banks.of(slot)
    }

    /// Charges to a new lease what happens in the cgroups `tasks` (of the tasks' hierarchy) and `block`
    /// (of block I/O's, where the job has one there), and in those made inside them from now on.
    ///
    /// # Errors
    /// When there is no memory for a slot, no slot, or no room for the cgroups.
    pub fn track(&mut self, tasks: u64, block: Option<u64>) -> Result<Lease> {
        let lease = self.lease_free(1)?.pop().context("all slots are taken")?;
        self.keep(lease, true, false);
        self.place(Cgroup { table: 0, id: tasks }, lease)?;
        if let (table @ 1.., Some(id)) = (self.block_table, block) {
            self.place(Cgroup { table, id }, lease)?;
        }
        Ok(lease)
    }

    /// Up to `count` new leases, with no cgroup yet: of free slots, else of ones that were spare, since a job that
    /// is there comes before one that may come. Fewer where all slots are taken.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn lease(&mut self, count: usize) -> Result<Vec<Lease>> {
        let _ahead = Ahead::begin();
        let mut leases = self.lease_free(count)?;
        while leases.len() < count
            && let Some(slot) = self.offers.withdraw()
        {
            leases.extend(self.leases.take_spare(slot));
            self.write_flags(slot, 0);
        }
        Ok(leases)
    }

    fn lease_free(&mut self, count: usize) -> Result<Vec<Lease>> {
        let taken = self.take(count)?;
        taken.iter().for_each(|(slot, _)| self.write_flags(*slot, 0));
        Ok(taken.into_iter().map(|(_, lease)| lease).collect())
    }

    /// Takes up to `count` free slots, with their banks; fewer where there is memory for those alone.
    fn take(&mut self, count: usize) -> Result<Vec<(Slot, Lease)>> {
        let taken: Vec<_> = iter::from_fn(|| self.leases.take()).take(count).collect();
        let slots: Vec<Slot> = taken.iter().map(|(slot, _)| *slot).collect();
        if let Err(error) = self.banks.add_all(&slots) {
            slots.iter().for_each(|slot| self.leases.free(*slot));
            return if slots.len() > 1 { self.take(slots.len() / 2) } else { Err(error) };
        }
        Ok(taken)
    }

    /// Tells kernel and next agent whose `slot` is, with `own` of the kernel's flags.
    fn write_flags(&mut self, slot: Slot, own: u64) {
        self.flags.set(0, self.leases.word(0, 0));
        self.flags.set(slot.into(), self.leases.word(slot, own));
    }

    /// Has `count` slots ready for cgroups that nobody knows yet, as far as there are any; gives how
    /// many are ready.
    ///
    /// # Errors
    /// When there is no memory for a slot.
    pub fn keep_spare(&mut self, count: usize) -> Result<usize> {
        let _ahead = Ahead::begin();
        let missing = count.saturating_sub(self.leases.spares());
        for (slot, _) in self.take(missing)? {
            self.leases.set_spare(slot);
            self.write_flags(slot, self.spare_flags);
            self.offers.make(slot)?;
        }
        Ok(self.leases.spares())
    }

    /// From now on the first programs of cgroups that nobody knows yet are told of.
    pub(super) fn tell_first_execs(&mut self) {
        self.spare_flags = TELL_EXECS;
        let spare: Vec<Slot> = self.leases.spare().collect();
        spare.into_iter().for_each(|slot| self.write_flags(slot, self.spare_flags));
    }

    /// From now on, where `inherited`, the cgroups made inside those of `lease` are its own; with `execs`, the programs
    /// that its tasks execute are told of.
    pub fn keep(&mut self, lease: Lease, inherited: bool, execs: bool) {
        if let Some(slot) = self.leases.slot(lease) {
            let flag = |flag, is_set| if is_set { flag } else { 0 };
            self.write_flags(slot, flag(INHERITED, inherited) | flag(TELL_EXECS, execs));
        }
    }

    /// Charges `cgroup` to `lease`, whoever was charged before.
    ///
    /// # Errors
    /// When the lease has ended, or there is no room for the cgroup.
    pub fn place(&mut self, cgroup: Cgroup, lease: Lease) -> Result<()> {
        let slot = self.leases.slot(lease).context("its slot has ended")?;
        let placed = self.ids.insert(cgroup.table, cgroup.id, slot);
        self.no_room += u64::from(placed.is_err());
        placed
    }

    /// Charges `cgroup` to the rest of the node.
    pub fn displace(&mut self, cgroup: Cgroup) {
        self.ids.remove(cgroup.table, cgroup.id);
    }

    /// Who is charged for `cgroup`; `None` for the rest of the node.
    pub fn charged_for(&self, cgroup: Cgroup) -> Option<Lease> {
        let slot = self.ids.get(cgroup.table, cgroup.id)?;
        self.leases.holder(slot).map(|lease| self.leases.charged(lease))
    }

    /// Ends `lease`: its cgroups are charged to `heir` (0: the rest of the node), but what its tasks are
    /// running now is still its own. Its last values are in the first snapshot 100 ms or more from now and
    /// after the last such task left its CPU; then its slot is free for another.
    ///
    /// # Errors
    /// When the lease has ended, or is the rest of the node's.
    pub fn end(&mut self, lease: Lease, heir: Lease) -> Result<()> {
        let slot = self.leases.slot(lease).filter(|&slot| slot != 0);
        let slot = slot.context("it holds none")?;
        ensure!(!self.leases.has_ended(lease), "it has ended");
        let heir = self.leases.charged(heir);
        let heir_slot = self.leases.slot(heir).unwrap_or(0);
        ensure!(heir != lease, "it cannot be its own heir");
        self.ids.hand_over(slot, heir_slot);
        self.leases.end(lease, heir, Instant::now());
        self.write_flags(slot, 0);
        Ok(())
    }

    /// Leases in use that have not ended, the rest of the node's left out.
    pub fn leases(&self) -> Vec<Lease> {
        let used = self.leases.used().map(|(lease, _)| lease);
        used.filter(|&lease| lease != 0 && !self.leases.has_ended(lease)).collect()
    }

    /// Takes a spare lease into use whose event was lost.
    pub fn take_spare(&mut self, lease: Lease) {
        if let Some(slot) = self.leases.slot(lease)
            && self.leases.take_spare(slot).is_some()
        {
            self.write_flags(slot, 0);
        }
    }

    /// Whether leases have ended whose last values are still to be read.
    pub fn has_ended(&self) -> bool {
        self.leases.has_any_ended()
    }

    /// Whether `lease` has a slot.
    pub fn is_leased(&self, lease: Lease) -> bool {
        self.slot_of(lease).is_some()
    }

    /// The slot of `lease`; `None` where it has none any more.
    pub fn slot_of(&self, lease: Lease) -> Option<Slot> {
        self.leases.slot(lease)
    }

    /// Frees `slot`, whose banks are empty and to which nothing is charged any more.
    pub(super) fn free(&mut self, slot: Slot) {
        self.flags.set(slot.into(), 0);
        self.leases.free(slot);
    }

    /// Every cgroup that has an entry in the kernel's table.
    pub fn entered(&self) -> Vec<Cgroup> {
        self.ids.all()
    }

    /// A cgroup with an entry was removed while nobody looked.
    pub fn was_removed(&mut self, cgroup: Cgroup) {
        self.removed.remember(cgroup, Instant::now(), &mut self.ids);
    }

    /// Clears the entries of cgroups removed a while ago.
    pub(super) fn forget_removed(&mut self) {
        self.removed.forget(Instant::now(), &mut self.ids);
    }
}
