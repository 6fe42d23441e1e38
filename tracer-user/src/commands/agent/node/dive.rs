//! What of a running job is to be known before its file operations are counted, and what it used meanwhile.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use super::{Node, jobs::Jobs};
use crate::{
    base::clock::{monotonic_ns, wall_ns},
    commands::agent::{
        query::{Caller, Subject, Used},
        tracker::Tracked,
    },
    model::{gaps::Gaps, job::Job, lease::Lease, point::Origin},
    probes::Cgroup,
};

impl Jobs {
    /// What is to be counted of the running job `id` for `caller`.
    ///
    /// # Errors
    /// When it does not run, or the caller may not know or have that, which is told alike; when it is more than one
    /// job, or lies in more than one place.
    pub fn subject(&self, origin: &Origin, id: &str, caller: Caller) -> Result<Subject> {
        let running = |(job, tracked): &(&Job, &Tracked)| {
            job.job == id && tracked.ended_ns.is_none() && caller.may_see(self.owner(job))
        };
        let all: Vec<_> = self.tracker.jobs().filter(running).collect();
        let of_yours = if caller.sees_all { "" } else { " of yours" };
        ensure!(
            !all.is_empty(),
            "no job {id}{of_yours} runs on this node: `jobtrace top --once` lists those that do"
        );
        ensure!(
            all.iter().all(|(job, _)| caller.may_dive(self.owner(job))),
            "only root and the owner of job {id} may have its file operations counted"
        );
        ensure!(
            caller.uid == 0 || self.owners_count_io,
            "only root may have file operations counted on this node (`jobs.io_by_owner = false`)"
        );
        let is_one = all.iter().all(|(job, _)| job.manager == all[0].0.manager);
        ensure!(is_one, "{id} is the id of jobs of several schedulers on this node");
        let root = top_of(all.iter().map(|(_, tracked)| &*tracked.root));
        let root = root.with_context(|| {
            format!("the cgroups of job {id} are in several places, of which one can be counted")
        })?;
        let (job, _) = all
            .iter()
            .min_by_key(|(_, tracked)| tracked.root.as_os_str().len())
            .context("there is one")?;
        let details =
            self.details.get(*job).context("nothing is known of the job yet: try again")?;
        // Another job may have a directory of that name by now.
        let own = |id: &u64| {
            let cgroup = Cgroup { table: 0, id: *id };
            all.iter().any(|(_, tracked)| tracked.cgroups.contains(&cgroup))
        };
        let cgroup =
            self.view.id(&root).filter(own).with_context(|| format!("job {id} has just ended"))?;
        let (record, owner) = (details.record(origin, job), details.uid);
        Ok(Subject { record, root, cgroup, view: self.view.clone(), owner })
    }

    fn owner(&self, job: &Job) -> Option<u32> {
        self.details.get(job).and_then(|details| details.uid)
    }
}

impl Node {
    /// What the job whose topmost directory is `root` has used, its steps included.
    pub fn used(&mut self, root: &Path) -> Used {
        let Jobs { tracker, details, .. } = &self.jobs;
        let (mut since_ns, mut gaps) = (BTreeMap::new(), Gaps::default());
        let (mut ended, mut all_ended) = (None, true);
        for (job, tracked) in tracker.jobs().filter(|(_, job)| job.root.starts_with(root)) {
            since_ns.extend(tracked.lease.map(|lease| (lease, tracked.since_ns)));
            details.get(job).into_iter().for_each(|details| gaps.merge(details.gaps()));
            all_ended &= tracked.ended_ns.is_some();
            ended = ended.max(tracked.ended_ns);
        }
        let leases: Vec<Lease> = since_ns.keys().copied().collect();
        let slots = self.slots.probes.look(&leases).ok().flatten();
        let (wall_ns, monotonic_ns) = (wall_ns(), monotonic_ns());
        let ended_ns = ended.filter(|_| all_ended);
        Used { wall_ns, monotonic_ns, slots, since_ns, gaps, ended_ns }
    }
}

/// The one of `roots` that all others are below, if there is one.
fn top_of<'a>(roots: impl Iterator<Item = &'a Path> + Clone) -> Option<PathBuf> {
    let top = roots.clone().min_by_key(|root| root.components().count())?;
    roots.clone().all(|root| root.starts_with(top)).then(|| top.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lie_below_their_job() {
        let top = |roots: &[&str]| top_of(roots.iter().map(Path::new));
        let job = Some(PathBuf::from("/slurm/job_7"));
        assert_eq!(top(&["/slurm/job_7/step_0", "/slurm/job_7", "/slurm/job_7/step_1"]), job);
        assert_eq!(top(&["/slurm/job_7"]), job);
        assert_eq!(top(&["/slurm/job_7/step_0", "/slurm/job_7/step_1"]), None);
        assert_eq!(top(&["/slurm/job_7", "/slurm/job_70"]), None);
        assert_eq!(top(&[]), None);
    }
}
