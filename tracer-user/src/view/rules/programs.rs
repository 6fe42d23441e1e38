//! A rule for jobs that start a program for each little thing.

use super::{Facts, Finding, LEAST_NS, Rule, Tone};
use crate::{
    base::units::{count, duration, percent},
    model::tables::{Fault, Sched},
};

/// Fewer are no habit.
const MANY: u64 = 100;
/// Programs that compute for less each do little but start: an empty one takes about a millisecond.
const SHORT_NS: u64 = 3_000_000;
/// They take this part of the elapsed time, or it would gain nothing without them.
const LEAST: f64 = 0.20;

pub(super) const MANY_PROGRAMS: Rule = Rule {
    id: "many_programs",
    least_ns: LEAST_NS,
    threshold: || {
        format!(
            "{} programs or more started, of less than {} on a CPU each, which take {} of the time",
            count(MANY),
            duration(SHORT_NS),
            percent(LEAST)
        )
    },
    source: "",
    advice: "do it in one program: the shell's own commands, or a script's loop in place of a program for each item",
    shown: "cpu",
    find: many_programs,
};

pub(super) fn many_programs(facts: &Facts) -> Option<Finding> {
    let execs = facts.number(Sched::execs).filter(|execs| *execs >= MANY)?;
    let (forks, on_cpu_ns) = (facts.number(Sched::forks)?, facts.on_cpu_ns?);
    let each_ns = on_cpu_ns / execs;
    if each_ns >= SHORT_NS || facts.judged(on_cpu_ns) < LEAST {
        return None;
    }
    let a_second =
        (u128::from(execs) * 1_000_000_000).checked_div(facts.totals.elapsed_ns.into())?;
    let faults = facts
        .number(Fault::minor)
        .map_or(String::new(), |faults| format!(" and {} page faults", count(faults / execs)));
    let text = format!(
        "started {} programs ({} a second, {} forks), with {} on a CPU{faults} each: starting them is most of what it does",
        count(execs),
        count(u64::try_from(a_second).unwrap_or(u64::MAX)),
        count(forks),
        duration(each_ns)
    );
    Some(Finding::new(facts.share(on_cpu_ns), Tone::Warn, text))
}
