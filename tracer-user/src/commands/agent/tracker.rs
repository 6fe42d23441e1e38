//! Which lease is whose: from cgroups made and removed to jobs. Pure: what is to be done with the probes
//! is told as [`Action`]s, time and identities arrive as arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    model::{job::Job, lease::Lease},
    probes::Cgroup,
};

mod resumed;
mod returned;
pub mod roots;

use roots::lies_in;

/// What the probes are to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Charge the cgroup to the lease.
    Place(Cgroup, Lease),
    /// End the lease; what its cgroups and tasks still do is charged to the heir (0: the node).
    End(Lease, Lease),
    /// New cgroups inside the lease's are its own; tell of the programs executed, or no longer.
    Keep(Lease, bool),
}

/// A job that has, or had, cgroups on this node.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// Who is charged; `None` while no slot was free for it.
    pub lease: Option<Lease>,
    /// Those of what came after its end: charged apart until it is known whether that is the same job.
    pub apart: Vec<Lease>,
    /// Its cgroups that exist.
    pub cgroups: BTreeSet<Cgroup>,
    /// The job's topmost directory below the root of its hierarchy.
    pub root: PathBuf,
    /// When it was seen first, CLOCK_MONOTONIC.
    pub since_ns: u64,
    /// When its last cgroup was removed.
    pub ended_ns: Option<u64>,
    /// Whether its programs are of interest no longer: who runs it is known.
    pub known: bool,
}

impl Tracked {
    /// Whether it is there and no slot was free for it.
    fn wants_slot(&self) -> bool {
        self.lease.is_none() && self.ended_ns.is_none()
    }
}

/// Whose cgroup it is: a job and the path of its topmost directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The job.
    pub job: Job,
    /// Its topmost directory, below the root of the hierarchy.
    pub root: PathBuf,
}

/// The jobs of the node. What a job is called is shared by all that name it: its cgroups, its leases, its names.
#[derive(Debug, Default)]
pub struct Tracker {
    jobs: BTreeMap<Arc<Job>, Tracked>,
    /// The job of each cgroup.
    cgroups: BTreeMap<Cgroup, Arc<Job>>,
    /// The job of each lease that may still have values; the rest of the node's are absent.
    owners: BTreeMap<Lease, Arc<Job>>,
    /// What a job is called that its paths name otherwise.
    names: BTreeMap<Job, Arc<Job>>,
}

impl Tracker {
    /// A cgroup is there. It is charged to `lease`, which is its alone where it is `fresh`; it belongs to
    /// `owner`, `None` for the rest of the node.
    pub fn made(
        &mut self,
        cgroup: Cgroup,
        lease: Option<Lease>,
        fresh: bool,
        owner: Option<Owner>,
        now_ns: u64,
    ) -> Vec<Action> {
        let Some(owner) = owner else {
            return lease
                .filter(|_| fresh)
                .map(|lease| Action::End(lease, 0))
                .into_iter()
                .collect();
        };
        let name = self.shared(self.named(&owner.job));
        self.cgroups.insert(cgroup, name.clone());
        let job = self.jobs.entry(name.clone()).or_insert_with(|| Tracked {
            lease: None,
            apart: Vec::new(),
            cgroups: BTreeSet::new(),
            root: owner.root,
            since_ns: now_ns,
            ended_ns: None,
            known: false,
        });
        let has_returned = job.ended_ns.take().is_some() && job.cgroups.is_empty();
        job.cgroups.insert(cgroup);
        let is_apart = !job.apart.is_empty() || has_returned && fresh;
        let actions = match (job.lease, lease) {
            (Some(_), lease) if is_apart => job.charge_apart(cgroup, lease, fresh),
            // Another of the job's cgroups came first.
            (Some(main), Some(lease)) if fresh && lease != main => vec![Action::End(lease, main)],
            (Some(main), lease) if lease != Some(main) => vec![Action::Place(cgroup, main)],
            // No slot was ready for those that came before, as those of another hierarchy.
            (None, Some(lease)) if fresh => {
                job.lease = Some(lease);
                let before = job.cgroups.iter().filter(|before| **before != cgroup);
                let place = before.map(|before| Action::Place(*before, lease));
                std::iter::once(Action::Keep(lease, !job.known)).chain(place).collect()
            }
            _ => Vec::new(),
        };
        let leases = actions.iter().filter_map(|action| match action {
            Action::End(lease, _) | Action::Keep(lease, _) => Some(*lease),
            Action::Place(..) => None,
        });
        self.owners.extend(leases.map(|lease| (lease, name.clone())));
        actions
    }

