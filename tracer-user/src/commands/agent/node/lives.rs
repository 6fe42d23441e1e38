//! Ids that are used again: a job that was requeued, or another one of the same name. What the one did, and what is known
//! of it, is never the other's. What came after a job's end counts apart, and is not told, until it is known whose it is.

use super::{jobs::Jobs, slots::Slots};
use crate::{
    base::clock::{boot_wall_ns, monotonic_ns, wall_at, wall_ns},
    commands::agent::{details::Details, log::Log},
    model::job::Job,
    resolve::{Answer, facts::JobFacts},
};

/// How long what came after a job's end waits for its tasks to tell whose it is: a scheduler may have much to do before
/// it starts the first.
const PATIENCE_NS: u64 = 30_000_000_000;

impl Jobs {
    /// Those that came back and whose tasks told nothing of another job are the ones they were; at the agent's end all.
    pub fn join_returned(&mut self, is_end: bool, slots: &mut Slots, log: &Log) {
        let now_ns = monotonic_ns();
        for job in self.tracker.returned() {
            let has_ended = self.tracker.job(&job).is_some_and(|job| job.ended_ns.is_some());
            let since_ns = self.details.get(&job).and_then(|details| details.returned_ns());
            let waits = since_ns.is_some_and(|since_ns| wall_at(now_ns) < since_ns + PATIENCE_NS);
            if is_end || has_ended || !waits {
                let actions = self.tracker.join(&job);
                self.apply(actions, slots, log);
            }
        }
    }

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
    pub fn split(
        &mut self,
        job: &Job,
        facts: &JobFacts,
        slots: &mut Slots,
        log: &Log,
    ) -> Option<Job> {
        // What its last tasks tell late is told of it.
        let tracked = self.tracker.job(job).filter(|tracked| tracked.ended_ns.is_none())?;
        let is_apart = !tracked.apart.is_empty();
        let before = self.details.get_mut(job)?;
        let begin_ns = before.returned_ns().filter(|_| is_apart).unwrap_or_else(wall_ns);
        let ended_ns = before.end_of_another(facts)?;
        let to = Job { life: self.next_life(job)?, ..job.clone() };
        let actions = self.tracker.split(job, &to, ended_ns, monotonic_ns());
        self.apply(actions, slots, log);
        let path = self.tracker.job(&to)?.root.to_string_lossy().into_owned();
        let answer = self.naming.resolver.path(&path);
        let mut details = Details::new(&answer, begin_ns, boot_wall_ns());
        let before = self.details.get_mut(job)?;
        details.made_by = before.made_by;
        before.hand_parts_to(&mut details);
        before.hand_apart_to(&mut details);
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
