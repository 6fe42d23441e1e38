//! Jobs that were let go a moment ago: their slots are others', and one of their directories may still be there.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::{commands::agent::tracker::roots::lies_in, model::job::Job};

/// How much later than the others a job's directory may be removed where memory is counted.
const LAST_DIRECTORY_NS: u64 = 5_000_000_000;

/// The jobs, each with its topmost directory and when it ended (CLOCK_MONOTONIC).
#[derive(Debug, Default)]
pub struct LetGo(BTreeMap<Job, (PathBuf, u64)>);

impl LetGo {
    /// `job`, whose topmost directory is `root`, ended at `ended_ns`; it is `now_ns`.
    pub fn add(&mut self, job: Job, root: PathBuf, ended_ns: u64, now_ns: u64) {
        // Between two ticks there may be thousands.
        self.forget_old(now_ns);
        self.0.insert(job, (root, ended_ns));
    }

    /// Forgets those of which nothing is to come any more at `now_ns`.
    pub fn forget_old(&mut self, now_ns: u64) {
        self.0.retain(|_, (_, ended_ns)| now_ns.saturating_sub(*ended_ns) < LAST_DIRECTORY_NS);
    }

    /// Whether `job` is one of them.
    pub fn has(&self, job: &Job) -> bool {
        self.0.contains_key(job)
    }

    /// The topmost directory of `job`, and when it ended.
    pub fn of(&self, job: &Job) -> Option<(&Path, u64)> {
        self.0.get(job).map(|(root, ended_ns)| (&**root, *ended_ns))
    }

    /// The job in whose directory `path` lies, with that directory and its end; the last one of its id.
    pub fn owner_of(&self, path: &Path) -> Option<(&Job, &Path, u64)> {
        let owners = self.0.iter().filter(|(_, (root, _))| lies_in(path, root));
        // One inside another's directory has the longer path.
        let owner = owners.max_by_key(|(_, (root, ended_ns))| (root.as_os_str().len(), *ended_ns));
        owner.map(|(job, (root, ended_ns))| (job, &**root, *ended_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_last_jobs_that_was_let_go_for_a_while() {
        let mut let_go = LetGo::default();
        let named = |job: &str, life| Job { job: job.into(), life, ..Job::default() };
        for (job, root, ended_s) in [
            (named("1", 0), "/slurm/job_1", 1),
            (named("1", 1), "/slurm/job_1", 2),
            (named("2", 0), "/slurm/job_1/step_0/job_2", 3),
        ] {
            let_go.add(job, root.into(), ended_s * 1_000_000_000, 4_000_000_000);
        }
        let of = |let_go: &LetGo, path: &str| {
            let_go.owner_of(Path::new(path)).map(|(job, ..)| job.clone())
        };
        assert_eq!(of(&let_go, "/slurm/job_1"), Some(named("1", 1)));
        assert_eq!(of(&let_go, "/slurm/job_1/step_0/job_2/a"), Some(named("2", 0)));
        assert_eq!(of(&let_go, "/slurm/job_12"), None);
        assert!(let_go.has(&named("1", 0)));
        let_go.forget_old(6_500_000_000);
        assert!(!let_go.has(&named("1", 0)) && let_go.has(&named("1", 1)));
        let_go.forget_old(8_000_000_000);
        assert_eq!(of(&let_go, "/slurm/job_1"), None);
        let_go.add(named("3", 0), "/slurm/job_3".into(), 1, 1);
        let_go.add(named("4", 0), "/slurm/job_4".into(), 9_000_000_000, 9_000_000_000);
        assert!(!let_go.has(&named("3", 0)), "also between two ticks");
    }
}