    /// What `job` is called, as all that name it have it.
    pub fn shared(&self, job: &Job) -> Arc<Job> {
        self.jobs.get_key_value(job).map_or_else(|| Arc::new(job.clone()), |(job, _)| job.clone())
    }

    /// What the paths of `job` name it.
    pub fn names(&self, job: &Job) -> Vec<Job> {
        let of_job = self.names.iter().filter(|(_, name)| ***name == *job);
        of_job.map(|(path, _)| path.clone()).collect()
    }

    /// A cgroup is gone; whether its job has ended with it.
    pub fn removed(&mut self, cgroup: Cgroup, now_ns: u64) -> bool {
        let job = self.cgroups.remove(&cgroup).and_then(|job| self.jobs.get_mut(&job));
        let Some(job) = job else { return false };
        job.cgroups.remove(&cgroup);
        let has_ended = job.cgroups.is_empty();
        if has_ended {
            job.ended_ns = Some(now_ns);
        }
        has_ended
    }

    /// Jobs that no slot was free for.
    pub fn wanting(&self) -> Vec<Job> {
        let wanting = self.jobs.iter().filter(|(_, tracked)| tracked.wants_slot());
        wanting.map(|(job, _)| Job::clone(job)).collect()
    }

    /// Whether `job` is there and no slot was free for it.
    pub fn wants(&self, job: &Job) -> bool {
        self.jobs.get(job).is_some_and(Tracked::wants_slot)
    }

    /// Gives a new lease to a job that had none.
    pub fn grant(&mut self, job: &Job, lease: Lease) -> Vec<Action> {
        let name = self.shared(job);
        let Some(tracked) = self.jobs.get_mut(job) else { return vec![Action::End(lease, 0)] };
        tracked.lease = Some(lease);
        self.owners.insert(lease, name);
        let place = |cgroup: &Cgroup| Action::Place(*cgroup, lease);
        let keep = Action::Keep(lease, !tracked.known);
        std::iter::once(keep).chain(tracked.cgroups.iter().map(place)).collect()
    }

    /// Who runs the job is known, and that it is the one it was: its programs need not be told of any more.
    pub fn know(&mut self, job: &Job) -> Vec<Action> {
        let Some(tracked) = self.jobs.get_mut(job) else { return Vec::new() };
        tracked.known = true;
        let keep = tracked.lease.map(|lease| Action::Keep(lease, false));
        keep.into_iter().chain(self.join(job)).collect()
    }

    /// Programs of the job are to be told of, or no longer, while it is not known who runs it.
    pub fn tell_execs(&self, job: &Job, execs: bool) -> Vec<Action> {
        let tracked = self.jobs.get(job).filter(|tracked| !tracked.known);
        let leases = tracked.map(|tracked| tracked.lease.iter().chain(&tracked.apart));
        leases.into_iter().flatten().map(|lease| Action::Keep(*lease, execs)).collect()
    }

    /// Jobs with cgroups of which it is not known who runs them.
    pub fn unknown(&self) -> impl Iterator<Item = &Job> {
        let is_unknown = |tracked: &Tracked| !tracked.known && tracked.ended_ns.is_none();
        let unknown = self.jobs.iter().filter(move |(_, tracked)| is_unknown(tracked));
        unknown.map(|(job, _)| &**job)
    }

    /// Gives a job another name: its user or its number has become known. `false` where it is unknown, or
    /// another has that name.
    pub fn rename(&mut self, from: &Job, to: &Job) -> bool {
        if self.jobs.contains_key(to) {
            return false;
        }
        let Some(tracked) = self.jobs.remove(from) else { return false };
        let known = self.cgroups.values_mut().chain(self.owners.values_mut());
        let to = Arc::new(to.clone());
        for job in known.chain(self.names.values_mut()).filter(|job| ***job == *from) {
            job.clone_from(&to);
        }
        // Paths that name it so may be of a later job with its id.
        self.names.entry(from.clone()).or_insert_with(|| to.clone());
        self.jobs.insert(to, tracked);
        true
    }

