//! How much slower a workload runs with a tracer. Each traced run lies between two plain ones,
//! whose mean it is compared to, so that a drift of the machine cancels out; nothing is dropped.

use super::cases::{Case, Kind};
use super::subjects::{Place, Subject};
use crate::bench::pairs::Pairs;
use crate::bench::workloads::Tracing;
use crate::process::say;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Where there is a goal, a precise case goes on until the median is known to this fraction of the run's time, either way.
const PRECISION_RATIO: f64 = 0.001;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Traced runs of each of ours; peers have half as many, as theirs are large.
    pub pairs: u32,
    /// How long a precise case may take at most, beyond `pairs`.
    pub budget: Duration,
}

/// One workload with one tracer.
pub struct Row {
    /// The workload.
    pub case: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The tracer.
    pub subject: &'static str,
    /// The times, or why there are none.
    pub pairs: Result<Pairs, String>,
}

/// Runs the workload with each tracer that looks at its kind, in turns.
///
/// # Errors
/// When the workload fails without a tracer.
pub fn measure(
    place: &Place,
    case: &Case,
    subjects: &[Subject],
    effort: Effort,
) -> Result<Vec<Row>> {
    let row = |subject: &&Subject| Row {
        case: case.id,
        kind: case.kind,
        subject: subject.id(),
        pairs: Ok(Pairs::default()),
    };
    let subjects: Vec<_> = subjects.iter().filter(|subject| subject.looks_at(case.kind)).collect();
    let mut rows: Vec<Row> = subjects.iter().map(row).collect();
    // The first run finds cold caches and belongs to nobody.
    case.workload.run(Tracing::Off)?;
    let begin = Instant::now();
    let mut before_ns = case.workload.run(Tracing::Off)?;
    for round in 0.. {
        let in_budget = begin.elapsed() < effort.budget;
        let is_open = |index: usize| match &rows[index].pairs {
            Ok(pairs) => {
                let goes_on = in_budget && case.is_precise && subjects[index].has_goal();
                !is_enough(pairs, subjects[index].is_peer(), effort, goes_on)
            }
            Err(_) => false,
        };
        let open: Vec<usize> = turns(round, rows.len()).filter(|index| is_open(*index)).collect();
        if open.is_empty() {
            break;
        }
        say(format_args!("{}: round {}, {} tracers", case.workload.name, round + 1, open.len()));
        for index in open {
            let with = subjects[index].time(place, &case.workload);
            let after_ns = case.workload.run(Tracing::Off)?;
            match (with, &mut rows[index].pairs) {
                (Ok(with_ns), Ok(pairs)) => pairs.add(f64::midpoint(before_ns, after_ns), with_ns),
                (Err(error), pairs) => {
                    say(format_args!("{}: {error:#}", subjects[index].id()));
                    *pairs = Err(format!("{error:#}"));
                }
                (Ok(_), Err(_)) => {}
            }
            before_ns = after_ns;
        }
    }
    Ok(rows)
}

/// The order within a round: each round another begins, so that none always follows the same.
fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

/// Whether there are enough pairs; one that `goes_on` needs the median to be known too. Stopping looks
/// at the width of the interval, never at where it lies.
fn is_enough(pairs: &Pairs, is_peer: bool, effort: Effort, goes_on: bool) -> bool {
    let wished = if is_peer { effort.pairs.div_ceil(2) } else { effort.pairs } as usize;
    let is_known =
        pairs.slowdown_interval().is_some_and(|(low, high)| high - low <= 2.0 * PRECISION_RATIO);
    pairs.count() >= wished && (is_known || !goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(count: u32, spread: f64) -> Pairs {
        let mut pairs = Pairs::default();
        (0..count).for_each(|n| pairs.add(100.0, 101.0 + spread * f64::from(n % 3)));
        pairs
    }

    #[test]
    fn each_round_has_everyone_once_and_another_first() {
        assert_eq!(turns(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(turns(4, 3).collect::<Vec<_>>(), [1, 2, 0]);
    }

    #[test]
    fn pairs_are_enough_when_there_are_as_many_as_wished_and_the_median_is_known() {
        let effort = Effort { pairs: 9, budget: Duration::ZERO };
        let enough = |count, spread, is_peer, goes_on| {
            is_enough(&pairs(count, spread), is_peer, effort, goes_on)
        };
        assert!(!enough(8, 0.0, false, false));
        assert!(enough(9, 5.0, false, false));
        assert!(enough(5, 5.0, true, false), "peers have half as many");
        assert!(!enough(9, 5.0, false, true), "the median is not known");
        assert!(enough(9, 0.0, false, true), "the median is known");
    }
}
