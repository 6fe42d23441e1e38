//! Going on where the agent before ended, and keeping what the agent after this one has to know.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{arrivals::Arrival, jobs::Jobs, slots::Slots};
use crate::{
    base::clock::{boot_wall_ns, monotonic_ns},
    commands::agent::{
        details::Details,
        log::Log,
        state::{JournalEntry, KnownJob},
        tracker::Action,
    },
    model::{job::Job, lease::Lease},
    probes::Cgroup,
};

impl Jobs {
    /// Goes on where the agent before ended, which reported up to `reported_ns` (CLOCK_MONOTONIC): with what it knew, and
    /// what came to light after that.
    ///
    /// # Errors
    /// When the last values of a slot cannot be taken over.
    pub fn resume(
        &mut self,
        known: Vec<KnownJob>,
        owners: &[(Lease, Job)],
        journal: Vec<JournalEntry>,
        reported_ns: u64,
        slots: &mut Slots,
    ) -> Result<()> {
        let now_ns = monotonic_ns();
        self.reported_ns = reported_ns;
        for known in known {
            self.resume_job(known, now_ns);
        }
        for (lease, job) in owners {
            self.tracker.resume_owner(*lease, job);
        }
        for entry in journal {
            match entry {
                JournalEntry::Made(lease, cgroup, path) => {
                    self.resume_made(lease, cgroup, &path, now_ns);
                }
                JournalEntry::Owner(lease, job, root) => {
                    self.resume_owner(lease, &job, root, now_ns);
                }
                JournalEntry::Renamed(from, to) => {
                    self.tracker.rename(&from, &to);
                    self.move_details(&from, to);
                }
                JournalEntry::Peak(job, path, bytes) => {
                    self.note_peak(&job, &path, bytes);
                }
                JournalEntry::Closed(lease, groups) => slots.probes.close(lease, groups)?,
            }
        }
        Ok(())
    }

    /// Matches the cgroups that are there with the leases that are in use.
    ///
    /// # Errors
    /// When the hierarchies cannot be read.
    pub fn find_again(&mut self, slots: &mut Slots, log: &Log) -> Result<()> {
        // Before the walk: what is made during it is there.
        let entered = slots.probes.slots.entered();
        let there = self.view.walk()?;
        for (cgroup, path) in &there {
            if self.tracker.knows(*cgroup) {
                continue;
            }
            let lease = slots.probes.slots.charged_for(*cgroup);
            let fresh = lease.is_some_and(|lease| !self.tracker.goes_on_in(lease));
            if let (Some(lease), true) = (lease, fresh) {
                slots.probes.slots.take_spare(lease);
            }
            let found = Arrival::found(*cgroup, path.clone());
            self.made(Arrival { lease, fresh, ..found }, slots, log);
        }
        for lease in slots.probes.slots.leases() {
            if !self.tracker.goes_on_in(lease) {
                let owner = self.tracker.owner(lease).and_then(|job| self.tracker.job(job));
                let heir = owner.and_then(|tracked| tracked.lease).unwrap_or(0);
                self.apply([Action::End(lease, heir)], slots, log);
            }
        }
        let there: BTreeSet<Cgroup> = there.into_iter().map(|(cgroup, _)| cgroup).collect();
        for cgroup in entered.into_iter().filter(|cgroup| !there.contains(cgroup)) {
            slots.probes.slots.was_removed(cgroup);
        }
        Ok(())
    }

    /// What the next agent has to know of the jobs.
    pub fn known(&self) -> Vec<KnownJob> {
        let known = |job: &Job, details: &Details| {
            let tracked = self.tracker.job(job);
            let let_go = self.let_go.of(job).filter(|_| tracked.is_none());
            KnownJob {
                job: job.clone(),
                names: self.tracker.names(job),
                lease: tracked.and_then(|tracked| tracked.lease),
                root: self.root(job).map(Path::to_owned).unwrap_or_default(),
                info: details.info.clone(),
                uid: details.uid,
                is_released: tracked.is_none(),
                ended_ns: tracked
                    .and_then(|tracked| tracked.ended_ns)
                    .or(let_go.map(|(_, ended_ns)| ended_ns)),
                ended: details.end(),
                known: tracked.is_some_and(|tracked| tracked.known),
                counted: details.counted(),
                gpus: details.claims().cloned(),
            }
        };
        self.details.iter().map(|(job, details)| known(job, details)).collect()
    }

    /// A job as the agent before knew it.
    fn resume_job(&mut self, known: KnownJob, now_ns: u64) {
        // Else each restart would keep the slots of ended jobs for another two minutes.
        let ended_ns = known.ended_ns.unwrap_or(now_ns).min(now_ns);
        let KnownJob { job, names, lease, root, .. } = &known;
        if !known.is_released {
            self.tracker.resume(job, names, *lease, root.clone(), ended_ns, now_ns);
        } else if !root.as_os_str().is_empty() {
            // What was told while no agent was there is read in a moment.
            self.let_go.add(job.clone(), root.clone(), now_ns, now_ns);
        }
        if known.known {
            self.tracker.know(job);
        }
        let mut details = Details::resumed(known.info, known.uid, known.ended, known.counted);
        details.set_claims(known.gpus);
        self.insert(known.job, details);
    }

    /// `lease` was given to a cgroup, and the agent before may have been killed before it knew whose that is.
    fn resume_made(&mut self, lease: Lease, cgroup: Cgroup, path: &Path, now_ns: u64) {
        let path = self.seen(cgroup, path);
        let (answer, _) = self.believed(cgroup, &path, None);
        if let Some(owner) = self.naming.owner(&path, &answer) {
            let job = self.tracker.named(&owner.job).clone();
            self.resume_owner(lease, &job, owner.root, now_ns);
        }
    }

    fn resume_owner(&mut self, lease: Lease, job: &Job, root: PathBuf, now_ns: u64) {
        if self.tracker.job(job).is_none() {
            let mut details = Details::found(self.reported_ns, boot_wall_ns());
            // Its processes may have gone: what is left to tell of it is its path.
            details.note(&self.naming.resolver.path(&root.to_string_lossy()));
            self.tracker.resume(job, &[], None, root, now_ns, now_ns);
            self.insert(job.clone(), details);
        }
        self.tracker.resume_owner(lease, job);
    }
}
