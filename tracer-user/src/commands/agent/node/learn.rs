//! What the tasks of a job tell of it: its number, its owner, its name and what it holds.

use std::time::Duration;

use super::{jobs::Jobs, slots::Slots};
use crate::{
    base::{clock::monotonic_ns, identity::host, in_step::InStep},
    commands::agent::{asking, log::Log},
    model::job::Job,
    resolve::{Role, consent, facts::JobFacts, process},
};

/// Tasks of a job that are asked what it is, at most.
const MOST_TASKS: usize = 64;

/// How long a tick waits for users' names: with most directories they are there, so that all points of
/// a job have the same tags.
const NAMES_PATIENCE: Duration = Duration::from_millis(200);

impl Jobs {
    /// A program was executed. To ask it costs about 0.1 ms, so where a few told nothing the kernel is to
    /// be silent for a while.
    pub fn executed(&mut self, lease: u32, (pid, uid): (u32, u32), slots: &mut Slots, log: &Log) {
        let Some(job) = self.tracker.owner(lease).cloned() else { return };
        let is_known = self.tracker.job(&job).is_none_or(|tracked| tracked.known);
        let Some(details) = self.details.get_mut(&job).filter(|_| !is_known) else { return };
        let is_asked = details.asking.ask(monotonic_ns());
        if !is_asked || !self.learn(&job, (pid, uid), slots, log) {
            self.tell_execs(&job, slots, log);
        }
    }

    /// Begins anew to ask the jobs that were left alone long enough. What they executed meanwhile may run
    /// for long, so some of their tasks are asked first.
    pub fn ask_again(&mut self, slots: &mut Slots, log: &Log) {
        let now_ns = monotonic_ns();
        let mut details = InStep::new(self.details.iter_mut().map(|(job, of)| (&**job, of)));
        let mut resumes = |job: &Job| details.of(job).is_some_and(|of| of.asking.resume(now_ns));
        let due: Vec<Job> = self.tracker.unknown().filter(|job| resumes(job)).cloned().collect();
        for job in due {
            let Some(tracked) = self.tracker.job(&job) else { continue };
            // The highest numbers are the latest.
            let pids = self.view.pids(&tracked.root).into_iter().rev().take(asking::AGAIN);
            let mut pids = pids.collect::<Vec<_>>().into_iter();
            if !pids.any(|pid| self.ask(&job, pid, slots, log)) {
                self.tell_execs(&job, slots, log);
            }
        }
    }

    /// Has the kernel tell of the job's programs, unless they are left alone for a while.
    fn tell_execs(&mut self, job: &Job, slots: &mut Slots, log: &Log) {
        let Some(details) = self.details.get(job) else { return };
        // A job that was renamed meanwhile is known by its new name.
        let actions = self.tracker.tell_execs(job, !details.asking.is_paused());
        self.apply(actions, slots, log);
    }

    /// Asks nobody where the path has told all there is.
    pub fn know_by_path(&mut self, job: &Job, slots: &mut Slots, log: &Log) {
        if self.is_enough(job, slots) {
            let actions = self.tracker.know(job);
            self.apply(actions, slots, log);
        }
    }

    /// Whether what is known of `job` is all that its tasks could tell, where its path told all but that.
    fn is_enough(&self, job: &Job, slots: &Slots) -> bool {
        let uid = self.details.get(job).and_then(|details| details.uid);
        self.has_consent(job, slots) && !process::tells_more(&job.manager, uid.is_some())
    }

    /// Whether it is known if the software of `job` may be told, where that is watched.
    fn has_consent(&self, job: &Job, slots: &Slots) -> bool {
        let details = self.details.get(job);
        slots.probes.census.is_none() || details.is_some_and(|of| !of.consent.is_unknown())
    }

    /// Looks at the tasks of all jobs: programs that they executed may not have been told of.
    pub fn learn_from_all(&mut self, slots: &mut Slots, log: &Log) {
        let jobs: Vec<Job> = self.tracker.jobs().map(|(job, _)| job.clone()).collect();
        jobs.iter().for_each(|job| self.learn_from_tasks(job, slots, log));
    }

    /// Looks at the tasks of a job that was not traced when they executed their programs.
    pub fn learn_from_tasks(&mut self, job: &Job, slots: &mut Slots, log: &Log) {
        let Some(tracked) = self.tracker.job(job).filter(|tracked| !tracked.known) else { return };
        for pid in self.view.pids(&tracked.root).into_iter().take(MOST_TASKS) {
            if self.ask(job, pid, slots, log) {
                return;
            }
        }
    }

    /// As [`Self::learn`], from process `pid` whoever runs it.
    fn ask(&mut self, job: &Job, pid: u32, slots: &mut Slots, log: &Log) -> bool {
        process::read_uid(pid).is_some_and(|uid| self.learn(job, (pid, uid), slots, log))
    }

