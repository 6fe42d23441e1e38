//! What a cgroup's path alone says: the rules of managers and site, and what of the configuration bears on
//! their answers. Pure; shared with the thread that samples the GPUs.

use std::path::{Path, PathBuf};

use super::tracker::Owner;
use crate::{
    model::job::Job,
    resolve::{Answer, Resolver, process},
};

/// The rules, and what becomes of their answers.
#[derive(Debug)]
pub struct Naming {
    /// Which job a path is of.
    pub resolver: Resolver,
    /// Whether each step is a series of its own.
    pub steps: bool,
    /// Managers whose jobs are the rest of the node's.
    pub ignored: Vec<String>,
}

impl Naming {
    /// What `answer` names the job, or its step where steps are series of their own.
    pub fn name(&self, answer: &Answer) -> Job {
        let step = answer.step.clone().filter(|_| self.steps).unwrap_or_default();
        let user = answer.user.clone().unwrap_or_default();
        Job { job: answer.job.clone(), manager: answer.manager.clone(), user, step, life: 0 }
    }

    /// The job that `path`, which says `answer`, belongs to; `None`: the rest of the node.
    pub fn owner(&self, path: &Path, answer: &Answer) -> Option<Owner> {
        self.is_told_apart(answer)
            .then(|| Owner { job: self.name(answer), root: self.root(path, answer) })
    }

    /// Whose a process is, by the text of its /proc/PID/cgroup; the rest of the node's where it is no job's.
    pub fn of_process(&self, cgroups: &str) -> Job {
        let answer = self.resolver.lines(cgroups);
        if self.is_told_apart(&answer) { self.name(&answer) } else { Job::system() }
    }

    /// Whether steps of `job`, which is none itself, are series of their own.
    pub fn has_steps(&self, job: &Job) -> bool {
        self.steps && job.step.is_empty() && process::has_steps(&job.manager)
    }

    fn is_told_apart(&self, answer: &Answer) -> bool {
        answer.is_job() && !self.ignored.contains(&answer.manager)
    }

    /// The topmost directory of the job that `answer` found in `path`, or of its step where steps are series
    /// of their own.
    fn root(&self, path: &Path, answer: &Answer) -> PathBuf {
        let job = path.components().take(1 + answer.root);
        let Some(step) = answer.step.as_ref().filter(|_| self.steps) else { return job.collect() };
        let step = format!("step_{step}");
        let below = path.components().skip(1 + answer.root);
        let count = below.take_while(|part| part.as_os_str() != step.as_str()).count();
        path.components().take(2 + answer.root + count).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn naming(steps: bool, ignored: &[&str]) -> Naming {
        let ignored = ignored.iter().map(|name| (*name).to_owned()).collect();
        Naming { resolver: Resolver::new(&[]).unwrap(), steps, ignored }
    }

    #[test]
    fn a_jobs_directory_and_a_steps_are_found_in_any_path() {
        let found = |path: &[u8], steps: bool| {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let naming = naming(steps, &[]);
            naming.owner(path, &naming.resolver.path(&path.to_string_lossy())).unwrap().root
        };
        let v2 = b"/a.slice/n_slurmstepd.scope/job_7/step_1/user/task_0";
        assert_eq!(found(v2, false), Path::new("/a.slice/n_slurmstepd.scope/job_7"));
        assert_eq!(found(v2, true), Path::new("/a.slice/n_slurmstepd.scope/job_7/step_1"));
        assert_eq!(found(b"/slurm/uid_0/job_7", true), Path::new("/slurm/uid_0/job_7"));
        let odd = found(b"/\xff\xfe/slurm/uid_0/job_7/step_batch", true);
        assert_eq!(odd.as_os_str().as_bytes(), b"/\xff\xfe/slurm/uid_0/job_7/step_batch");
    }

    #[test]
    fn what_is_no_job_or_ignored_is_the_rest_of_the_nodes() {
        let of = |naming: &Naming, path: &str| naming.of_process(&format!("0::{path}\n")).job;
        assert_eq!(of(&naming(false, &[]), "/slurm/uid_0/job_7"), "7");
        assert_eq!(of(&naming(false, &["slurm"]), "/slurm/uid_0/job_7"), Job::system().job);
        assert_eq!(of(&naming(false, &[]), "/init.scope"), Job::system().job);
    }
}
