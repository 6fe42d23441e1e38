//! Care of the slots: ready for new cgroups, given to jobs that had none, taken back from those that have
//! ended. What takes long is done in small pieces.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{
    jobs::Jobs,
    slots::{AT_ONCE, Slots},
};
use crate::commands::agent::log::Log;

/// How long slots are cared for before whatever else is due.
const CARE_MOST: Duration = Duration::from_millis(100);

/// Pause before slots that have ended are looked at again.
const FREE_AFTER: Duration = Duration::from_millis(110);

/// The same before the first reading, so that all jobs there have a slot from the first interval on: 250 of
/// them take 2 to 6 s, and a service manager waits 90 s for the start.
pub(super) const START_MOST: Duration = Duration::from_secs(30);

/// Whether there was time and room for all.
#[derive(Debug, Default)]
pub(super) struct Care {
    /// Whether slots that could be given are still to be given, or made ready.
    is_behind: bool,
    /// Whether it was said that there are more jobs than slots.
    is_short: bool,
}

impl Care {
    /// Frees what can be freed, and has slots ready.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn work(&mut self, jobs: &mut Jobs, slots: &mut Slots, log: &Log) -> Result<()> {
        self.work_for(CARE_MOST, jobs, slots, log)
    }

    /// As [`Self::work`], for `most` about; where that was too short, [`Self::due_after`] says so. A few
    /// slots at a time, and what happened meanwhile between them.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn work_for(
        &mut self,
        most: Duration,
        jobs: &mut Jobs,
        slots: &mut Slots,
        log: &Log,
    ) -> Result<()> {
        let begin = Instant::now();
        loop {
            slots.reclaim()?;
            let spares = slots.make_ready()?;
            slots.end_due(log);
            let wanted = slots.wanted_spares;
            let wanting = jobs.tracker.wanting();
            // All slots are taken: those that wait for late values make room, the oldest first. Some may
            // be on their way out already.
            let is_full = spares.now <= spares.before;
            let missing = if is_full { wanted.saturating_sub(spares.now) } else { 0 };
            let missing = (missing + wanting.len()).saturating_sub(slots.ending());
            for job in jobs.tracker.holding().into_iter().take(missing) {
                jobs.release(&job, slots, log);
            }
            let (now, later) = wanting.split_at(wanting.len().min(AT_ONCE));
            let granted = jobs.grant(now, slots, log)?;
            let is_served = later.is_empty() || granted < now.len();
            let is_ready = spares.now >= wanted || spares.now == spares.before;
            self.is_behind = !(is_served && is_ready && !slots.are_due());
            if !self.is_behind || begin.elapsed() > most {
                return Ok(());
            }
            jobs.take_events(slots, log);
        }
    }

    /// When to go on, if nothing happens before: at once where the time was too short, in a moment where
    /// slots wait to be freed.
    pub fn due_after(&self, slots: &Slots) -> Option<Duration> {
        let waits = slots.are_due() || slots.probes.slots.has_ended();
        if self.is_behind { Some(Duration::ZERO) } else { waits.then_some(FREE_AFTER) }
    }

    /// Says that there are more jobs than slots, once until all have one.
    pub fn tell_shortage(&mut self, jobs: &Jobs, slots: &mut Slots, log: &Log) {
        let waiting = jobs.tracker.wanting().len();
        // The others get theirs in a moment.
        if waiting > slots.ending() && !self.is_behind && !self.is_short {
            self.is_short = true;
            log.warning(format_args!(
                "all slots are in use: {waiting} jobs count in _system until other jobs end; raise \
                 `slots`"
            ));
        }
        self.is_short &= waiting > 0;
    }
}