    /// Learns what process `pid` of user `uid` tells of `job`, which its cgroup was charged to. Gives
    /// whether no other process need be asked.
    fn learn(&mut self, job: &Job, (pid, uid): (u32, u32), slots: &mut Slots, log: &Log) -> bool {
        // Root's programs in a scheduler's job are the scheduler's own, before it becomes the user.
        let uid = Some(uid).filter(|uid| *uid != 0 && process::is_owners(&job.manager));
        let answer = process::read_cgroup(pid).map(|text| self.naming.resolver.lines(&text)).ok();
        // It may have moved on since, into another job.
        let answer = answer.filter(|answer| {
            let path = self.naming.name(answer);
            let named = self.tracker.named(&path);
            (&named.job, &named.manager) == (&job.job, &job.manager)
        });
        // Before its environment is read: it may execute meanwhile.
        let has_executed = process::has_executed(pid);
        let environ = answer.as_ref().map(|_| process::read_environ(pid)).unwrap_or_default();
        let facts = answer.as_ref().map(|answer| JobFacts::parse(answer, &environ, &host()));
        let facts = facts.unwrap_or_default();
        // The one that Slurm itself starts in each job knows a part of it only.
        let is_users = answer.as_ref().is_some_and(|of| of.step.as_deref() != Some("extern"));
        let is_complete = is_users && (facts.job.is_some() || uid.is_some());
        // A scheduler's own programs have another environment than its job's.
        let is_tasks = answer.as_ref().is_some_and(|answer| answer.role == Role::Job);
        let is_given = is_tasks && (facts.job.is_some() || !process::has_variables(&job.manager));
        let owner = self.details.get(job).and_then(|of| of.uid);
        let is_owners = uid.is_some() || owner == Some(0) || !process::is_owners(&job.manager);
        let consent = consent::Asked {
            environ: &environ,
            is_jobs: is_users && is_given,
            is_owners,
            is_anothers: !is_owners && owner.is_some(),
            has_executed,
            // After its environment was read: it may have ended in between.
            has_gone: environ.is_empty() && !process::has_executed(pid),
        };
        let consent = consent.tells();
        let has_sluid =
            answer.as_ref().is_some_and(|answer| answer.sluid.as_ref() == Some(&job.job));
        // Its cgroup may have been charged to the lease of a job that had its id before.
        let named = answer.as_ref().map(|answer| self.naming.name(answer));
        let named = named.map(|path| self.tracker.named(&path).clone());
        let has_ended = self.tracker.job(job).is_none_or(|tracked| tracked.ended_ns.is_some());
        let current = named.filter(|named| has_ended && named.same_id(job));
        let job = current.as_ref().unwrap_or(job);
        let other = self.split(job, &facts, slots, log);
        let job = other.as_ref().unwrap_or(job);
        let mut is_known = false;
        for job in self.tracker.series(job) {
            if let Some(details) = self.details.get_mut(&job) {
                details.uid = details.uid.or(uid);
                let was_told = details.claims().is_some();
                details.learn(&facts);
                details.consent = details.consent.heard(consent);
                self.gpus_may_differ |= details.claims().is_some() && !was_told;
                details.uid.iter().for_each(|uid| self.users.ask(*uid));
            }
            let job = match facts.job.clone().filter(|_| has_sluid) {
                Some(number) => self.rename(&job, Job { job: number, ..job.clone() }, slots),
                None => job,
            };
            is_known = is_complete && self.has_consent(&job, slots) || self.is_enough(&job, slots);
            if is_known {
                let actions = self.tracker.know(&job);
                self.apply(actions, slots, log);
            }
        }
        is_known
    }

    /// Looks for the owners of jobs whose user is unknown.
    pub fn find_users(&mut self, slots: &mut Slots) {
        let now_ns = monotonic_ns();
        let nameless = self.tracker.jobs().filter(|(job, _)| job.user.is_empty());
        let nameless: Vec<_> = nameless
            .map(|(job, tracked)| (job.clone(), tracked.root.clone(), tracked.ended_ns))
            .collect();
        for (job, root, ended_ns) in &nameless {
            let Some(details) = self.details.get_mut(job) else { continue };
            let may_tell = ended_ns.is_none() && process::is_owners(&job.manager);
            if details.uid.is_none() && may_tell && details.owner_search.begins(now_ns) {
                let pids = self.view.some_pids(root, MOST_TASKS).into_iter();
                let mut uids = pids.filter_map(process::read_uid);
                details.uid = uids.find(|uid| *uid != 0);
                if let Some(uid) = details.uid {
                    self.users.ask(uid);
                }
            }
        }
        self.users.wait(NAMES_PATIENCE);
        for (job, ..) in nameless {
            let Some(uid) = self.details.get(&job).and_then(|details| details.uid) else {
                continue;
            };
            if let Some(user) = self.users.name(uid) {
                self.rename(&job, Job { user, ..job.clone() }, slots);
            }
        }
    }
}
