//! The kernel's statistics of the programs over the intervals: when they are on, and what they tell of
//! each family.

use std::collections::BTreeMap;

use crate::{
    bpf::{
        fdinfo::ProgramRuns,
        statistics::{ForAll, Statistics},
    },
    commands::agent::{config::Statistics as When, log::Log},
    probes::{FAMILIES, Family, Probes},
};

/// With `statistics = "windows"` they are on for one interval in this many.
const WINDOW_EVERY: u64 = 30;

/// The kernel's statistics over the intervals.
pub struct Measuring {
    held: Option<Statistics>,
    refused: bool,
    for_all: ForAll,
    /// Whether somebody else had them on at the last tick.
    others: bool,
    ticks: u64,
    /// Run time of each family's programs up to the last tick, where somebody had them on then.
    before: Option<[u64; FAMILIES]>,
}

impl Measuring {
    /// From now on.
    pub fn begin(probes: &Probes) -> Self {
        let mut for_all = ForAll::default();
        Self {
            held: None,
            refused: false,
            others: for_all.is_on(),
            for_all,
            ticks: 0,
            before: Some(run_times(&probes.program_runs())),
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
        let others = self.for_all.is_on();
        let is_complete = self.held.is_some() || (self.others && others);
        let is_wanted = is_wanted(when, self.ticks);
        // While nobody has them on, they stand; those that are wanted count from here on.
        let now = (is_complete || others || is_wanted).then(|| run_times(&probes.program_runs()));
        let since = now.zip(self.before).filter(|_| is_complete);
        (self.before, self.others) = (now, others);
        self.switch(is_wanted, log);
        self.ticks += 1;
        since.map(|(now, before)| {
            std::array::from_fn(|family| now[family].saturating_sub(before[family]))
        })
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
    Family::ALL.map(|family| family.hooks().filter_map(|row| times.get(row.hook.program)).sum())
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
