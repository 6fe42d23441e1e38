//! Which jobs are due to be told of: their lines of `job_info`, and their records.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use super::{
    jobs::{Jobs, is_let_go},
    slots::Slots,
    software::Watch,
};
use crate::{
    commands::agent::{
        details::Reach,
        query::{Caller, RunningHeads},
        records::{Due, MOST_WAITING, Unsaved},
    },
    model::{
        job::Job,
        point::{Origin, Point},
    },
    record::{Record, head::Head},
};

/// Steps of a job that are told of at once.
const MOST_STEPS: usize = 64;
/// Ticks over which the records of all jobs that run are spread at least, if there are many.
const TICKS: usize = 16;
/// Records of jobs that run which one tick always allows.
const FEW: usize = 64;

/// By how much earlier than a whole period the first record of `job` comes while it runs: each job and each node has
/// a time of its own, so that jobs that began together, here or on many nodes, do not write together.
pub fn phase_ns(origin: &Origin, job: &Job, every_ns: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&origin.host, job).hash(&mut hasher);
    hasher.finish() % every_ns.max(1)
}

/// Records of running jobs in one tick at most, of `jobs`: the others come with the next ticks.
pub fn most_at_once(jobs: usize) -> usize {
    FEW.max(jobs.div_ceil(TICKS))
}

/// Those that ended first come first, at most [`MOST_WAITING`] of them; then `most_running` of those that run, whose
/// last record is the oldest. Gives also those that ended and are too many, the oldest.
pub fn in_turn(mut due: Vec<Due>, most_running: usize) -> (VecDeque<Due>, Vec<Due>) {
    due.sort_by_key(|due| (due.reach == Reach::Running, due.since_ns));
    let mut ended = due.partition_point(|due| due.reach != Reach::Running);
    let dropped: Vec<_> = due.drain(..ended.saturating_sub(MOST_WAITING)).collect();
    ended -= dropped.len();
    due.truncate(ended.saturating_add(most_running));
    (due.into(), dropped)
}

impl Jobs {
    /// The `job_info` that are due, with the `job_software` beside them where there is a `watch`. Of a job that was let go
    /// before its last values were read, not before they are: they belong to the totals at its end. After an `is_last`
    /// interval nothing comes for any job.
    pub fn due_infos(
        &mut self,
        slots: &Slots,
        origin: &Origin,
        stamp_ns: u64,
        is_last: bool,
        watch: Option<&Watch>,
    ) -> Vec<Point> {
        let (unread, tracker) = (self.unread(slots, is_last), &self.tracker);
        let (mut infos, mut told) = (Vec::new(), BTreeSet::new());
        for (job, details) in self.details.iter_mut().filter(|(job, _)| !unread.contains(*job)) {
            let has_settled = is_last || is_let_go(tracker, job, details) && !self.let_go.has(job);
            // Two of the same id and stamp would be one line: the later job's comes with the next.
            if told.is_empty() || !told.contains(&job.told()) {
                let info = details.due_info(origin, job, stamp_ns, has_settled);
                told.extend(info.is_some().then(|| job.told()));
                let software = watch.zip(info.as_ref()).and_then(|(watch, info)| {
                    details.due_software(origin, job, watch.user(), info)
                });
                infos.extend(info.into_iter().chain(software));
            }
        }
        infos
    }

    /// Whose records are due, every `every_ns` while a job runs, in the order of [`in_turn`]; at the agent's end those of
    /// all. Gives also how many jobs will have none: more had ended than may wait.
    pub fn due_records(
        &mut self,
        slots: &Slots,
        origin: &Origin,
        every_ns: u64,
        is_end: bool,
    ) -> (VecDeque<Due>, u64) {
        // The agent after this one, if it goes on with the slots, reads the rest.
        let unread = self.unread(slots, is_end && slots.keeper.is_none());
        let mut due = Vec::new();
        for (job, details) in self.details.iter_mut().filter(|(job, _)| !unread.contains(*job)) {
            let reach = match is_end {
                true => details.last_record(),
                false => details.due_record(every_ns, || phase_ns(origin, job, every_ns)),
            };
            let since_ns = details.waits_since_ns();
            due.extend(reach.map(|reach| Due { job: Job::clone(job), since_ns, reach }));
        }
        let most_running = if is_end { usize::MAX } else { most_at_once(self.details.len()) };
        let (due, dropped) = in_turn(due, most_running);
        for dropped in &dropped {
            self.details.get_mut(&dropped.job).into_iter().for_each(|details| details.give_up());
        }
        (due, dropped.len() as u64)
    }

    /// The record of `due`; `None` where the job has changed since.
    pub fn hand_over(&mut self, origin: &Origin, due: &Due) -> Option<Unsaved> {
        self.details.get_mut(&due.job)?.hand_over(origin, &due.job, due.reach)
    }

    /// The heads of the jobs that run, with their owners.
    pub fn running_heads(&self, origin: &Origin) -> RunningHeads {
        let running = self.details.iter().filter(|(_, details)| details.end().is_none());
        running
            .map(|(job, details)| (details.uid, Head::from(&details.record(origin, job))))
            .collect()
    }

    /// The records of the running job `id`, or of its steps, that `caller` may know of.
    pub fn running_records(&self, origin: &Origin, id: &str, caller: Caller) -> Vec<Record> {
        let running = self.details.iter().filter(|(job, details)| {
            job.job == id && details.end().is_none() && caller.may_see(details.uid)
        });
        running.take(MOST_STEPS).map(|(job, details)| details.record(origin, job)).collect()
    }

