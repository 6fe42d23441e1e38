//! The probes' slots in the hands of the jobs: what the tracker asks for is done to them, and what the next
//! agent has to know of it is kept. Who is to have a slot is decided elsewhere.

use std::{
    collections::{BTreeSet, VecDeque},
    path::PathBuf,
    time::Instant,
};

use anyhow::Result;

use crate::{
    commands::agent::{
        log::Log,
        naming::Naming,
        state::{JournalEntry, Keeper},
        tracker::{Action, Tracker},
    },
    model::{job::Job, lease::Lease},
    probes::{Event, Probes},
};

/// Slots that are made ready at once: those that are used for the first time cost the kernel a grace period, 10 ms or
/// more, together.
pub(super) const AT_ONCE: usize = 16;

/// The slots.
pub(super) struct Slots {
    /// The programs and maps.
    pub probes: Probes,
    /// Slots to be kept ready for new cgroups.
    pub wanted_spares: usize,
    /// Where the next agent looks, where the programs outlive this one.
    pub keeper: Option<Keeper>,
    /// Events of cgroups so far that nobody has asked for.
    cgroup_events: u64,
    /// Leases that have ended and whose slots are not free yet.
    ending: BTreeSet<Lease>,
    /// Those of them whose slots are still to be ended, and in whose favour.
    to_end: VecDeque<(Lease, Lease)>,
}

/// How many slots are ready for new cgroups.
pub(super) struct Spares {
    /// Before some were made ready.
    pub before: usize,
    /// Now.
    pub now: usize,
}

impl Slots {
    /// Those of `probes`; nothing is kept for a next agent so far.
    pub fn new(probes: Probes, wanted_spares: usize) -> Self {
        let (ending, to_end) = (BTreeSet::new(), VecDeque::new());
        Self { probes, wanted_spares, keeper: None, cgroup_events: 0, ending, to_end }
    }

    /// What happened to cgroups and programs since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let keeper = &mut self.keeper;
        let events = self.probes.slots.events(|lease, cgroup, path| {
            if let Some(keeper) = keeper {
                // Where it cannot be written, note_owner says so.
                let _ = keeper.note(&JournalEntry::Made(lease, cgroup, path.to_owned()));
            }
        });
        let is_cgroup = |event: &&Event| !matches!(event, Event::Executed { .. });
        self.cgroup_events += events.iter().filter(is_cgroup).count() as u64;
        events
    }

    /// How many of them were of cgroups, since this was asked for.
    pub fn take_cgroup_events(&mut self) -> u64 {
        std::mem::take(&mut self.cgroup_events)
    }

    /// Does what `tracker` asks for.
    pub fn apply(
        &mut self,
        actions: impl IntoIterator<Item = Action>,
        tracker: &Tracker,
        naming: &Naming,
        log: &Log,
    ) {
        // What is made inside the cgroups of such a lease gets a slot of its own from its begin on.
        let has_steps = |lease| tracker.owner(lease).is_some_and(|job| naming.has_steps(job));
        for action in actions {
            if let Action::End(lease, 1..) | Action::Keep(lease, _) = action {
                self.note_owner(lease, tracker, log);
            }
            match action {
                Action::Place(cgroup, lease) => {
                    if let Err(error) = self.probes.slots.place(cgroup, lease) {
                        log.warning(format_args!("a cgroup is not counted for its job: {error:#}"));
                    }
                }
                Action::End(lease, heir) => {
                    // Its owner is known from here on: nothing is lost until its slot ends.
                    self.ending.insert(lease);
                    self.to_end.push_back((lease, heir));
                    if heir != 0 && !has_steps(lease) {
                        self.probes.slots.keep(lease, true, true);
                    }
                }
                Action::Keep(lease, execs) => {
                    let is_whole = !has_steps(lease);
                    self.probes.slots.keep(lease, is_whole, is_whole && execs);
                }
            }
        }
    }

    /// Frees what has ended, once its last values are kept.
    pub fn reclaim(&mut self) -> Result<()> {
        let keeper = &mut self.keeper;
        self.probes.reclaim(Instant::now(), |lease, groups| match keeper {
            Some(keeper) => keeper.note(&JournalEntry::Closed(lease, groups.to_vec())),
            None => Ok(()),
        })
    }

    /// Makes a few spare slots ready, as far as some are missing and free.
    pub fn make_ready(&mut self) -> Result<Spares> {
        let before = self.probes.slots.keep_spare(0)?;
        let now = self.probes.slots.keep_spare(self.wanted_spares.min(before + AT_ONCE))?;
        Ok(Spares { before, now })
    }

    /// Ends the slots whose leases have ended.
    pub fn end_due(&mut self, log: &Log) {
        for (lease, heir) in self.to_end.drain(..) {
            if let Err(error) = self.probes.slots.end(lease, heir) {
                log.warning(format_args!("cannot end a job's slot: {error:#}"));
            }
        }
    }

    /// Whether slots are still to be ended.
    pub fn are_due(&self) -> bool {
        !self.to_end.is_empty()
    }

    /// Whether something of `lease` is still to come: it has a slot, or what it ran is not all named.
    pub fn is_open(&self, lease: Lease) -> bool {
        let census = self.probes.census.as_ref();
        self.probes.slots.is_leased(lease) || census.is_some_and(|census| census.knows(lease))
    }

    /// Slots that will be free in a moment.
    pub fn ending(&mut self) -> usize {
        let probes = &self.probes;
        self.ending.retain(|lease| probes.slots.is_leased(*lease));
        self.ending.len()
    }

    /// Keeps whose `lease` is.
    fn note_owner(&mut self, lease: Lease, tracker: &Tracker, log: &Log) {
        let Some(keeper) = &mut self.keeper else { return };
        if let Some(job) = tracker.owner(lease)
            && let Some(tracked) = tracker.job(job)
            && let Err(error) =
                keeper.note(&JournalEntry::Owner(lease, job.clone(), tracked.root.clone()))
        {
            log.warning(format_args!("{error:#}"));
        }
    }

    /// Keeps what had been charged at once to the directory `path` of `job`'s, which is gone.
    pub fn note_peak(&mut self, job: Job, path: PathBuf, peak_bytes: u64) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.note(&JournalEntry::Peak(job, path, peak_bytes));
        }
    }

    /// Keeps that `job` is called `to` now. Lost, the next agent learns the name again.
    pub fn note_name(&mut self, job: &Job, to: &Job) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.note(&JournalEntry::Renamed(job.clone(), to.clone()));
        }
    }
}
