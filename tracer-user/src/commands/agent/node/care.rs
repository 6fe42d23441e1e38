//! Care of the slots: ready for new cgroups, given to jobs that had none, taken back from those that have
//! ended. What takes long is done in small pieces.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Node, slots::AT_ONCE};
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

impl Node {
    /// Frees what can be freed, and has slots ready.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn care(&mut self, log: &Log) -> Result<()> {
        self.care_for(CARE_MOST, log)
    }

    /// As [`Self::care`], for `most` about; where that was too short, [`Self::care_after`] says so. A few
    /// slots at a time, and what happened meanwhile between them.
    pub(super) fn care_for(&mut self, most: Duration, log: &Log) -> Result<()> {
        let begin = Instant::now();
        loop {
            self.slots.reclaim()?;
            let spares = self.slots.make_ready()?;
            self.slots.end_due(log);
            let wanted = self.slots.wanted_spares;
            let wanting = self.jobs.tracker.wanting();
            // All slots are taken: those that wait for late values make room, the oldest first. Some may
            // be on their way out already.
            let is_full = spares.now <= spares.before;
            let missing = if is_full { wanted.saturating_sub(spares.now) } else { 0 };
            let missing = (missing + wanting.len()).saturating_sub(self.slots.ending());
            for job in self.jobs.tracker.holding().into_iter().take(missing) {
                self.jobs.release(&job, &mut self.slots, log);
            }
            let (now, later) = wanting.split_at(wanting.len().min(AT_ONCE));
            let granted = self.jobs.grant(now, &mut self.slots, log)?;
            let is_served = later.is_empty() || granted < now.len();
            let is_ready = spares.now >= wanted || spares.now == spares.before;
            self.care.is_behind = !(is_served && is_ready && !self.slots.are_due());
            if !self.care.is_behind || begin.elapsed() > most {
                return Ok(());
            }
            self.handle_events(log);
        }
    }

    /// When to call [`Self::care`], if nothing happens before: at once where its time was too short, in a
    /// moment where slots wait to be freed.
    pub fn care_after(&self) -> Option<Duration> {
        let waits = self.slots.are_due() || self.slots.probes.has_ended();
        if self.care.is_behind { Some(Duration::ZERO) } else { waits.then_some(FREE_AFTER) }
    }

    /// Says that there are more jobs than slots, once until all have one.
    pub(super) fn tell_shortage(&mut self, log: &Log) {
        let waiting = self.jobs.tracker.wanting().len();
        // The others get theirs in a moment.
        if waiting > self.slots.ending() && !self.care.is_behind && !self.care.is_short {
            self.care.is_short = true;
            log.warning(format_args!(
                "all slots are in use: {waiting} jobs count in _system until other jobs end; raise \
                 `slots`"
            ));
        }
        self.care.is_short &= waiting > 0;
    }
}
