//! The node's jobs: whose cgroups are there, and what is known of each. What becomes of their slots is told to
//! [`Slots`].

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;

use super::{let_go::LetGo, slots::Slots, software};
use crate::{
    base::{clock::monotonic_ns, identity::Capacity, in_step::InStep},
    cgroup::seldom::Moves,
    commands::agent::{
        details::{Details, moves},
        hierarchy::View,
        log::Log,
        naming::Naming,
        tracker::{Action, Tracker, roots::Roots},
        users::Users,
    },
    model::{
        job::{Job, JobStats, Losses},
        snapshot::Snapshot,
    },
};

/// A job that has ended keeps its slot this long, for block requests that complete late; less where slots
/// are short.
const LINGER_NS: u64 = 120_000_000_000;

/// Whether `job` has ended and was let go of: nothing but its values of before is left of it.
pub(super) fn is_let_go(tracker: &Tracker, job: &Job, details: &Details) -> bool {
    details.end().is_some() && tracker.job(job).is_none()
}

/// The jobs.
pub(super) struct Jobs {
    /// The cgroups as the file systems show them.
    pub view: View,
    /// What paths say.
    pub naming: Arc<Naming>,
    /// Which lease is whose.
    pub tracker: Tracker,
    /// What is known of each job, as the tracker calls it, besides the probes' counts. Boxed: three KiB each, and a node of
    /// the tree has room for eleven, of which six are used where jobs come in their order.
    pub details: BTreeMap<Arc<Job>, Box<Details>>,
    /// Jobs that were let go a moment ago, as where slots are short: one of their directories may still be there.
    pub(super) let_go: LetGo,
    /// The names of their owners.
    pub users: Users,
    /// Whether owners may have file operations counted.
    pub(super) owners_count_io: bool,
    /// Whether a job came, ended or told what it was given since the sampler of GPUs heard of it last.
    pub(super) gpus_may_differ: bool,
    /// CLOCK_MONOTONIC up to which an agent before this one reported, where this one goes on there.
    pub(super) reported_ns: u64,
    /// What the node has.
    capacity: Capacity,
    /// What its kernel cannot tell of any job.
    unknown: Vec<String>,
}

