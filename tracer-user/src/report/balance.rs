//! How evenly the parts of a job computed: its nodes, or the tasks of its largest step.

use std::collections::BTreeMap;

use super::whole::{Whole, number};
use crate::{
    base::{text::clean, units::percent},
    model::{parts::Part, tables::Sched},
    record::Record,
    view::facts::Balance,
};

/// A node that was counted for less of the longest node's time came late, was given back or had no agent for a while: what
/// it computed is beside no other's.
const BESIDE: f64 = 0.9;

/// Over its nodes, where there are several of which that is known, and that were there as long.
pub(super) fn of_nodes(whole: &Whole, unicode: bool) -> Option<Balance> {
    let on_cpu = |node: &Record| number(node, Sched::on_cpu_ns);
    let counted_ns = |node: &Record| node.totals.counted_ns(1);
    let longest_ns = whole.nodes.iter().map(counted_ns).max()?;
    let beside =
        whole.nodes.iter().filter(|node| counted_ns(node) as f64 >= longest_ns as f64 * BESIDE);
    let known = beside.filter_map(|node| Some((node.hosts.first()?, on_cpu(node)?)));
    let known = known.map(|(host, ns)| (clean(host, unicode), ns)).collect();
    of("node", known)
}

/// Over the tasks of the step that computed most, on all nodes.
pub(super) fn of_tasks(whole: &Whole, unicode: bool) -> Option<Balance> {
    let mut steps = BTreeMap::<&str, Vec<(&Part, u64)>>::new();
    for part in tasks(whole) {
        if let Some(ns) = part.on_cpu_ns {
            steps.entry(&part.step).or_default().push((part, ns));
        }
    }
    let sum =
        |parts: &[(&Part, u64)]| parts.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    // Of equals the first, as in the table of parts.
    let several = steps.into_iter().rev().filter(|(_, parts)| parts.len() > 1);
    let (step, parts) = several.max_by_key(|(_, parts)| sum(parts))?;
    let on = |part: &Part| match &*part.host {
        "" => String::new(),
        host => format!(" on {}", clean(host, unicode)),
    };
    let named = |(part, ns): &(&Part, u64)| {
        (
            format!("{} of step {}{}", clean(&part.task, unicode), clean(step, unicode), on(part)),
            *ns,
        )
    };
    of("task", parts.iter().map(named).collect())
}

/// The tasks that are a user's.
fn tasks(whole: &Whole) -> impl Iterator<Item = &Part> {
    let parts = whole.record.totals.parts.listed.iter();
    parts.filter(|part| part.is_task())
}

fn of(what: &'static str, known: Vec<(String, u64)>) -> Option<Balance> {
    let sum = known.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    let parts = known.len() as u64;
    let (busiest, most_ns) = known.into_iter().rev().max_by_key(|(_, ns)| *ns)?;
    (parts > 1).then(|| Balance { what, parts, busiest, most_ns, mean_ns: sum / parts })
}

/// Parts that differ by less are equal.
const EQUAL: f64 = 0.005;

/// `balance 93 %: node n0007 computed most`.
pub(super) fn in_words(balance: &Balance) -> Option<String> {
    let even = percent(1.0 - balance.beyond());
    // Of equals none is named.
    let most = match balance.beyond() < EQUAL {
        true => String::new(),
        false => format!("; most: {} {}", balance.what, balance.busiest),
    };
    (balance.most_ns > 0).then(|| {
        format!(
            "balance {even} (mean of the {} {}s' time on CPU by the largest){most}",
            balance.parts, balance.what
        )
    })
}
