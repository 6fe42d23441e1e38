//! Going on where the agent before ended, and keeping what the agent after this one has to know.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Node, NodeSettings, arrivals::Arrival, jobs::Jobs, slots::Slots};
use crate::{
    base::clock::monotonic_ns,
    commands::agent::{
        details::Details,
        hierarchy::View,
        log::Log,
        state::{AgentState, JournalEntry, Keeper, KnownJob},
        tracker::{Action, Tracked},
    },
    model::{
        info::JobInfo,
        job::{Job, Lease},
        tables::Own,
    },
    probes::{Cgroup, Options, Probes},
};

impl Node {
    /// A node whose programs ran on since an agent before this one reported `state`: the first interval
    /// covers all that came since.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn resume(
        probes: Probes,
        view: View,
        settings: NodeSettings,
        (state, journal): (AgentState, Vec<JournalEntry>),
        keeper: Keeper,
        log: &Log,
    ) -> Result<Self> {
        let mut node = Self::new(probes, view, settings, log)?;
        // From the first event on: the agent after this one may have to know.
        node.keep_with(keeper);
        let now_ns = monotonic_ns();
        for known in state.jobs {
            node.jobs.resume(known, now_ns);
        }
        for (lease, job) in &state.owners {
            node.jobs.tracker.resume_owner(*lease, job);
        }
        for entry in journal {
            match entry {
                JournalEntry::Made(lease, cgroup, path) => {
                    node.jobs.resume_made(lease, cgroup, &path, now_ns);
                }
                JournalEntry::Owner(lease, job, root) => {
                    node.jobs.resume_owner(lease, &job, root, now_ns);
                }
                JournalEntry::Renamed(from, to) => {
                    node.jobs.tracker.rename(&from, &to);
                    node.jobs.move_details(&from, to);
                }
                JournalEntry::Closed(lease, groups) => node.slots.probes.close(lease, groups)?,
            }
        }
        node.previous = state.reported;
        // This process's own clocks begin anew.
        for own in &mut node.previous.own {
            own.set(Own::cpu_ns, 0);
            own.set(Own::drain_ns, 0);
        }
        node.lost_events = node.count_lost_events();
        // No slot is taken back before it is known which jobs are there still.
        node.handle_events(log);
        node.find_again(log)?;
        node.care(log)?;
        Ok(node)
    }

    /// Matches the cgroups that are there with the leases that are in use.
    fn find_again(&mut self, log: &Log) -> Result<()> {
        // Before the walk: what is made during it is there.
        let entered = self.slots.probes.entered();
        let there = self.jobs.view.walk()?;
        for (cgroup, path) in &there {
            if self.jobs.tracker.knows(*cgroup) {
                continue;
            }
            let lease = self.slots.probes.charged_for(*cgroup);
            let fresh = lease.is_some_and(|lease| !self.jobs.tracker.goes_on_in(lease));
            if let (Some(lease), true) = (lease, fresh) {
                self.slots.probes.take_spare(lease);
            }
            let found = Arrival::found(*cgroup, path.clone());
            self.jobs.made(Arrival { lease, fresh, ..found }, &mut self.slots, log);
        }
        for lease in self.slots.probes.leases() {
            if !self.jobs.tracker.goes_on_in(lease) {
                let owner =
                    self.jobs.tracker.owner(lease).and_then(|job| self.jobs.tracker.job(job));
                let heir = owner.and_then(|tracked| tracked.lease).unwrap_or(0);
                self.jobs.apply([Action::End(lease, heir)], &mut self.slots, log);
            }
        }
        let there: BTreeSet<Cgroup> = there.into_iter().map(|(cgroup, _)| cgroup).collect();
        for cgroup in entered.into_iter().filter(|cgroup| !there.contains(cgroup)) {
            self.slots.probes.was_removed(cgroup);
        }
        Ok(())
    }

    /// From now on, what the next agent has to know is kept.
    pub fn keep_with(&mut self, keeper: Keeper) {
        self.slots.keeper = Some(keeper);
    }

    /// Commits what was measured as reported up to `stamp_ns`, in the spool's `files`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, files: Option<&str>, stamp_ns: u64, options: &Options) -> Result<()> {
        let Slots { keeper: Some(keeper), probes, .. } = &mut self.slots else { return Ok(()) };
        let carried = probes.carried(self.jobs.view.layout(), options)?;
        let owners = self.jobs.tracker.owners().iter().map(|(lease, job)| (*lease, job.clone()));
        let (reported, owners) = (self.previous.clone(), owners.collect());
        let jobs = self.jobs.known();
        keeper.commit(AgentState::new(files, stamp_ns, reported, carried, jobs, owners))
    }
}

impl Jobs {
    /// What the next agent has to know of the jobs.
    fn known(&self) -> Vec<KnownJob> {
        let known = |(job, tracked): (&Job, &Tracked)| {
            let details = self.details.get(job)?;
            Some(KnownJob {
                job: job.clone(),
                names: self.tracker.names(job),
                lease: tracked.lease,
                root: tracked.root.clone(),
                info: details.info.clone(),
                uid: details.uid,
                ended_ns: tracked.ended_ns,
                ended: details.end(),
                totals: details.totals().to_vec(),
                gpus: details.claims().cloned(),
            })
        };
        self.tracker.jobs().filter_map(known).collect()
    }

    /// A job as the agent before knew it.
    fn resume(&mut self, known: KnownJob, now_ns: u64) {
        // Else each restart would keep the slots of ended jobs for another two minutes.
        let ended_ns = known.ended_ns.unwrap_or(now_ns).min(now_ns);
        let KnownJob { job, names, lease, root, .. } = &known;
        self.tracker.resume(job, names, *lease, root.clone(), ended_ns, now_ns);
        let mut details = Details::resumed(known.info, known.uid, known.ended, known.totals);
        details.set_claims(known.gpus);
        self.details.insert(known.job, details);
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
            self.tracker.resume(job, &[], None, root, now_ns, now_ns);
            let details = Details::resumed(JobInfo::default(), None, None, Vec::new());
            self.details.insert(job.clone(), details);
        }
        self.tracker.resume_owner(lease, job);
    }
}
