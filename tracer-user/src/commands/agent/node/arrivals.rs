//! Cgroups that were made, found or renamed, and whose they are.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;
use tracer_ebpf::records::PATH_BYTES;

use super::{jobs::Jobs, slots::Slots};
use crate::{
    base::clock::{boot_wall_ns, monotonic_ns, wall_at, wall_ns},
    commands::agent::{
        asking::Asking,
        details::{Details, read_start_wall_ns},
        log::Log,
        tracker::Owner,
    },
    model::job::Job,
    probes::{Cgroup, Event},
};

/// A cgroup that was made, or found.
pub(super) struct Arrival {
    /// Which.
    pub cgroup: Cgroup,
    /// Who is charged; `None` for the rest of the node.
    pub lease: Option<u32>,
    /// Whether the lease was nobody's before.
    pub fresh: bool,
    /// Its path.
    pub path: PathBuf,
    /// When it was made, CLOCK_MONOTONIC; 0: its tasks tell.
    pub at_ns: u64,
    /// Who made it, where the kernel told.
    pub made_by: Option<u32>,
}

impl Arrival {
    /// One that was there already, and is nobody's.
    pub fn found(cgroup: Cgroup, path: PathBuf) -> Self {
        Self { cgroup, lease: None, fresh: false, path, at_ns: 0, made_by: None }
    }
}

impl Jobs {
    /// Handles what happened to cgroups and programs, without anything that takes long; whether anything
    /// did.
    pub fn take_events(&mut self, slots: &mut Slots, log: &Log) -> bool {
        let events = slots.events();
        let any = !events.is_empty();
        for event in events {
            match event {
                Event::Made { cgroup, lease, fresh, path, at_ns, uid } => {
                    let path = self.seen(cgroup, &path);
                    let made_by = Some(uid);
                    let arrival = Arrival { cgroup, lease, fresh, path, at_ns, made_by };
                    self.made(arrival, slots, log);
                }
                Event::Removed { cgroup, lease, at_ns, path, peak_bytes } => {
                    let known = self.tracker.job_of(cgroup).cloned();
                    // The agent before may have known it: that it had a slot tells that it was a job's.
                    if let Some(peak_bytes) =
                        peak_bytes.filter(|_| known.is_some() || lease.is_some())
                    {
                        self.uncharged(known, &path, peak_bytes, slots);
                    }
                    let details =
                        self.tracker.job_of(cgroup).and_then(|job| self.details.get_mut(job));
                    if let Some(details) = details {
                        details.end_part(cgroup, at_ns);
                    }
                    if self.tracker.knows(cgroup) {
                        self.gpus_may_differ |= self.tracker.removed(cgroup, at_ns);
                    } else if let Some(lease) = lease {
                        self.tracker.removed_of(lease, at_ns);
                    }
                }
                Event::Discharged { path, peak_bytes } => {
                    self.uncharged(None, &path, peak_bytes, slots);
                }
                Event::Renamed { at_ns, .. } => self.renamed(at_ns, slots, log),
                Event::Executed { lease, pid, uid } => {
                    self.executed(lease, (pid, uid), slots, log);
                }
            }
        }
        any
    }

    /// Events were lost: compares what is known with what is there.
    ///
    /// # Errors
    /// When the hierarchies cannot be read.
    pub fn look_again(&mut self, slots: &mut Slots, log: &Log) -> Result<()> {
        let there: BTreeSet<Cgroup> =
            self.view.walk()?.into_iter().map(|(cgroup, _)| cgroup).collect();
        for cgroup in self.tracker.cgroups() {
            if !there.contains(&cgroup) {
                slots.probes.slots.displace(cgroup);
                self.tracker.removed(cgroup, monotonic_ns());
            }
        }
        self.find_existing(slots, log)
    }

