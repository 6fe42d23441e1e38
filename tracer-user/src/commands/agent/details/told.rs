//! What is told of a job, and when: its lines of `job_info`.

use super::{Details, totals};
use crate::model::{
    end_reason::EndReason,
    info::Facts,
    job::Job,
    point::{Origin, Point},
    points::facts_point,
    tables::{Fact, fact},
};

/// `job_info` is written again after this long: a panel that looks at an hour finds the job's name.
pub const REPEAT_NS: u64 = 300_000_000_000;

/// An end this long after the interval of the last kill is its consequence.
const KILL_TO_END_NS: u64 = 5_000_000_000;
/// An end this long after the time limit is its consequence: Slurm looks for such jobs every 30 s, and gives them
/// another 30 s (KillWait) before they are killed.
const LIMIT_TO_END_NS: u64 = 90_000_000_000;

impl Details {
    /// `job_info`, where it is due at `stamp_ns`; with the job's totals once it has ended. Told again, with the stamp
    /// that it had, when what came late `has_settled` (write-back, a GPU's last reading).
    pub fn due_info(
        &mut self,
        origin: &Origin,
        job: &Job,
        stamp_ns: u64,
        has_settled: bool,
    ) -> Option<Point> {
        let fresh = |told: u64| stamp_ns.saturating_sub(told) < REPEAT_NS;
        let is_amended = self.end_told && has_settled && self.late && !self.settled;
        self.settled |= self.end_told && has_settled;
        if !is_amended && (self.end_told || self.told_ns.is_some_and(fresh)) {
            return None;
        }
        let stamp_ns = self.told_ns.filter(|_| is_amended).unwrap_or(stamp_ns);
        self.told_ns = Some(stamp_ns);
        self.end_told = self.ended.is_some();
        let groups = &self.record.totals.stats.groups;
        let (mut facts, mut totals) = (self.all_facts(), Vec::new());
        if self.end_told {
            facts.set(const { fact("elapsed_ns") }, self.record.totals.elapsed_ns);
            totals = totals::fields(groups);
        }
        Some(facts_point(origin, job, &facts, totals, stamp_ns))
    }

    /// All that is known of it besides its values.
    pub(super) fn all_facts(&self) -> Facts {
        let mut facts = self.info.facts();
        facts.set(const { fact("uid") }, self.uid.map(u64::from));
        facts.extend(&self.facts);
        const SUBMITTED: &Fact = fact("submitted");
        let start = facts.number(const { fact("start") });
        facts.set(SUBMITTED, facts.number(SUBMITTED).filter(|submitted| Some(*submitted) <= start));
        facts.set(const { fact("end") }, self.ended);
        facts.set_text(const { fact("end_reason") }, self.end_reason());
        facts
    }

    /// Why it ended, where its values show that; else empty. A job may go on for hours after one of its processes was
    /// killed, and its limit may be raised: only an end that follows at once is the consequence.
    fn end_reason(&self) -> &'static str {
        let Some(ended_ns) = self.ended else { return EndReason::Itself.word() };
        let limit_ns = self.facts.number(const { fact("time_limit_end") });
        let follows = |cause_ns: u64, within_ns| ended_ns <= cause_ns.saturating_add(within_ns);
        if self.killed_ns.is_some_and(|killed_ns| follows(killed_ns, KILL_TO_END_NS)) {
            EndReason::OutOfMemory.word()
        } else if limit_ns.is_some_and(|at_ns| ended_ns >= at_ns && follows(at_ns, LIMIT_TO_END_NS))
        {
            EndReason::TimeLimit.word()
        } else {
            EndReason::Itself.word()
        }
    }
}
