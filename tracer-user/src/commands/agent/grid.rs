//! When to measure, and which time stamp it gets: a grid of whole intervals that all nodes share.
//!
//! Pure: both clocks arrive as arguments. Spans are of CLOCK_MONOTONIC, stamps of the wall clock's grid;
//! a stamp never comes twice and never goes back, whatever the wall clock does, because a second point of
//! the same series and time would overwrite the first one.

use std::num::NonZeroU32;

const SECOND: u64 = 1_000_000_000;
/// The latest wall time taken as it is (the year 2200), so that no sum below overflows.
const MAX_WALL_NS: u64 = 7_258_118_400 * SECOND;

/// The ticks of one agent's life.
#[derive(Clone, Debug)]
pub struct Grid {
    interval_ns: u64,
    last_stamp_ns: Option<u64>,
    last_monotonic_ns: u64,
    last_wall_ns: u64,
    due_monotonic_ns: u64,
    late: u64,
    /// By how much stamps were ahead when that was told last; 0 while they are not.
    ahead_told_ns: u64,
}

/// One tick: how the interval that it ends is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Time stamp of the interval's points, later than any before: a multiple of the interval, or when the agent
    /// ended.
    pub stamp_ns: u64,
    /// Length of the interval by CLOCK_MONOTONIC.
    pub span_ns: u64,
    /// How late it came, where that is more than a tenth of the interval or a second.
    pub late_ns: Option<u64>,
    /// How far the wall clock stepped since the last tick, where that is more than a tenth of the
    /// interval or a second; backwards is negative.
    pub step_ns: Option<i64>,
    /// How far the stamp is ahead of the wall clock, where that is more than one interval and news: it is told
    /// again when it is an interval more than was told last, or half.
    pub ahead_ns: Option<u64>,
}

impl Grid {
    /// Ticks every `interval_s` seconds (a day at most) from the given moment on, all stamped later than
    /// `last_stamp_ns`, the last one written before (0 for none; one that no clock here gives is none).
    pub fn new(
        interval_s: NonZeroU32,
        last_stamp_ns: u64,
        wall_ns: u64,
        monotonic_ns: u64,
    ) -> Self {
        let mut grid = Self {
            interval_ns: u64::from(interval_s.get().min(86_400)) * SECOND,
            last_stamp_ns: Some(last_stamp_ns).filter(|last| (1..MAX_WALL_NS).contains(last)),
            last_monotonic_ns: monotonic_ns,
            last_wall_ns: wall_ns.min(MAX_WALL_NS),
            due_monotonic_ns: monotonic_ns,
            late: 0,
            ahead_told_ns: 0,
        };
        grid.plan(wall_ns, monotonic_ns);
        grid
    }

    /// Ticks every `interval_s` seconds from the given moment on. The interval under way ends at the next
    /// point of the new grid.
    pub fn set_interval(&mut self, interval_s: NonZeroU32, wall_ns: u64, monotonic_ns: u64) {
        let interval_ns = u64::from(interval_s.get().min(86_400)) * SECOND;
        if interval_ns != self.interval_ns {
            self.interval_ns = interval_ns;
            self.plan(wall_ns, monotonic_ns);
        }
    }

    /// CLOCK_MONOTONIC of the next tick: sleep until then, then call [`Grid::tick`]. At most two
    /// intervals and a tenth after the last tick.
    pub fn due_monotonic_ns(&self) -> u64 {
        self.due_monotonic_ns
    }

    /// Ends an interval at the given moment.
    pub fn tick(&mut self, wall_ns: u64, monotonic_ns: u64) -> Tick {
        // On the grid, also where the clocks' difference woke us a little before.
        let reached_ns = self.reached_ns(wall_ns);
        let stamp_ns = self.first_free_ns().map_or(reached_ns, |free| free.max(reached_ns));
        self.ends(stamp_ns, wall_ns, monotonic_ns)
    }

    /// Ends the last interval of a life at the given moment, which is its stamp: the next point of the grid is
    /// still to come, and would be of a time that the next agent counts.
    pub fn end(&mut self, wall_ns: u64, monotonic_ns: u64) -> Tick {
        let stamp_ns = wall_ns.min(MAX_WALL_NS).max(self.last_stamp_ns() + 1);
        self.ends(stamp_ns, wall_ns, monotonic_ns)
    }

