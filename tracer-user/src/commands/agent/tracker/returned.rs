//! A job that had ended and has cgroups again: the same, as between two steps, or another with its id. Until its tasks
//! have told which, what came is charged apart.

use std::sync::Arc;

use super::{Action, Tracked, Tracker};
use crate::{
    model::{job::Job, lease::Lease},
    probes::Cgroup,
};

impl Tracked {
    /// Has `cgroup` charged to a lease apart: to that of its own, where it is `fresh`.
    pub(super) fn charge_apart(
        &mut self,
        cgroup: Cgroup,
        lease: Option<Lease>,
        fresh: bool,
    ) -> Vec<Action> {
        if let Some(own) = lease.filter(|_| fresh) {
            self.apart.push(own);
            return vec![Action::Keep(own, true)];
        }
        let is_placed = lease.is_some_and(|lease| self.apart.contains(&lease));
        let first = self.apart.first().filter(|_| !is_placed);
        first.map(|first| Action::Place(cgroup, *first)).into_iter().collect()
    }
}

impl Tracker {
    /// Leases whose job is not known yet: it is the one that had ended, or another.
    pub fn apart(&self) -> impl Iterator<Item = Lease> {
        self.jobs.values().flat_map(|tracked| tracked.apart.iter().copied())
    }

    /// Jobs with such leases.
    pub fn returned(&self) -> Vec<Job> {
        let returned = self.jobs.iter().filter(|(_, tracked)| !tracked.apart.is_empty());
        returned.map(|(job, _)| Job::clone(job)).collect()
    }

    /// What came after the end of `job` is the same job.
    pub fn join(&mut self, job: &Job) -> Vec<Action> {
        let Some(tracked) = self.jobs.get_mut(job) else { return Vec::new() };
        let Some(heir) = tracked.lease else { return Vec::new() };
        tracked.apart.drain(..).map(|lease| Action::End(lease, heir)).collect()
    }

    /// What is called `path` by its paths is the job `to` from here on: it has the id of one before it.
    pub fn begin_life(&mut self, path: &Job, to: Job) {
        self.names.insert(path.clone(), Arc::new(to));
    }

    /// The cgroups of `job` are those of `to`, which has its id: `job` ended at `ended_ns`, as was known. `to` has what was
    /// charged apart; without that it wants a slot.
    pub fn split(&mut self, job: &Job, to: &Job, ended_ns: u64, now_ns: u64) -> Vec<Action> {
        let Some(tracked) = self.jobs.get_mut(job) else { return Vec::new() };
        tracked.ended_ns = Some(ended_ns);
        let leases = std::mem::take(&mut tracked.apart);
        let lease = leases.first().copied();
        let fresh = Tracked {
            lease,
            apart: Vec::new(),
            cgroups: std::mem::take(&mut tracked.cgroups),
            root: tracked.root.clone(),
            since_ns: now_ns,
            ended_ns: None,
            known: false,
        };
        let to = Arc::new(to.clone());
        for known in self.cgroups.values_mut().chain(self.names.values_mut()) {
            if **known == *job {
                known.clone_from(&to);
            }
        }
        self.names.insert(job.clone(), to.clone());
        self.owners.extend(leases.iter().map(|lease| (*lease, to.clone())));
        self.jobs.insert(to, fresh);
        let keep = lease.map(|lease| Action::Keep(lease, true));
        let end = |other: &Lease| Some(Action::End(*other, lease?));
        keep.into_iter().chain(leases.iter().skip(1).filter_map(end)).collect()
    }
}
