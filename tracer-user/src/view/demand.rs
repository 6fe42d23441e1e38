//! Cores that a job could have used, and why its tasks waited for a CPU: because there were more of them than cores
//! allowed, or because they did not get these cores.
//!
//! Told of each column of time by itself: eight workers and later one of them are not four all the time.

use crate::{
    model::{
        held::cores_on_average,
        tables::{CPU, SCHED, Sched},
        totals::RunTotals,
    },
    record::{
        series::{self, Series},
        timeline::{Column, Timeline},
    },
};

/// Readings from which on a job's course is known.
pub(crate) const SEVERAL: u64 = 3;

/// Core time, added up over columns of time and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// What its runnable tasks could have used of the cores allowed.
    pub wanted_ns: u64,
    /// What they did not get of that.
    pub missed_ns: u64,
    /// Waiting of the tasks that were more than the cores allowed.
    pub crowded_ns: u64,
    /// Cores wanted in the busiest column, in thousandths.
    pub busiest_millicores: u64,
}

impl Demand {
    /// Of one node, by its course where that is known; `None` where a part of it is unknown.
    ///
    /// Of several tasks a few readings do not tell either: those that crowded for a moment and were idle after it look
    /// like tasks that missed cores all the time. A database does not tell how many there were.
    pub fn of(totals: &RunTotals, course: Option<&Timeline>) -> Option<Self> {
        let (held, _) = cores_on_average(totals.stats.group(&CPU)?, totals.elapsed_ns)?;
        let sched = totals.stats.group(&SCHED)?;
        let are_few = (1..SEVERAL).contains(&totals.intervals);
        if are_few && sched.number(Sched::forks) != Some(0) {
            return None;
        }
        let on_cpu_ns = sched.number(Sched::on_cpu_ns)?;
        let waiting_ns = sched.hist(Sched::run_queue_wait_ns)?.sum;
        let whole = || Self::over(totals.counted_ns(1), held, on_cpu_ns, waiting_ns);
        Some(course.and_then(|course| Self::by_columns(course, held)).unwrap_or_else(whole))
    }

    /// Of several nodes.
    pub fn and(self, other: Self) -> Self {
        Self {
            wanted_ns: self.wanted_ns.saturating_add(other.wanted_ns),
            missed_ns: self.missed_ns.saturating_add(other.missed_ns),
            crowded_ns: self.crowded_ns.saturating_add(other.crowded_ns),
            busiest_millicores: self.busiest_millicores.saturating_add(other.busiest_millicores),
        }
    }

    fn by_columns(course: &Timeline, held: u64) -> Option<Self> {
        let place = |name| series::SERIES.iter().position(|series: &Series| series.name == name);
        let (on_cpu, waiting) = (place("on_cpu_ns")?, place("run_queue_wait_ns")?);
        let column = |(at, column): (usize, Column)| {
            let from_ns = course.start_ns() + at as u64 * course.width_ns();
            let to_ns = (from_ns + course.width_ns()).min(course.end_ns());
            let span_ns = to_ns.saturating_sub(from_ns.max(course.begin_ns()));
            Some(Self::over(span_ns, held, column[on_cpu]?, column[waiting]?))
        };
        // What was not counted says nothing of what was.
        course.columns().enumerate().filter_map(column).reduce(|a, b| Self {
            busiest_millicores: a.busiest_millicores.max(b.busiest_millicores),
            ..a.and(b)
        })
    }

    /// Of a time in which it was about the same.
    fn over(span_ns: u64, held_millicores: u64, on_cpu_ns: u64, waiting_ns: u64) -> Self {
        let allowed_ns = u128::from(span_ns) * u128::from(held_millicores) / 1000;
        let allowed_ns = u64::try_from(allowed_ns).unwrap_or(u64::MAX);
        let wanted_ns = on_cpu_ns.saturating_add(waiting_ns).min(allowed_ns.max(on_cpu_ns));
        let missed_ns = wanted_ns - on_cpu_ns;
        let millicores = (u128::from(wanted_ns) * 1000).checked_div(span_ns.into()).unwrap_or(0);
        Self {
            wanted_ns,
            missed_ns,
            crowded_ns: waiting_ns - missed_ns,
            busiest_millicores: u64::try_from(millicores).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn tasks_beyond_the_cores_allowed_crowd_and_others_miss_cores() {
        for (on_cpu, waiting, wanted, missed, crowded) in [
            // Alone.
            (10, 0, 10, 0, 0),
            // One task of which other work takes half.
            (5, 5, 10, 5, 0),
            // Eight tasks on two cores, and the same beside other work, or bound to one.
            (20, 60, 20, 0, 60),
            (10, 70, 20, 10, 60),
            // Intervals are not cut to the nanosecond.
            (21, 3, 21, 0, 3),
        ] {
            let told = Demand::over(10 * S, 2_000, on_cpu * S, waiting * S);
            let of = [told.wanted_ns, told.missed_ns, told.crowded_ns].map(|ns| ns / S);
            assert_eq!(of, [wanted, missed, crowded]);
            assert_eq!(told.busiest_millicores, wanted * 100);
        }
        assert_eq!(Demand::over(0, 2_000, 0, 0), Demand::default());
    }

    #[test]
    fn each_column_is_told_by_itself() {
        let place = |name| series::SERIES.iter().position(|series| series.name == name).unwrap();
        let column = |on_cpu, waiting| {
            let mut column: Column = [None; series::WIDTH];
            column[place("on_cpu_ns")] = Some(on_cpu);
            column[place("run_queue_wait_ns")] = Some(waiting);
            column
        };
        // Eight workers on two cores, then one, which ends half a second later.
        let columns = [column(2 * S, 6 * S), column(S, 0), column(S / 2, 0)];
        let course = Timeline::of(S, 3 * S + S / 2, S, &columns).unwrap();
        let told = Demand::by_columns(&course, 2_000).unwrap();
        assert_eq!((told.wanted_ns, told.missed_ns, told.crowded_ns), (7 * S / 2, 0, 6 * S));
        assert_eq!(told.busiest_millicores, 2_000);
        // In the second of these nobody counted.
        let columns = [column(S, S), [None; series::WIDTH], column(S, 0)];
        let course = Timeline::of(S, 4 * S, S, &columns).unwrap();
        let told = Demand::by_columns(&course, 2_000).unwrap();
        assert_eq!((told.wanted_ns, told.missed_ns), (3 * S, S));
        let unknown = Timeline::of(S, 2 * S, S, &[[None; series::WIDTH]]).unwrap();
        assert_eq!(Demand::by_columns(&unknown, 2_000), None);
    }
}
