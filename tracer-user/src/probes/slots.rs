//! The life of a slot: leased to a job's cgroups, ended with the job or in favour of another lease, free
//! for the next; and the cgroups it is charged for.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tracer_ebpf::{
    ids::{INHERITED, TELL_EXECS},
    records::{CpuRecord, life},
};

use super::{
    drain::Probes,
    events::{self, Cgroup, Event, Raw},
};
use crate::model::{
    group::Group,
    job::{Lease, Slot},
};

/// A removed cgroup is remembered this long: completions of its write-back come late.
const FORGET_AFTER: Duration = Duration::from_secs(120);

/// How often and how long [`Probes::settle`] looks.
const SETTLE_TRIES: u32 = 10;
const SETTLE_PAUSE: Duration = Duration::from_micros(500);

impl Probes {
    /// Waits until no CPU is seen running a task of `lease`, for a few milliseconds at most: a task that
    /// ended has been waited for a moment before it leaves its CPU for the last time and is charged.
    pub fn settle(&self, lease: Lease) {
        let slot = self.leases.slot(lease).map(u32::from);
        for _ in 0..SETTLE_TRIES {
            let of_slot = |cpu: &CpuRecord| cpu.pid != 0 && Some(cpu.slot) == slot;
            if !self.read_cpus().is_some_and(|cpus| cpus.iter().any(of_slot)) {
                return;
            }
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Charges to a new lease what happens in the cgroups `tasks` (of the tasks' hierarchy) and `block`
    /// (of block I/O's, where the job has one there), and in those made inside them from now on.
    ///
    /// # Errors
    /// When there is no memory for a slot, no slot, or no room for the cgroups.
    pub fn track(&mut self, tasks: u64, block: Option<u64>) -> Result<Lease> {
        let lease = self.lease()?;
        self.keep(lease, false);
        self.place(Cgroup { table: 0, id: tasks }, lease)?;
        if let (table @ 1.., Some(id)) = (self.layout.block_table(), block) {
            self.place(Cgroup { table, id }, lease)?;
        }
        Ok(lease)
    }

    /// A new lease, with no cgroup yet.
    ///
    /// # Errors
    /// When all slots are taken, or there is no memory.
    pub fn lease(&mut self) -> Result<Lease> {
        let (slot, lease) = self.leases.take().context("all slots are taken")?;
        if let Err(error) = self.maps.add_slot(slot, self.faults) {
            self.leases.free(slot);
            return Err(error);
        }
        self.write_flags(slot, 0);
        Ok(lease)
    }

    /// A new lease, with no cgroup yet: of a free slot, else of one that was spare, since a job that is there
    /// comes before one that may come. `None` where all slots are taken.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn lease_or_spare(&mut self) -> Result<Option<Lease>> {
        if self.leases.has_free() {
            return self.lease().map(Some);
        }
        let Some(slot) = self.maps.withdraw() else { return Ok(None) };
        let lease = self.leases.take_spare(slot);
        self.write_flags(slot, 0);
        Ok(lease)
    }

    /// Tells kernel and next agent whose `slot` is, with `own` of the kernel's flags.
    pub(super) fn write_flags(&mut self, slot: Slot, own: u64) {
        self.maps.flags.set(0, self.leases.word(0, 0));
        self.maps.flags.set(slot.into(), self.leases.word(slot, own));
    }

    /// Has `count` slots ready for cgroups that nobody knows yet, as far as there are any; gives how
    /// many are ready.
    ///
    /// # Errors
    /// When there is no memory for a slot.
    pub fn keep_spare(&mut self, count: usize) -> Result<usize> {
        while self.leases.spares() < count {
            let Some((slot, _)) = self.leases.take() else { break };
            if let Err(error) = self.maps.add_slot(slot, self.faults) {
                self.leases.free(slot);
                return Err(error);
            }
            self.leases.set_spare(slot);
            self.write_flags(slot, 0);
            self.maps.offer(slot)?;
        }
        Ok(self.leases.spares())
    }

    /// From now on the cgroups made inside those of `lease` are its own; with `execs`, the programs that
    /// its tasks execute are told of.
    pub fn keep(&mut self, lease: Lease, execs: bool) {
        if let Some(slot) = self.leases.slot(lease) {
            let execs = if execs { TELL_EXECS } else { 0 };
            self.write_flags(slot, INHERITED | execs);
        }
    }

    /// Charges `cgroup` to `lease`, whoever was charged before.
    ///
    /// # Errors
    /// When the lease has ended, or there is no room for the cgroup.
    pub fn place(&mut self, cgroup: Cgroup, lease: Lease) -> Result<()> {
        let slot = self.leases.slot(lease).with_context(|| format!("lease {lease} has ended"))?;
        let placed = self.maps.ids.insert(cgroup.table, cgroup.id, slot);
        self.no_room += u64::from(placed.is_err());
        placed
    }

    /// Charges `cgroup` to the rest of the node.
    pub fn displace(&mut self, cgroup: Cgroup) {
        self.maps.ids.remove(cgroup.table, cgroup.id);
    }

    /// Who is charged for `cgroup`; `None` for the rest of the node.
    pub fn charged_for(&self, cgroup: Cgroup) -> Option<Lease> {
        let slot = self.maps.ids.get(cgroup.table, cgroup.id)?;
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
        let slot = slot.with_context(|| format!("lease {lease} holds no slot"))?;
        ensure!(!self.leases.has_ended(lease), "lease {lease} has ended");
        let heir = self.leases.charged(heir);
        let heir_slot = self.leases.slot(heir).unwrap_or(0);
        ensure!(heir != lease, "lease {lease} cannot be its own heir");
        self.maps.ids.hand_over(slot, heir_slot);
        self.leases.end(lease, heir, Instant::now());
        self.write_flags(slot, 0);
        Ok(())
    }

    /// Reads those for the last time that ended a while before `now`, and frees their slots once `note` has
    /// seen the values: they are in the next snapshot.
    ///
    /// # Errors
    /// When a map cannot be read, or `note` fails: the slot is not freed then.
    pub fn reclaim(
        &mut self,
        now: Instant,
        mut note: impl FnMut(Lease, &[Group]) -> Result<()>,
    ) -> Result<()> {
        let Some(cpus) = self.read_cpus() else { return Ok(()) };
        let cpus = self.running_now(&cpus);
        let shown = |slot: Slot| cpus.iter().any(|cpu| cpu.slot == u32::from(slot));
        for ended in self.leases.ripe(now, shown) {
            let groups = self.read_last(ended.lease, ended.slot)?;
            note(ended.lease, &groups)?;
            self.close(ended.lease, groups)?;
        }
        Ok(())
    }

    /// Frees the slot of `lease`, where it has one yet, whose last values are `groups`: read now, or by an
    /// agent before this one that did not live to report them.
    ///
    /// # Errors
    /// When the kernel refuses to empty the slot.
    pub fn close(&mut self, lease: Lease, groups: Vec<Group>) -> Result<()> {
        self.closed.insert(lease, groups);
        self.running.forget(lease);
        self.decoders.remove(&lease);
        if let Some(slot) = self.leases.slot(lease) {
            self.maps.free_slot(slot)?;
            self.cells.retain(|_, (key, _)| key.slot != slot);
            self.leases.free(slot);
        }
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
        self.leases.slot(lease).is_some()
    }

    /// Readable when [`Self::events`] has something to tell.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn events_fd(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring keeps its descriptor open as long as it is borrowed here.
        let fd = unsafe { BorrowedFd::borrow_raw(self.maps.events.as_raw_fd()) };
        fd.try_clone_to_owned()
    }

    /// What happened to cgroups and programs since the last call, in its order. `note` is told of each
    /// lease that a cgroup took, with the kernel's path of it, while the event is still in the ring: a
    /// process that is killed in between leaves the event to the next one, or the note.
    pub fn events(&mut self, mut note: impl FnMut(Lease, Cgroup, &Path)) -> Vec<Event> {
        let leases = &self.leases;
        let mut noted = BTreeSet::new();
        let raw = events::drain(&mut self.maps.events, |raw| {
            // The first to tell of a spare slot took it; those below it share it.
            if raw.kind == life::MADE
                && let Some(lease) = leases.spare_lease(raw.slot)
                && noted.insert(lease)
            {
                note(lease, raw.cgroup, &raw.path);
            }
        });
        let now = Instant::now();
        raw.into_iter().filter_map(|raw| self.event(raw, now)).collect()
    }

    fn event(&mut self, raw: Raw, now: Instant) -> Option<Event> {
        let cgroup = raw.cgroup;
        match raw.kind {
            life::MADE => {
                let new = self.leases.take_spare(raw.slot);
                if new.is_some() {
                    self.write_flags(raw.slot, 0);
                }
                let lease =
                    new.or_else(|| self.leases.holder(raw.slot).filter(|&lease| lease != 0));
                if let Some(lease) = lease
                    && self.maps.ids.get(cgroup.table, cgroup.id).is_none()
                {
                    // No way of the kernel's was free, and it has counted that: one of ours may be.
                    let counted = self.no_room;
                    let _ = self.place(cgroup, lease);
                    self.no_room = counted;
                }
                let lease = lease.map(|lease| self.leases.charged(lease));
                let (fresh, path, at_ns) = (new.is_some(), raw.path, raw.at_ns);
                Some(Event::Made { cgroup, lease, fresh, path, at_ns, uid: raw.uid })
            }
            life::REMOVED => {
                if self.maps.ids.get(cgroup.table, cgroup.id).is_some() {
                    self.remember_removed(cgroup, now);
                }
                let lease = self.leases.holder(raw.slot).filter(|&lease| lease != 0);
                let lease = lease.map(|lease| self.leases.charged(lease));
                Some(Event::Removed { cgroup, lease, at_ns: raw.at_ns })
            }
            life::RENAMED => Some(Event::Renamed { cgroup, at_ns: raw.at_ns }),
            _ => {
                let lease = self.leases.charged(self.leases.holder(raw.slot)?);
                Some(Event::Executed { lease, pid: raw.pid, uid: raw.uid })
            }
        }
    }

    /// Keeps the entry of a removed cgroup for late completions, as long as its set has room for new
    /// ones.
    pub(super) fn remember_removed(&mut self, cgroup: Cgroup, now: Instant) {
        self.removed.push((now, cgroup));
        while self.maps.ids.is_crowded(cgroup.table, cgroup.id) {
            let same_set =
                |(_, other): &(Instant, Cgroup)| self.maps.ids.shares_set(*other, cgroup);
            let Some(oldest) = self.removed.iter().position(same_set) else { return };
            let (_, oldest) = self.removed.remove(oldest);
            self.maps.ids.remove(oldest.table, oldest.id);
        }
    }

    /// Clears the entries of cgroups removed a while ago.
    pub(super) fn forget_removed(&mut self) {
        let now = Instant::now();
        let maps = &mut self.maps;
        self.removed.retain(|&(at, cgroup)| {
            let keep = now.duration_since(at) < FORGET_AFTER;
            if !keep {
                maps.ids.remove(cgroup.table, cgroup.id);
            }
            keep
        });
    }
}