impl Jobs {
    /// None so far.
    ///
    /// # Errors
    /// When there can be no thread that asks for names.
    pub fn new(view: View, naming: Arc<Naming>, unknown: &[&str]) -> Result<Self> {
        let (tracker, details) = (Tracker::default(), BTreeMap::new());
        Ok(Self {
            view,
            naming,
            tracker,
            details,
            let_go: LetGo::default(),
            users: Users::start()?,
            owners_count_io: true,
            gpus_may_differ: false,
            reported_ns: 0,
            capacity: Capacity::read(),
            unknown: unknown.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Has done with the slots what the tracker asks for.
    pub fn apply(&self, actions: impl IntoIterator<Item = Action>, slots: &mut Slots, log: &Log) {
        slots.apply(actions, &self.tracker, &self.naming, log);
    }

    /// Jobs with cgroups now.
    pub fn live(&self) -> usize {
        self.tracker.jobs().filter(|(_, job)| job.ended_ns.is_none()).count()
    }

    /// Adds the jobs' files to `snapshot`, and reads those of their steps and tasks. `is_counted`: nothing that a task did
    /// is missing in it; `sees_ends`: nor that it ended.
    pub fn read_files(&mut self, snapshot: &mut Snapshot, is_counted: bool, sees_ends: bool) {
        let now_ns = snapshot.monotonic_ns;
        let roots = Roots::of(&self.tracker);
        let mut places = self.view.places_of_many();
        let mut details = InStep::new(self.details.iter_mut().map(|(job, of)| (&**job, of)));
        for (job, tracked) in self.tracker.jobs() {
            let Some(details) = details.of(job) else { continue };
            let mut probed = tracked.lease.and_then(|lease| snapshot.slots.get_mut(&lease));
            // What others do inside its directories is in its files, and is not counted as its.
            let is_counted = is_counted && tracked.apart.is_empty() && !roots.lie_in(&tracked.root);
            let moves = probed.as_ref().map_or_else(Moves::default, |groups| {
                moves(groups, is_counted, is_counted && sees_ends)
            });
            details.read_parts(|path| self.view.places(path), moves, now_ns);
            // Whose files they are now is not known where some is charged apart.
            if !tracked.apart.is_empty() {
                details.read_apart(|| places(&tracked.root), now_ns);
            } else if let Some(groups) = &mut probed {
                details.read(|| places(&tracked.root), groups, moves, now_ns);
            }
        }
    }

    /// Adds an interval that ended at `now_ns` (CLOCK_MONOTONIC) to the jobs' totals, once it is known which of them
    /// have ended, with what was lost on the node meanwhile. Adds to `jobs`, which are in their order, those without a slot.
    pub fn add(&mut self, jobs: &mut Vec<JobStats>, losses: &Losses, now_ns: u64) {
        for (_, job) in self.tracker.ended() {
            self.note_ended(&job);
        }
        debug_assert!(jobs.is_sorted_by(|one, next| one.job < next.job), "one would be missed");
        let returned = self.tracker.returned();
        let mut details = InStep::new(self.details.iter_mut().map(|(job, of)| (&**job, of)));
        for stats in &mut *jobs {
            if let Some(details) = details.of(&stats.job) {
                match returned.contains(&stats.job) {
                    true => details.add_late(&mut stats.groups, losses, now_ns),
                    false => details.add(&mut stats.groups, losses, now_ns),
                }
            }
        }
        for (job, tracked) in self.tracker.jobs().filter(|(_, tracked)| tracked.lease.is_none()) {
            let Some(details) = self.details.get_mut(job) else { continue };
            let groups = details.add_unserved(|| self.view.places(&tracked.root), now_ns);
            if !groups.is_empty() {
                jobs.push(JobStats { job: job.clone(), groups });
            }
        }
        let tracker = &self.tracker;
        let let_go =
            self.details.iter_mut().filter(|(job, details)| is_let_go(tracker, job, details));
        for (job, details) in let_go {
            let groups = details.add_last_peak(now_ns);
            let groups = (!groups.is_empty()).then_some(groups);
            jobs.extend(groups.map(|groups| JobStats { job: Job::clone(job), groups }));
        }
    }

    /// Gives `jobs` slots as far as there are any; gives how many have one.
    ///
    /// # Errors
    /// When a map cannot be written.
    pub fn grant(&mut self, jobs: &[Job], slots: &mut Slots, log: &Log) -> Result<usize> {
        let leases = slots.probes.slots.lease(jobs.len())?;
        for (job, &lease) in jobs.iter().zip(&leases) {
            let actions = self.tracker.grant(job, lease);
            self.apply(actions, slots, log);
            self.serve(job, slots, log);
        }
        Ok(leases.len())
    }

    /// `job` has a slot now, and had none: its values are counted from here on.
    pub(super) fn serve(&mut self, job: &Job, slots: &mut Slots, log: &Log) {
        if let Some(details) = self.details.get_mut(job) {
            details.set_served_from(monotonic_ns());
        }
        software::begin_older(job, self, slots);
        self.learn_from_tasks(job, slots, log);
    }

    /// Lets go of a job that has ended.
    pub fn release(&mut self, job: &Job, slots: &mut Slots, log: &Log) {
        self.note_ended(job);
        let tracked = self.tracker.job(job);
        if let Some((root, ended_ns)) = tracked.and_then(|of| Some((of.root.clone(), of.ended_ns?)))
        {
            self.let_go.add(job.clone(), root, ended_ns, monotonic_ns());
        }
        let mut actions = self.tracker.join(job);
        actions.extend(self.tracker.release(job));
        self.apply(actions, slots, log);
    }

    /// Lets go of jobs that ended a while ago, and at once of those without a slot: nothing comes late
    /// there. Where there are `records`, a job is known until its own are saved.
    pub fn release_old(&mut self, records: bool, slots: &mut Slots, log: &Log) {
        let now_ns = monotonic_ns();
        for (ended_ns, job) in self.tracker.ended() {
            let has_slot = self.tracker.job(&job).is_some_and(|tracked| tracked.lease.is_some());
            if !has_slot || now_ns.saturating_sub(ended_ns) > LINGER_NS {
                self.release(&job, slots, log);
            }
        }
        self.let_go.forget_old(now_ns);
        let tracker = &self.tracker;
        self.details.retain(|job, details| !details.is_done(records) || tracker.job(job).is_some());
    }

    /// Gives `job` another name and tells which it has then.
    pub fn rename(&mut self, job: &Job, to: Job, slots: &mut Slots) -> Job {
        if !self.tracker.rename(job, &to) {
            return job.clone();
        }
        slots.note_name(job, &to);
        self.move_details(job, to.clone());
        to
    }

    /// A job that was not known so far.
    pub fn insert(&mut self, job: Job, mut details: Details) {
        details.set_node(self.capacity, &self.unknown);
        details.is_step = !job.step.is_empty();
        self.details.insert(self.tracker.shared(&job), Box::new(details));
        self.gpus_may_differ = true;
    }

    /// What is known of `job` is of `to` now.
    pub fn move_details(&mut self, job: &Job, to: Job) {
        if let Some(details) = self.details.remove(job) {
            self.details.insert(self.tracker.shared(&to), details);
        }
    }

    /// Tells the details that the job has ended, where it has.
    pub fn note_ended(&mut self, job: &Job) {
        let ended_ns = self.tracker.job(job).and_then(|tracked| tracked.ended_ns);
        if let (Some(ended_ns), Some(details)) = (ended_ns, self.details.get_mut(job)) {
            details.set_ended(ended_ns);
        }
    }
}
