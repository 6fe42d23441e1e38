//! Which jobs are due to be told of: their lines of `job_info`, and their records.

use std::collections::{BTreeSet, VecDeque};

use super::{jobs::Jobs, slots::Slots};
use crate::{
    commands::agent::{
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

impl Jobs {
    /// The `job_info` that are due. Of a job that was let go before its last values were read, not before they are:
    /// they belong to the totals at its end. After an `is_last` interval nothing comes for any job.
    pub fn due_infos(
        &mut self,
        slots: &Slots,
        origin: &Origin,
        stamp_ns: u64,
        is_last: bool,
    ) -> Vec<Point> {
        let (unread, tracker) = (self.unread(slots), &self.tracker);
        let (mut infos, mut told) = (Vec::new(), BTreeSet::new());
        for (job, details) in self.details.iter_mut().filter(|(job, _)| !unread.contains(*job)) {
            let has_settled = is_last || tracker.job(job).is_none();
            // Two of the same id and stamp would be one line: the later job's comes with the next.
            if !told.contains(&job.told()) {
                let info = details.due_info(origin, job, stamp_ns, has_settled);
                told.extend(info.is_some().then(|| job.told()));
                infos.extend(info);
            }
        }
        infos
    }

    /// Whose records are due, every `every_ns` while a job runs: those that ended first come first, then those that
    /// run. Gives also how many jobs will have none: more had ended than may wait.
    pub fn due_records(
        &mut self,
        slots: &Slots,
        every_ns: u64,
        is_end: bool,
    ) -> (VecDeque<Due>, u64) {
        let unread = self.unread(slots);
        let mut due = Vec::new();
        for (job, details) in self.details.iter_mut().filter(|(job, _)| !unread.contains(*job)) {
            let reach = match is_end {
                true => details.last_record(),
                false => details.due_record(every_ns),
            };
            let ended_ns = details.end().map(|(ended_ns, _)| ended_ns);
            due.extend(reach.map(|reach| Due { job: job.clone(), ended_ns, reach }));
        }
        due.sort_by_key(|due| (due.ended_ns.is_none(), due.ended_ns));
        let mut due = VecDeque::from(due);
        let waiting = due.partition_point(|due| due.ended_ns.is_some());
        let dropped = waiting.saturating_sub(MOST_WAITING);
        for dropped in due.drain(..dropped) {
            self.details.get_mut(&dropped.job).into_iter().for_each(|details| details.give_up());
        }
        (due, dropped as u64)
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

    /// Jobs that were let go, and whose last values were not read yet.
    fn unread(&self, slots: &Slots) -> BTreeSet<Job> {
        let tracker = &self.tracker;
        let unread = tracker.owners().iter().filter(|(lease, job)| {
            tracker.job(job).is_none() && slots.probes.slots.is_leased(**lease)
        });
        unread.map(|(_, job)| job.clone()).collect()
    }
}
