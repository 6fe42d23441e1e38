//! What the kernel tells of cgroups and programs, and what follows for slots and leases.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
    time::Instant,
};

use tracer_ebpf::records::life;

use super::Slots;
use crate::{
    model::lease::Lease,
    probes::events::{self, Cgroup, Event, Raw},
};

impl Slots {
    /// Readable when [`Self::events`] has something to tell.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn events_fd(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring keeps its descriptor open as long as it is borrowed here.
        let fd = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        fd.try_clone_to_owned()
    }

    /// What happened to cgroups and programs since the last call, in its order. `note` is told of each
    /// lease that a cgroup took, with the kernel's path of it, while the event is still in the ring: a
    /// process that is killed in between leaves the event to the next one, or the note.
    pub fn events(&mut self, mut note: impl FnMut(Lease, Cgroup, &Path)) -> Vec<Event> {
        let leases = &self.leases;
        let mut noted = BTreeSet::new();
        let raw = events::drain(&mut self.ring, |raw| {
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
                    // Its first programs are told of until it is known whose it is.
                    self.write_flags(raw.slot, self.spare_flags);
                }
                let lease =
                    new.or_else(|| self.leases.holder(raw.slot).filter(|&lease| lease != 0));
                if let Some(lease) = lease
                    && self.ids.get(cgroup.table, cgroup.id).is_none()
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
                if self.ids.get(cgroup.table, cgroup.id).is_some() {
                    self.removed.remember(cgroup, now, &mut self.ids);
                }
                let lease = self.leases.holder(raw.slot).filter(|&lease| lease != 0);
                let lease = lease.map(|lease| self.leases.charged(lease));
                let peak_bytes = Some(raw.peak_bytes).filter(|bytes| *bytes > 0);
                let (path, at_ns) = (raw.path, raw.at_ns);
                Some(Event::Removed { cgroup, lease, at_ns, path, peak_bytes })
            }
            life::DISCHARGED => {
                Some(Event::Discharged { path: raw.path, peak_bytes: raw.peak_bytes })
            }
            life::RENAMED => Some(Event::Renamed { cgroup, at_ns: raw.at_ns }),
            _ => {
                let lease = self.leases.charged(self.leases.holder(raw.slot)?);
                Some(Event::Executed { lease, pid: raw.pid, uid: raw.uid })
            }
        }
    }
}