    /// Those of its programs that come may tell another story: they are to be told of again.
    pub fn forget_known(&mut self, job: &Job) -> Vec<Action> {
        self.jobs.get_mut(job).into_iter().for_each(|tracked| tracked.known = false);
        self.tell_execs(job, true)
    }

    /// Lets go of a job that has ended: late values go to the rest of the node from here on.
    pub fn release(&mut self, job: &Job) -> Option<Action> {
        let ended = self.jobs.get(job).is_some_and(|tracked| tracked.ended_ns.is_some());
        let tracked = if ended { self.jobs.remove(job)? } else { return None };
        self.names.retain(|_, name| **name != *job);
        tracked.lease.map(|lease| Action::End(lease, 0))
    }

    /// Jobs that have ended, the longest ago first.
    pub fn ended(&self) -> Vec<(u64, Job)> {
        let ended =
            |(job, tracked): (&Arc<Job>, &Tracked)| Some((tracked.ended_ns?, Job::clone(job)));
        let mut ended: Vec<_> = self.jobs.iter().filter_map(ended).collect();
        ended.sort();
        ended
    }

    /// Jobs that have ended and still hold a slot, the longest ago first.
    pub fn holding(&self) -> Vec<Job> {
        let holds = |job: &Job| self.jobs.get(job).is_some_and(|tracked| tracked.lease.is_some());
        self.ended().into_iter().map(|(_, job)| job).filter(holds).collect()
    }

    /// The series of the job that `job` is, or is a step of: one, where steps are no series. One that has ended may be
    /// another job of that id.
    pub fn series(&self, job: &Job) -> Vec<Job> {
        let first = Job { job: job.job.clone(), ..Job::default() };
        let same = self.jobs.range(first..).take_while(|(other, _)| other.job == job.job);
        let same = same.filter(|(other, _)| other.manager == job.manager);
        let is_there = |(other, tracked): &(&Arc<Job>, &Tracked)| {
            ***other == *job || tracked.ended_ns.is_none()
        };
        same.filter(is_there).map(|(job, _)| Job::clone(job)).collect()
    }

    /// What the job is called that its paths name so.
    pub fn named<'a>(&'a self, job: &'a Job) -> &'a Job {
        self.names.get(job).map_or(job, |name| name)
    }

    /// All jobs.
    pub fn jobs(&self) -> impl Iterator<Item = (&Job, &Tracked)> {
        self.jobs.iter().map(|(job, tracked)| (&**job, tracked))
    }

    /// A job, where it is known.
    pub fn job(&self, job: &Job) -> Option<&Tracked> {
        self.jobs.get(job)
    }

    /// The job that `lease` is charged for.
    pub fn owner(&self, lease: Lease) -> Option<&Job> {
        self.owners.get(&lease).map(|job| &**job)
    }

    /// The job of each lease.
    pub fn owners(&self) -> impl Iterator<Item = (Lease, &Job)> {
        self.owners.iter().map(|(lease, job)| (*lease, &**job))
    }

    /// Forgets leases whose last values have been reported: all but those `alive`.
    pub fn forget_owners(&mut self, alive: impl Fn(Lease) -> bool) {
        self.owners.retain(|lease, _| alive(*lease));
    }

    /// The job that `cgroup` is of.
    pub fn job_of(&self, cgroup: Cgroup) -> Option<&Job> {
        self.cgroups.get(&cgroup).map(|job| &**job)
    }

    /// The job in whose directory `path` lies, the last one of its id.
    pub fn owner_of(&self, path: &Path) -> Option<(&Job, &Tracked)> {
        let owners = self.jobs().filter(|(_, tracked)| lies_in(path, &tracked.root));
        // One inside another's directory has the longer path.
        owners.max_by_key(|(_, tracked)| {
            (tracked.root.as_os_str().len(), tracked.ended_ns.unwrap_or(u64::MAX))
        })
    }

    /// Whether `cgroup` is one of a job's.
    pub fn knows(&self, cgroup: Cgroup) -> bool {
        self.cgroups.contains_key(&cgroup)
    }

    /// All cgroups of jobs.
    pub fn cgroups(&self) -> Vec<Cgroup> {
        self.cgroups.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests;
