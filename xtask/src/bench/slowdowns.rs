//! How much slower a workload runs with a tracer. Each traced run lies between two plain ones,
//! whose mean it is compared to, so that a drift of the machine cancels out; nothing is dropped.

use super::found::Found;
use super::pairs::Pairs;
use super::tracers::{Place, Tracer};
use super::workload::Workload;
use crate::process::say;
use anyhow::Result;
use std::time::{Duration, Instant};

/// Where there is a goal, a job goes on until the median is known to this fraction of the run's time, either
/// way.
const PRECISION_RATIO: f64 = 0.001;

/// How long to go on.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Traced runs of each of ours.
    pub pairs: usize,
    /// How long a workload without dominating events may take at most, beyond `pairs`.
    pub budget: Duration,
}

/// Runs the workload with each tracer that looks at its kind, in turns.
///
/// # Errors
/// When the workload fails without a tracer.
pub fn measure(
    place: &Place,
    workload: &Workload,
    tracers: &[Tracer],
    effort: Effort,
) -> Result<Vec<Found<Pairs>>> {
    let tracers: Vec<_> = tracers.iter().filter(|it| it.looks_at(workload.kind)).collect();
    let found = |tracer: &&Tracer| Found::new(workload, tracer, Ok(Pairs::default()));
    let mut all: Vec<_> = tracers.iter().map(found).collect();
    // The first run finds cold caches and belongs to nobody.
    workload.run_plain()?;
    let begin = Instant::now();
    let mut before_ns = workload.run_plain()?;
    for round in 0.. {
        let in_budget = begin.elapsed() < effort.budget;
        let is_open = |index: usize| {
            all[index].figure.as_ref().is_ok_and(|pairs| {
                let tracer = tracers[index];
                let goes_on = in_budget && workload.events.is_none() && tracer.has_goal();
                !is_enough(pairs, tracer.share_of(effort.pairs), goes_on)
            })
        };
        let open: Vec<usize> = turns(round, all.len()).filter(|index| is_open(*index)).collect();
        if open.is_empty() {
            break;
        }
        say(format_args!("{}: round {}, {} tracers", workload.name, round + 1, open.len()));
        for index in open {
            let with = tracers[index].time(place, workload);
            let after_ns = workload.run_plain()?;
            match (with, &mut all[index].figure) {
                (Ok(with_ns), Ok(pairs)) => pairs.add(f64::midpoint(before_ns, after_ns), with_ns),
                (Err(error), figure) => {
                    say(format_args!("{}: {error:#}", tracers[index].id()));
                    *figure = Err(format!("{error:#}"));
                }
                (Ok(_), Err(_)) => {}
            }
            before_ns = after_ns;
        }
    }
    Ok(all)
}

/// The order within a round: each round another begins, so that none always follows the same.
fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |place| (place + round) % count)
}

/// Whether there are as many pairs as wished; one that `goes_on` needs the median to be known too. Stopping
/// looks at the width of the interval, never at where it lies.
fn is_enough(pairs: &Pairs, wished: usize, goes_on: bool) -> bool {
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
        let enough = |count, spread, goes_on| is_enough(&pairs(count, spread), 9, goes_on);
        assert!(!enough(8, 0.0, false));
        assert!(enough(9, 5.0, false));
        assert!(!enough(9, 5.0, true), "the median is not known");
        assert!(enough(9, 0.0, true), "the median is known");
    }
}