    /// The kernel's `path` of `cgroup` as this process sees it.
    pub fn seen(&mut self, cgroup: Cgroup, path: &Path) -> PathBuf {
        if path.as_os_str().len() + 1 >= PATH_BYTES {
            // Cut off by the kernel: what is left may be the name of another job.
            self.view.find(cgroup).unwrap_or_default()
        } else {
            self.view.seen(cgroup, path)
        }
    }

    /// Takes in the cgroups that are there and that nobody has told of.
    ///
    /// # Errors
    /// When the hierarchies cannot be read.
    pub fn find_existing(&mut self, slots: &mut Slots, log: &Log) -> Result<()> {
        for (cgroup, path) in self.view.walk()? {
            // One that has a lease was made meanwhile: its event is on its way.
            if !self.tracker.knows(cgroup) && slots.probes.slots.charged_for(cgroup).is_none() {
                self.made(Arrival::found(cgroup, path), slots, log);
            }
        }
        Ok(())
    }

    /// A cgroup at `path` is gone, to which `peak_bytes` had been charged at once: it may have been a job's, or a part's.
    /// In the hierarchy of memory they lie as they do where jobs are told apart.
    fn uncharged(&mut self, known: Option<Job>, path: &Path, peak_bytes: u64, slots: &mut Slots) {
        let path = self.view.shown(path);
        let Some(job) = known.or_else(|| self.last_owner(&path)) else { return };
        self.note_peak(&job, &path, peak_bytes);
        slots.note_peak(job, path, peak_bytes);
    }

    /// The job in whose directory `path` lay, the last one of its id.
    fn last_owner(&self, path: &Path) -> Option<Job> {
        let tracked = self.tracker.owner_of(path);
        let tracked = tracked.map(|(job, of)| (job, &*of.root, of.ended_ns.unwrap_or(u64::MAX)));
        let owners = self.let_go.owner_of(path).into_iter().chain(tracked);
        // One inside another's directory has the longer path.
        let owner = owners.max_by_key(|(_, root, ended_ns)| (root.as_os_str().len(), *ended_ns));
        owner.map(|(job, ..)| job.clone())
    }

    /// To the directory `path` of `job`'s, which is gone, `peak_bytes` had been charged at once.
    pub(super) fn note_peak(&mut self, job: &Job, path: &Path, peak_bytes: u64) {
        let is_root = self.root(job) == Some(path);
        let Some(details) = self.details.get_mut(job) else { return };
        if is_root {
            details.note_peak(peak_bytes);
        } else {
            let answer = self.naming.resolver.path(&path.to_string_lossy());
            details.note_part_peak(&answer, peak_bytes);
        }
    }

    /// The topmost directory of `job`, also where it was let go a moment ago.
    pub(super) fn root(&self, job: &Job) -> Option<&Path> {
        let tracked = self.tracker.job(job).map(|tracked| &*tracked.root);
        tracked.or_else(|| self.let_go.of(job).map(|(root, _)| root))
    }

    /// What is still to be told of directories that are gone: of each job its topmost one and what had been charged to it.
    pub(super) fn pending_peaks(&self) -> Vec<(Job, PathBuf, u64)> {
        let pending = self.details.iter().filter_map(|(job, details)| {
            let is_apart = self.tracker.job(job).is_some_and(|of| !of.apart.is_empty());
            let peak_bytes = details.pending_peak(is_apart)?;
            Some((Job::clone(job), self.root(job)?.to_owned(), peak_bytes))
        });
        pending.collect()
    }

    /// Some cgroup was renamed: it and those below it may be other jobs' from here on.
    fn renamed(&mut self, at_ns: u64, slots: &mut Slots, log: &Log) {
        let there = match self.view.walk() {
            Ok(there) => there,
            Err(error) => return log.warning(format_args!("{error:#}")),
        };
        for (cgroup, path) in there {
            let (answer, _) = self.believed(cgroup, &path, None);
            let owner = self.naming.owner(&path, &answer);
            let owner = owner.map(|owner| self.tracker.named(&owner.job).clone());
            if self.tracker.job_of(cgroup) != owner.as_ref() {
                slots.probes.slots.displace(cgroup);
                self.tracker.removed(cgroup, at_ns);
                let arrival = Arrival { at_ns, ..Arrival::found(cgroup, path) };
                self.made(arrival, slots, log);
            }
        }
    }