    fn ends(&mut self, stamp_ns: u64, wall_ns: u64, monotonic_ns: u64) -> Tick {
        let wall_ns = wall_ns.min(MAX_WALL_NS);
        let tolerance_ns = self.tolerance_ns();
        let span_ns = monotonic_ns.saturating_sub(self.last_monotonic_ns);
        let late_ns = monotonic_ns.saturating_sub(self.due_monotonic_ns);
        let late_ns = (late_ns > tolerance_ns).then_some(late_ns);
        // Slewing makes the wall clock run a little slower or faster than the other; that is no step.
        let step_ns = i128::from(wall_ns) - i128::from(self.last_wall_ns) - i128::from(span_ns);
        let step_ns = step_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        let step_ns = (step_ns.unsigned_abs() > tolerance_ns).then_some(step_ns);
        let ahead_ns = stamp_ns.saturating_sub(wall_ns);
        let (told_ns, is_ahead) = (self.ahead_told_ns, ahead_ns > self.interval_ns);
        // It changes at each tick: again when there is more of it, or half.
        let is_news = ahead_ns > told_ns + self.interval_ns || ahead_ns <= told_ns / 2;
        if is_news || !is_ahead {
            self.ahead_told_ns = if is_ahead { ahead_ns } else { 0 };
        }
        let ahead_ns = (is_ahead && is_news).then_some(ahead_ns);

        self.late += u64::from(late_ns.is_some());
        self.last_stamp_ns = Some(stamp_ns);
        self.last_monotonic_ns = self.last_monotonic_ns.max(monotonic_ns);
        self.last_wall_ns = wall_ns;
        self.plan(wall_ns, monotonic_ns);
        Tick { stamp_ns, span_ns, late_ns, step_ns, ahead_ns }
    }

    /// Late ticks so far.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The last stamp given, for the agent's state; 0 for none.
    pub fn last_stamp_ns(&self) -> u64 {
        self.last_stamp_ns.unwrap_or(0)
    }

    /// The first point of the grid after the last stamp. That may be of another grid, where the
    /// interval was changed.
    fn first_free_ns(&self) -> Option<u64> {
        self.last_stamp_ns.map(|last| (last / self.interval_ns + 1) * self.interval_ns)
    }

    /// Plans the next tick: at the next point of the grid. While the stamps are ahead of the clock,
    /// which was set back, every second point is left out: so they fall back to it at half its pace.
    fn plan(&mut self, wall_ns: u64, monotonic_ns: u64) {
        let wall_ns = wall_ns.min(MAX_WALL_NS);
        // A tick a little early is taken for its point of the grid, so the next is one further.
        let mut next_ns = self.reached_ns(wall_ns) + self.interval_ns;
        if self.first_free_ns().is_some_and(|free| free > next_ns) {
            next_ns += self.interval_ns;
        }
        self.due_monotonic_ns = monotonic_ns.saturating_add(next_ns - wall_ns);
    }

    /// The last point of the grid, or the next where that is hardly to come.
    fn reached_ns(&self, wall_ns: u64) -> u64 {
        (wall_ns.min(MAX_WALL_NS) + self.tolerance_ns()) / self.interval_ns * self.interval_ns
    }

    /// What is no lateness and no step: a tenth of the interval, at most a second.
    fn tolerance_ns(&self) -> u64 {
        (self.interval_ns / 10).min(SECOND)
    }
}

impl Tick {
    /// What a reader of the agent's log should know; `None` where all is as it should be.
    pub fn remark(&self) -> Option<String> {
        let seconds = |ns: u64| ns as f64 / SECOND as f64;
        let mut remarks = Vec::new();
        if let Some(late_ns) = self.late_ns {
            let (late, span) = (seconds(late_ns), seconds(self.span_ns));
            remarks.push(format!("measured {late:.1} s late, this interval is {span:.1} s long"));
        }
        if let Some(step_ns) = self.step_ns {
            let direction = if step_ns < 0 { "back" } else { "forward" };
            let step = seconds(step_ns.unsigned_abs());
            remarks.push(format!("the wall clock stepped {direction} by {step:.1} s"));
        }
        if let Some(ahead_ns) = self.ahead_ns {
            let ahead = seconds(ahead_ns);
            remarks.push(format!(
                "time stamps are {ahead:.0} s ahead of the wall clock, so that none is used twice, and \
                 advance at half its pace until it catches up"
            ));
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

#[cfg(test)]
mod tests;
