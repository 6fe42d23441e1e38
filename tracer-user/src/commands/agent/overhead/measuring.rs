//! The kernel's statistics of the programs over the intervals: when they are on, and what they tell of
//! each family.

use std::collections::BTreeMap;

use crate::{
    commands::agent::{
        config::Statistics as When,
        governor::{FAMILIES, Family},
        log::Log,
    },
    probes::{
        Probes, ProgramRuns,
        statistics::{Statistics, is_on_for_all},
    },
};

/// With `statistics = "windows"` they are on for one interval in this many.
const WINDOW_EVERY: u64 = 30;

/// The kernel's statistics over the intervals.
pub struct Measuring {
    held: Option<Statistics>,
    refused: bool,
    /// Whether somebody else had them on at the last tick.
    others: bool,
    ticks: u64,
    /// Run time of each family's programs up to the last tick.
    before: [u64; FAMILIES],
}

impl Measuring {
    /// From now on.
    pub fn begin(probes: &Probes) -> Self {
        Self {
            held: None,
            refused: false,
            others: is_on_for_all(),
            ticks: 0,
            before: run_times(&probes.program_runs()),
        }
    }

    /// Run time of each family's programs in the interval that ends, where the statistics were on in all
    /// of it; and switches them on or off for the next.
    pub fn end_interval(
        &mut self,
        probes: &Probes,
        when: When,
        log: &Log,
    ) -> Option<[u64; FAMILIES]> {
        let others = is_on_for_all();
        let is_complete = self.held.is_some() || (self.others && others);
        let now = run_times(&probes.program_runs());
        let since = std::array::from_fn(|family| now[family].saturating_sub(self.before[family]));
        (self.before, self.others) = (now, others);
        self.switch(is_wanted(when, self.ticks), log);
        self.ticks += 1;
        is_complete.then_some(since)
    }

    fn switch(&mut self, wanted: bool, log: &Log) {
        if !wanted {
            self.held = None;
        } else if self.held.is_none() && !self.refused {
            match Statistics::switch_on() {
                Ok(held) => self.held = Some(held),
                Err(error) => {
                    self.refused = true;
                    log.warning(format_args!(
                        "{error:#}: the probes' cost is estimated instead; to measure it, give \
                         CAP_SYS_ADMIN or set kernel.bpf_stats_enabled=1"
                    ));
                }
            }
        }
    }
}

/// Whether the statistics are to be on in the interval after tick number `tick`, from 0.
fn is_wanted(when: When, tick: u64) -> bool {
    match when {
        When::Off => false,
        When::Windows => tick.is_multiple_of(WINDOW_EVERY),
        When::On => true,
    }
}

fn run_times(runs: &[ProgramRuns]) -> [u64; FAMILIES] {
    let times: BTreeMap<_, _> = runs.iter().map(|run| (run.name.as_str(), run.time_ns)).collect();
    Family::ALL
        .map(|family| family.cost().programs.iter().filter_map(|program| times.get(program)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_one_interval_in_thirty_and_the_first_comes_soon() {
        let on: Vec<_> = (0..90).filter(|tick| is_wanted(When::Windows, *tick)).collect();
        assert_eq!(on, [0, 30, 60]);
        assert!((0..90).all(|tick| is_wanted(When::On, tick) && !is_wanted(When::Off, tick)));
    }
}