    /// A cgroup was made, or found.
    pub fn made(&mut self, arrival: Arrival, slots: &mut Slots, log: &Log) {
        let Arrival { cgroup, lease, fresh, ref path, at_ns, made_by } = arrival;
        let (answer, maker) = self.believed(cgroup, path, made_by);
        let is_seen = |owner: &Owner| owner.job.manager != "run" || self.view.sees_runs();
        let owner = self.naming.owner(path, &answer).filter(is_seen);
        if let Some(owner) = &owner {
            self.tell_apart(&owner.job, &answer, maker, slots, log);
            // No interval may have ended since its end.
            let named = self.tracker.named(&owner.job).clone();
            self.note_ended(&named);
        }
        let named = owner.as_ref().map(|owner| self.tracker.named(&owner.job).clone());
        let before = named.as_ref().and_then(|job| self.tracker.job(job));
        let is_apart = before.is_some_and(|tracked| !tracked.apart.is_empty());
        let wanting = named.filter(|job| self.tracker.wants(job));
        let actions = self.tracker.made(cgroup, lease, fresh, owner, monotonic_ns());
        self.apply(actions, slots, log);
        let served = wanting.filter(|job| !self.tracker.wants(job));
        if let Some(job) = &served {
            self.serve(job, slots, log);
        }
        // In a cgroup that was nobody's yet no program was told of, but where the first may ask for silence; in one that had
        // no slot none was.
        let is_untold = lease.is_none() || fresh && slots.probes.census.is_none();
        let Some(job) = self.tracker.job_of(cgroup).cloned() else { return };
        let Some(tracked) = self.tracker.job(&job) else { return };
        if let Some(census) = &mut slots.probes.census {
            match (lease, tracked.lease) {
                _ if served.is_some() => {}
                (Some(lease), _) if fresh => census.begin(lease, at_ns),
                // No slot was ready for it: what began there meanwhile was not seen.
                (None, Some(main)) => census.begin(main, 0),
                _ => {}
            }
        }
        if let Some(details) = self.details.get_mut(&job) {
            let has_returned = details.set_returned(monotonic_ns(), is_apart);
            details.made_by = details.made_by.or(Some(maker));
            details.note(&answer);
            details.begin_part(cgroup, path.clone(), &answer, monotonic_ns());
            // Where it has none at all, its next slot tells since when it had none.
            if has_returned && lease.is_none() && tracked.lease.is_some() && at_ns > 0 {
                details.note_unserved(at_ns, monotonic_ns());
            }
            if has_returned {
                details.asking = Asking::default();
                let actions = self.tracker.forget_known(&job);
                self.apply(actions, slots, log);
                self.know_by_path(&job, slots, log);
            }
            if is_untold {
                self.learn_from_tasks(&job, slots, log);
            }
            return;
        }
        if let Some(uid) = answer.uid {
            // So that the name is there at the first tick.
            self.users.ask(uid);
        }
        let start = match at_ns {
            0 => read_start_wall_ns(self.view.pids(&tracked.root)).unwrap_or_else(wall_ns),
            at_ns => wall_at(at_ns),
        };
        let mut details = Details::new(&answer, start, boot_wall_ns());
        details.made_by = Some(maker);
        let traced_ns = slots.probes.since_ns();
        if start < wall_at(traced_ns) {
            details.set_counted_from(traced_ns);
        }
        details.begin_part(cgroup, path.clone(), &answer, monotonic_ns());
        self.insert(job.clone(), details);
        self.know_by_path(&job, slots, log);
        if is_untold {
            self.learn_from_tasks(&job, slots, log);
        }
    }
}
