//! Going on where the agent before ended, and keeping what the agent after this one has to know.

use std::{collections::BTreeSet, path::PathBuf, time::Instant};

use anyhow::Result;

use super::{Node, Settings, arrivals::Arrival};
use crate::{
    base::clock::monotonic_ns,
    commands::agent::{
        details::Details,
        hierarchy::View,
        log::Log,
        state::{Entry, Keeper, KnownJob, State},
        tracker::{Action, Tracked},
    },
    model::{
        info::JobInfo,
        job::{Job, Lease},
        tables::Own,
    },
    probes::{Cgroup, Options, Probes},
    resolve::Resolver,
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
        resolver: Resolver,
        settings: Settings,
        (state, journal): (State, Vec<Entry>),
        keeper: Keeper,
        log: &Log,
    ) -> Result<Self> {
        let mut node = Self::new(probes, view, resolver, settings, log)?;
        // From the first event on: the agent after this one may have to know.
        node.keeper = Some(keeper);
        let now_ns = monotonic_ns();
        for known in state.jobs {
            // Else each restart would keep the slots of ended jobs for another two minutes.
            let ended_ns = known.ended_ns.unwrap_or(now_ns).min(now_ns);
            let KnownJob { job, names, lease, root, .. } = &known;
            node.tracker.resume(job, names, *lease, root.clone(), ended_ns, now_ns);
            let mut details = Details::resumed(known.info, known.uid, known.ended, known.totals);
            details.set_claims(known.gpus);
            node.details.insert(known.job, details);
        }
        for (lease, job) in &state.owners {
            node.tracker.resume_owner(*lease, job);
        }
        for entry in journal {
            match entry {
                Entry::Made(lease, cgroup, path) => {
                    // The agent may have been killed before it knew whose it is.
                    let path = node.seen(cgroup, &path);
                    let (answer, _) = node.believed(cgroup, &path, None);
                    if let Some(owner) = node.owner(&path, &answer) {
                        let job = node.tracker.named(&owner.job).clone();
                        node.resume_owner(lease, &job, owner.root, now_ns);
                    }
                }
                Entry::Owner(lease, job, root) => node.resume_owner(lease, &job, root, now_ns),
                Entry::Renamed(from, to) => {
                    node.tracker.rename(&from, &to);
                    if let Some(details) = node.details.remove(&from) {
                        node.details.insert(to, details);
                    }
                }
                Entry::Closed(lease, groups) => node.probes.close(lease, groups)?,
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

    fn resume_owner(&mut self, lease: Lease, job: &Job, root: PathBuf, now_ns: u64) {
        if self.tracker.job(job).is_none() {
            self.tracker.resume(job, &[], None, root, now_ns, now_ns);
            let details = Details::resumed(JobInfo::default(), None, None, Vec::new());
            self.details.insert(job.clone(), details);
        }
        self.tracker.resume_owner(lease, job);
    }

    /// Matches the cgroups that are there with the leases that are in use.
    fn find_again(&mut self, log: &Log) -> Result<()> {
        // Before the walk: what is made during it is there.
        let entered = self.probes.entered();
        let there = self.view.walk()?;
        for (cgroup, path) in &there {
            if self.tracker.knows(*cgroup) {
                continue;
            }
            let lease = self.probes.charged_for(*cgroup);
            let fresh = lease.is_some_and(|lease| !self.tracker.goes_on_in(lease));
            if let (Some(lease), true) = (lease, fresh) {
                self.probes.take_spare(lease);
            }
            let found = Arrival::found(*cgroup, path.clone());
            self.made(Arrival { lease, fresh, ..found }, log);
        }
        for lease in self.probes.leases() {
            if !self.tracker.goes_on_in(lease) {
                let owner = self.tracker.owner(lease).and_then(|job| self.tracker.job(job));
                let heir = owner.and_then(|tracked| tracked.lease).unwrap_or(0);
                self.apply(vec![Action::End(lease, heir)], log);
            }
        }
        let there: BTreeSet<Cgroup> = there.into_iter().map(|(cgroup, _)| cgroup).collect();
        for cgroup in entered.into_iter().filter(|cgroup| !there.contains(cgroup)) {
            self.probes.was_removed(cgroup);
        }
        Ok(())
    }

    /// From now on, what the next agent has to know is kept.
    pub fn keep_with(&mut self, keeper: Keeper) {
        self.keeper = Some(keeper);
    }

    /// Commits what was measured as reported up to `stamp_ns`, in the spool's `files`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, files: Option<&str>, stamp_ns: u64, options: &Options) -> Result<()> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let carried = self.probes.carried(self.view.layout(), options)?;
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
        let jobs = self.tracker.jobs().filter_map(known).collect();
        let owners = self.tracker.owners().iter().map(|(lease, job)| (*lease, job.clone()));
        let reported = self.previous.clone();
        let owners = owners.collect();
        keeper.commit(State::new(files, stamp_ns, reported, carried, jobs, owners))
    }

    /// Frees what has ended, once its last values are kept.
    pub(super) fn reclaim(&mut self) -> Result<()> {
        let keeper = &mut self.keeper;
        self.probes.reclaim(Instant::now(), |lease, groups| match keeper {
            Some(keeper) => keeper.note(&Entry::Closed(lease, groups.to_vec())),
            None => Ok(()),
        })
    }

    /// Keeps whose `lease` is.
    pub(super) fn note_owner(&mut self, lease: Lease, log: &Log) {
        let Some(keeper) = &mut self.keeper else { return };
        if let Some(job) = self.tracker.owner(lease)
            && let Some(tracked) = self.tracker.job(job)
            && let Err(error) = keeper.note(&Entry::Owner(lease, job.clone(), tracked.root.clone()))
        {
            log.warning(format_args!("{error:#}"));
        }
    }

    /// Keeps that `job` is called `to` now. Lost, the next agent learns the name again.
    pub(super) fn note_name(&mut self, job: &Job, to: &Job) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.note(&Entry::Renamed(job.clone(), to.clone()));
        }
    }
}
