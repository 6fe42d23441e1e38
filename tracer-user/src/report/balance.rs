//! How evenly the parts of a job computed.

use super::whole::{Whole, number};
use crate::{
    base::{text::clean, units::percent},
    model::tables::Sched,
    record::Record,
    view::facts::{Balance, Facts},
};

/// Over its nodes, where there are several of which that is known.
pub(super) fn of_nodes(whole: &Whole, unicode: bool) -> Option<Balance> {
    let on_cpu = |node: &Record| number(node, Sched::on_cpu_ns);
    let known: Vec<_> =
        whole.nodes.iter().filter_map(|node| Some((node.hosts.first()?, on_cpu(node)?))).collect();
    let sum = known.iter().fold(0, |sum: u64, (_, ns)| sum.saturating_add(*ns));
    let (busiest, most_ns) = *known.iter().max_by_key(|(_, ns)| *ns)?;
    (known.len() > 1).then(|| Balance {
        what: "node",
        parts: known.len() as u64,
        busiest: clean(busiest, unicode),
        most_ns,
        mean_ns: sum / known.len() as u64,
    })
}

/// `balance 93 %: node n0007 computed most`.
pub(super) fn in_words(facts: &Facts) -> Option<String> {
    let balance = facts.balance.as_ref().filter(|balance| balance.most_ns > 0)?;
    let even = percent(1.0 - balance.beyond());
    Some(format!(
        "balance {even} (mean of the {} {}s' time on CPU by the largest); most: {} {}",
        balance.parts, balance.what, balance.what, balance.busiest
    ))
}
