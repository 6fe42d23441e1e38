//! The node's slots: ready for new cgroups, given to jobs that had none, taken back from those that have
//! ended. What takes long is done in small pieces.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::Node;
use crate::{
    base::clock::{monotonic_ns, wall_ns},
    commands::agent::{log::Log, tracker::Action},
    model::{job::Job, lease::Lease},
    resolve::process,
};

/// A job that has ended keeps its slot this long, for block requests that complete late; less where slots
/// are short.
const LINGER_NS: u64 = 120_000_000_000;

/// How long slots are cared for before whatever else is due, and how many before what happened meanwhile.
const CARE_MOST: Duration = Duration::from_millis(100);
const AT_ONCE: usize = 4;

/// Pause before slots that have ended are looked at again.
const FREE_AFTER: Duration = Duration::from_millis(110);

/// The same before the first reading, so that all jobs there have a slot from the first interval on: 250 of
/// them take 2 to 6 s, and a service manager waits 90 s for the start.
pub(super) const START_MOST: Duration = Duration::from_secs(30);

impl Node {
    /// Frees what can be freed, and has slots ready.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn care(&mut self, log: &Log) -> Result<()> {
        self.care_for(CARE_MOST, log)
    }

    /// As [`Self::care`], for `most` about; where that was too short, [`Self::care_after`] says so. A slot that
    /// is used for the first time costs the kernel a grace period, 10 ms or more: a few at a time, and what
    /// happened meanwhile between them.
    pub(super) fn care_for(&mut self, most: Duration, log: &Log) -> Result<()> {
        let begin = Instant::now();
        loop {
            self.reclaim()?;
            let wanted = self.settings.spare_slots;
            let before = self.probes.slots.keep_spare(0)?;
            let ready = self.probes.slots.keep_spare(wanted.min(before + AT_ONCE))?;
            for (lease, heir) in self.to_end.drain(..) {
                if let Err(error) = self.probes.slots.end(lease, heir) {
                    log.warning(format_args!("{error:#}"));
                }
            }
            let wanting = self.tracker.wanting();
            let (probes, ending) = (&self.probes, &mut self.ending);
            ending.retain(|lease| probes.slots.is_leased(*lease));
            // All slots are taken: those that wait for late values make room, the oldest first. Some may
            // be on their way out already.
            let missing = if ready > before { 0 } else { wanted.saturating_sub(ready) };
            let missing = (missing + wanting.len()).saturating_sub(self.ending.len());
            for job in self.tracker.holding().into_iter().take(missing) {
                self.release(&job, log);
            }
            let (now, later) = wanting.split_at(wanting.len().min(AT_ONCE));
            let granted = self.grant(now, log)?;
            let is_served = later.is_empty() || granted < now.len();
            let is_ready = ready >= wanted || ready == before;
            self.is_behind = !(is_served && is_ready && self.to_end.is_empty());
            if !self.is_behind || begin.elapsed() > most {
                return Ok(());
            }
            self.handle_events(log);
        }
    }

    /// Gives `jobs` slots as far as there are any; gives how many have one.
    fn grant(&mut self, jobs: &[Job], log: &Log) -> Result<usize> {
        for (granted, job) in jobs.iter().enumerate() {
            let Some(lease) = self.probes.slots.lease_or_spare()? else { return Ok(granted) };
            let actions = self.tracker.grant(job, lease);
            self.apply(actions, log);
            if let Some(details) = self.details.get_mut(job) {
                details.set_counted_from(wall_ns());
            }
            self.learn_from_tasks(job, log);
        }
        Ok(jobs.len())
    }

    /// When to call [`Self::care`], if nothing happens before: at once where its time was too short, in a
    /// moment where slots wait to be freed.
    pub fn care_after(&self) -> Option<Duration> {
        let waits = !self.to_end.is_empty() || self.probes.slots.has_ended();
        if self.is_behind { Some(Duration::ZERO) } else { waits.then_some(FREE_AFTER) }
    }

    /// Says that there are more jobs than slots, once until all have one.
    pub(super) fn tell_shortage(&mut self, log: &Log) {
        let waiting = self.tracker.wanting().len();
        // The others get theirs in a moment.
        if waiting > self.ending.len() && !self.is_behind && !self.is_short {
            self.is_short = true;
            log.warning(format_args!(
                "all slots are taken: {waiting} jobs count as the rest of the node until others end; \
                 raise `slots`"
            ));
        }
        self.is_short &= waiting > 0;
    }

    pub(super) fn apply(&mut self, actions: Vec<Action>, log: &Log) {
        for action in actions {
            if let Action::End(lease, 1..) | Action::Keep(lease, _) = action {
                self.note_owner(lease, log);
            }
            let done = match action {
                Action::Place(cgroup, lease) => {
                    let placed = self.probes.slots.place(cgroup, lease);
                    // One that was removed before it had an entry is never told of.
                    let is_there = |path: &PathBuf| self.view.exists(cgroup, path);
                    if placed.is_ok() && self.unplaced.get(&cgroup).is_some_and(is_there) {
                        self.unplaced.remove(&cgroup);
                    }
                    placed
                }
                Action::End(lease, heir) => {
                    // Its owner is known from here on: nothing is lost until its slot ends.
                    self.ending.insert(lease);
                    self.to_end.push_back((lease, heir));
                    if heir != 0 && !self.has_steps(lease) {
                        self.probes.slots.keep(lease, true);
                    }
                    Ok(())
                }
                Action::Keep(lease, execs) => {
                    if !self.has_steps(lease) {
                        self.probes.slots.keep(lease, execs);
                    }
                    Ok(())
                }
            };
            if let Err(error) = done {
                log.warning(format_args!("{error:#}"));
            }
        }
    }

    /// Whether what is made inside the cgroups of `lease` is a series of its own: then it gets a slot of
    /// its own from its begin on, too.
    pub(super) fn has_steps(&self, lease: Lease) -> bool {
        let owner = self.tracker.owner(lease).filter(|_| self.settings.steps);
        owner.is_some_and(|job| job.step.is_empty() && process::has_steps(&job.manager))
    }

    pub(super) fn release(&mut self, job: &Job, log: &Log) {
        self.note_ended(job);
        let action = self.tracker.release(job);
        self.apply(action.into_iter().collect(), log);
    }

    /// Lets go of jobs that ended a while ago, and at once of those without a slot: nothing comes late
    /// there.
    pub(super) fn release_old(&mut self, log: &Log) {
        let now_ns = monotonic_ns();
        for (ended_ns, job) in self.tracker.ended() {
            let has_slot = self.tracker.job(&job).is_some_and(|tracked| tracked.lease.is_some());
            if !has_slot || now_ns.saturating_sub(ended_ns) > LINGER_NS {
                self.release(&job, log);
            }
        }
        let tracker = &self.tracker;
        self.details.retain(|job, details| tracker.job(job).is_some() || !details.is_end_told());
    }
}
