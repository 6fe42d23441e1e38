//! What takes more core time at a larger size: the price of scaling, by cause.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measured::Measured;

/// Causes that are told.
const MOST: usize = 6;
/// Those that grew by less than this share of the core time held at the smaller size are not.
const LEAST: f64 = 0.01;

/// A kind of time at the smallest and at the largest size, in nanoseconds, means of their runs. Of work that grows
/// with the size, the time is that of the smallest size's work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// What kind of time: `waiting for a CPU`.
    pub what: String,
    /// At the smallest size.
    pub from_ns: f64,
    /// At the largest.
    pub to_ns: f64,
}

impl Grown {
    /// How much more it is.
    pub fn more_ns(&self) -> f64 {
        self.to_ns - self.from_ns
    }
}

/// The core time held and its parts, and the tasks' time by cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Core time held.
    pub held: Grown,
    /// The part in which a task ran.
    pub on_cpu: Option<Grown>,
    /// What tasks waited for, and how much more of it there is: the most first.
    pub waits: Vec<Grown>,
}

/// From the runs of the smallest to those of the largest size, which did `work` times as much each; `None` where the
/// core time held is unknown.
pub fn growth(from: &[&Measured], to: &[&Measured], work: f64) -> Option<Growth> {
    let grown = |what: &str, of: &dyn Fn(&Measured) -> Option<u64>| {
        let (from_ns, to_ns) = (mean(from, of)?, mean(to, of)? / work);
        Some(Grown { what: what.to_owned(), from_ns, to_ns })
    };
    let held = grown("cores held", &|run| run.held_ns)?;
    let on_cpu = grown("on CPU", &|run| run.on_cpu_ns);
    let mut waits = BTreeMap::<&str, (f64, f64)>::new();
    for (runs, is_from, per) in [(from, true, 1.0), (to, false, work)] {
        for part in runs.iter().flat_map(|run| &run.waits) {
            let both = waits.entry(&part.what).or_default();
            let side = if is_from { &mut both.0 } else { &mut both.1 };
            *side += part.ns as f64 / runs.len() as f64 / per;
        }
    }
    let is_known = |runs: &[&Measured]| runs.iter().all(|run| !run.waits.is_empty());
    let mut waits: Vec<_> = waits
        .into_iter()
        .filter(|_| is_known(from) && is_known(to))
        .map(|(what, (from_ns, to_ns))| Grown { what: what.to_owned(), from_ns, to_ns })
        .filter(|grown| grown.more_ns() >= LEAST * held.from_ns)
        .collect();
    waits.sort_by(|a, b| b.more_ns().total_cmp(&a.more_ns()));
    waits.truncate(MOST);
    Some(Growth { held, on_cpu, waits })
}

fn mean(runs: &[&Measured], of: &dyn Fn(&Measured) -> Option<u64>) -> Option<f64> {
    let values: Option<Vec<u64>> = runs.iter().map(|run| of(run)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64)
}