    /// Jobs that were let go, and whose last values were not read yet, or what they ran is not named. After an `is_last`
    /// interval none: nothing more will be read.
    fn unread(&self, slots: &Slots, is_last: bool) -> BTreeSet<Job> {
        let let_go = self.details.iter().filter(|(job, of)| is_let_go(&self.tracker, job, of));
        let let_go: BTreeSet<&Job> = let_go.map(|(job, _)| &**job).collect();
        let owners = (!is_last && !let_go.is_empty()).then(|| self.tracker.owners());
        let owners = owners.into_iter().flatten();
        let unread = owners.filter(|(lease, job)| let_go.contains(job) && slots.is_open(*lease));
        unread.map(|(_, job)| job.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::agent::details::Details, model::job::Losses, resolve::Resolver};

    const SECOND: u64 = 1_000_000_000;
    const BEGIN: u64 = 1_795_305_600 * SECOND;
    const EVERY: u64 = 900 * SECOND;
    const TICK: u64 = 10 * SECOND;
    const JOBS: usize = 1000;

    /// Jobs that began at the same nanosecond, and who had a record when.
    struct Crowd {
        origin: Origin,
        jobs: Vec<(Job, Details)>,
        saved_ns: Vec<Vec<u64>>,
    }

    impl Crowd {
        fn new() -> Self {
            let resolver = Resolver::new(&[]).expect("no rules of a site");
            let job = |number: usize| {
                let answer = resolver.path(&format!("/slurm/uid_1000/job_{number}"));
                let job = Job { job: number.to_string(), ..Job::default() };
                (job, Details::new(&answer, BEGIN, 0))
            };
            let origin = Origin { host: "n1".into(), ..Origin::default() };
            let jobs = (0..JOBS).map(job).collect();
            Self { origin, jobs, saved_ns: vec![Vec::new(); JOBS] }
        }

        /// An interval ends; gives how many records are due. They are saved if the disk takes them.
        fn tick(&mut self, now_ns: u64, is_well: bool) -> usize {
            let mut due = Vec::new();
            for (job, details) in &mut self.jobs {
                details.add(&mut Vec::new(), &Losses::default(), now_ns);
                let reach = details.due_record(EVERY, || phase_ns(&self.origin, job, EVERY));
                let since_ns = details.waits_since_ns();
                due.extend(reach.map(|reach| Due { job: job.clone(), since_ns, reach }));
            }
            let (due, dropped) = in_turn(due, most_at_once(JOBS));
            assert!(dropped.is_empty());
            for due in &due {
                let number: usize = due.job.job.parse().expect("a number");
                let (job, details) = &mut self.jobs[number];
                let unsaved = details.hand_over(&self.origin, job, due.reach).expect("it runs");
                if is_well {
                    unsaved.saved();
                    self.saved_ns[number].push(now_ns);
                }
            }
            due.len()
        }
    }

    #[test]
    fn records_of_jobs_that_began_together_are_spread_over_the_period() {
        let mut crowd = Crowd::new();
        let per_tick: Vec<_> = (1..=270).map(|n| crowd.tick(BEGIN + n * TICK, true)).collect();
        let most = per_tick.iter().max().copied();
        assert!(most < Some(35), "{most:?} of 11 on the mean: {per_tick:?}");
        for saved_ns in &crowd.saved_ns {
            assert!(saved_ns[0] <= BEGIN + EVERY + TICK, "the first one: {saved_ns:?}");
            assert!(saved_ns.windows(2).all(|two| two[1] - two[0] == EVERY), "{saved_ns:?}");
        }
        // The same job on another node has another time.
        let of = |host: &str| {
            let origin = Origin { host: host.into(), ..Origin::default() };
            phase_ns(&origin, &crowd.jobs[0].0, EVERY)
        };
        assert_ne!(of("n1"), of("n2"));
    }

    #[test]
    fn what_a_disk_refused_for_long_comes_in_turn() {
        let mut crowd = Crowd::new();
        // Each attempt fails for all that are tried: more and more are due.
        let per_tick: Vec<_> = (1..=180).map(|n| crowd.tick(BEGIN + n * TICK, false)).collect();
        assert_eq!(per_tick.iter().max(), Some(&64));
        let per_tick: Vec<_> = (181..=200).map(|n| crowd.tick(BEGIN + n * TICK, true)).collect();
        assert!(per_tick.iter().all(|due| *due <= 64), "{per_tick:?}");
        let waiting = crowd.saved_ns.iter().filter(|saved_ns| saved_ns.is_empty()).count();
        assert_eq!(waiting, 0, "within {per_tick:?}");
    }

    #[test]
    fn ended_jobs_come_first_and_the_oldest_of_too_many_are_given_up() {
        let due = |number: usize, reach| {
            let job = Job { job: number.to_string(), ..Job::default() };
            Due { job, since_ns: number as u64, reach }
        };
        let running = [9, 8, 7].map(|number| due(number, Reach::Running));
        let ended = (10..MOST_WAITING + 13).rev().map(|number| due(number, Reach::End));
        let (turn, dropped) = in_turn(running.into_iter().chain(ended).collect(), 2);
        let numbers = |due: &[Due]| due.iter().map(|due| due.since_ns).collect::<Vec<_>>();
        assert_eq!(numbers(&dropped), [10, 11, 12]);
        let turn = numbers(&Vec::from(turn));
        assert_eq!((turn.len(), turn[0]), (MOST_WAITING + 2, 13));
        assert_eq!(turn[MOST_WAITING..], [7, 8], "the oldest record first");
    }
}
