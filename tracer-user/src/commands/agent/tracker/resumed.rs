//! What an agent before this one knew of jobs and their leases.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use super::{Tracked, Tracker};
use crate::model::{job::Job, lease::Lease};

impl Tracker {
    /// A job that an agent before this one knew: charged to `lease`, called `job` where its paths say one
    /// of `names`. Unless [`Self::made`] tells of a cgroup of it, it has ended at `ended_ns`.
    pub fn resume(
        &mut self,
        job: &Job,
        names: &[Job],
        lease: Option<Lease>,
        root: PathBuf,
        ended_ns: u64,
        now_ns: u64,
    ) {
        let (cgroups, ended_ns) = (BTreeSet::new(), Some(ended_ns));
        let (apart, known) = (Vec::new(), false);
        let tracked = Tracked { lease, apart, cgroups, root, since_ns: now_ns, ended_ns, known };
        let job = Arc::new(job.clone());
        self.names.extend(names.iter().map(|name| (name.clone(), job.clone())));
        self.jobs.insert(job, tracked);
    }

    /// `lease` was charged for `job`, the first of its leases for all that comes.
    pub fn resume_owner(&mut self, lease: Lease, job: &Job) {
        self.owners.insert(lease, self.shared(job));
        if let Some(tracked) = self.jobs.get_mut(job) {
            tracked.lease = tracked.lease.or(Some(lease));
        }
    }

    /// Whether a job goes on in `lease`.
    pub fn goes_on_in(&self, lease: Lease) -> bool {
        self.jobs.values().any(|job| job.lease == Some(lease) || job.apart.contains(&lease))
    }

    /// A cgroup is gone that an agent before this one knew, and that was charged to `lease`: unless its job
    /// has another, that was its end.
    pub fn removed_of(&mut self, lease: Lease, at_ns: u64) {
        let job = self.owners.get(&lease).and_then(|job| self.jobs.get_mut(&**job));
        if let Some(job) = job.filter(|job| job.cgroups.is_empty()) {
            job.ended_ns = Some(at_ns);
        }
    }
}
