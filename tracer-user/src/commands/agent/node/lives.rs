//! Ids that are used again: a job that was requeued, or another one of the same name. What the one did, and what is known
//! of it, is never the other's.

use super::{jobs::Jobs, slots::Slots};
use crate::{
    base::clock::{boot_wall_ns, monotonic_ns, wall_ns},
    commands::agent::{details::Details, log::Log},
    model::job::Job,
    resolve::{Answer, facts::JobFacts},
};

impl Jobs {
    /// A cgroup of the job that its path calls `path` came, as `answer` says, in a directory of `maker`'s: where the job
    /// of that id is another's, or was let go, it begins as a job of its own.
    pub fn tell_apart(
        &mut self,
        path: &Job,
        answer: &Answer,
        maker: u32,
        slots: &mut Slots,
        log: &Log,
    ) {
        let named = self.tracker.named(path).clone();
        if let Some(tracked) = self.tracker.job(&named) {
            let known = self.details.get(&named).filter(|_| tracked.ended_ns.is_some());
            if !known.is_some_and(|details| details.is_another(answer, maker)) {
                return;
            }
            self.release(&named, slots, log);
        }
        if let Some(life) = self.next_life(path) {
            self.tracker.begin_life(path, Job { life, ..path.clone() });
        }
    }

    /// What the tasks of `job` tell shows that it is not the one that ended: its cgroups are another job's, whose name is
    /// given. It wants a slot of its own.
    pub fn split(&mut self, job: &Job, facts: &JobFacts) -> Option<Job> {
        // What its last tasks tell late is told of it.
        self.tracker.job(job).filter(|tracked| tracked.ended_ns.is_none())?;
        let ended_ns = self.details.get_mut(job)?.end_of_another(facts)?;
        let to = Job { life: self.next_life(job)?, ..job.clone() };
        self.tracker.split(job, &to, ended_ns, monotonic_ns());
        let path = self.tracker.job(&to)?.root.to_string_lossy().into_owned();
        let answer = self.naming.resolver.path(&path);
        let mut details = Details::new(&answer, wall_ns(), boot_wall_ns());
        details.made_by = self.details.get(job).and_then(|details| details.made_by);
        self.insert(to.clone(), details);
        Some(to)
    }

    /// The number of the next job of this id; `None` where there was none before.
    fn next_life(&self, job: &Job) -> Option<u32> {
        let first = Job { job: job.job.clone(), ..Job::default() };
        let same = self.details.range(first..).take_while(|(other, _)| other.job == job.job);
        let lives = same.filter(|(other, _)| other.same_id(job)).map(|(other, _)| other.life);
        Some(lives.max()? + 1)
    }
}
