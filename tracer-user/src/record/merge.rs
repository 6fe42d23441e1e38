//! Several records of one job as one: those of its nodes, and of each node those of the times in which it was
//! counted.

use std::collections::BTreeMap;

use super::{Record, timeline::Timeline};
use crate::model::{
    group::{follow_all, merge_all},
    info::{Exit, Facts},
    tables::{Fact, fact},
    totals::{Peaks, RunTotals},
};

/// All of `records`, which are of one job, in one, whatever their order; `None` without any. A record that is
/// there twice counts once, and of two states of one the later.
///
/// On one node a later part of the job follows an earlier one; over nodes counters and states add up, and of peaks
/// the largest stands. Elapsed is the longest of the nodes' times.
pub fn merge(records: Vec<Record>) -> Option<Record> {
    // Parts by what tells them apart: the node, and from when on it counted.
    let mut parts = BTreeMap::<_, Record>::new();
    for record in records {
        let key = (record.hosts.clone(), record.timeline.begin_ns());
        match parts.get(&key) {
            Some(known) if age(known) >= age(&record) => {}
            _ => drop(parts.insert(key, record)),
        }
    }
    let mut nodes: Vec<Record> = Vec::new();
    for record in parts.into_values() {
        match nodes.last_mut().filter(|node| node.hosts == record.hosts) {
            Some(node) => join_later(node, record),
            None => nodes.push(record),
        }
    }
    let mut nodes = nodes.into_iter();
    let mut whole = nodes.next()?;
    nodes.for_each(|node| join_node(&mut whole, node));
    Some(whole)
}

const FROM: &Fact = fact("counted_from");
const END: &Fact = fact("end");

/// What grows with each state of one record.
fn age(record: &Record) -> (u64, bool, u64) {
    (record.timeline.end_ns(), record.facts.has(END), record.totals.intervals)
}

/// A later part of the job on the same node: the job has ended when that has.
fn join_later(whole: &mut Record, later: Record) {
    let end = later.facts.number(END);
    join(whole, later, follow);
    whole.facts.set(END, end);
}

/// Another node: the job has ended when both have.
fn join_node(whole: &mut Record, other: Record) {
    let ends = whole.facts.number(END).zip(other.facts.number(END));
    join(whole, other, beside);
    whole.facts.set(END, ends.map(|(one, other)| one.max(other)));
}

/// Adds `more` to `whole`, its values by `values`.
fn join(whole: &mut Record, more: Record, values: fn(&mut RunTotals, &RunTotals)) {
    let hosts = more.hosts.into_iter().filter(|host| !whole.hosts.contains(host));
    whole.hosts.extend(hosts.collect::<Vec<_>>());
    whole.timeline =
        Timeline::merge(&[&whole.timeline, &more.timeline]).expect("two timelines are some");
    let (totals, of_more) = (&mut whole.totals, &more.totals);
    values(totals, of_more);
    totals.intervals = totals.intervals.saturating_add(of_more.intervals);
    totals.exit = worse(totals.exit, of_more.exit);
    for (texts, more) in
        [(&mut totals.notes, &of_more.notes), (&mut totals.unknown, &of_more.unknown)]
    {
        let fresh: Vec<_> = more.iter().filter(|text| !texts.contains(text)).cloned().collect();
        texts.extend(fresh);
    }
    join_facts(whole, &more.facts);
}

/// What one of them knows is known. The whole began when its first part did.
fn join_facts(whole: &mut Record, more: &Facts) {
    let of_whole = whole.facts.clone();
    whole.facts = more.clone();
    whole.facts.extend(&of_whole);
    let both = |fact| of_whole.number(fact).zip(more.number(fact));
    for (fact, pick) in [
        (const { fact("start") }, u64::min as fn(u64, u64) -> u64),
        (FROM, u64::min),
        (const { fact("exit") }, u64::max),
    ] {
        if let Some((one, other)) = both(fact) {
            whole.facts.set(fact, pick(one, other));
        }
    }
}

/// A later part of the same node.
fn follow(totals: &mut RunTotals, later: &RunTotals) {
    totals.elapsed_ns = totals.elapsed_ns.saturating_add(later.elapsed_ns);
    follow_all(&mut totals.stats.groups, &later.stats.groups);
    follow_all(&mut totals.own, &later.own);
    totals.peaks = Peaks {
        millicores: totals.peaks.millicores.max(later.peaks.millicores),
        disk_bytes_per_s: totals.peaks.disk_bytes_per_s.max(later.peaks.disk_bytes_per_s),
    };
}

/// Another node.
fn beside(totals: &mut RunTotals, other: &RunTotals) {
    totals.elapsed_ns = totals.elapsed_ns.max(other.elapsed_ns);
    merge_all(&mut totals.stats.groups, &other.stats.groups);
    merge_all(&mut totals.own, &other.own);
    // Each node's busiest moment was its own: their sum is no less than any moment's of all.
    totals.peaks = Peaks {
        millicores: totals.peaks.millicores.saturating_add(other.peaks.millicores),
        disk_bytes_per_s: totals
            .peaks
            .disk_bytes_per_s
            .saturating_add(other.peaks.disk_bytes_per_s),
    };
}

/// Of two ends the one that failed.
fn worse(one: Option<Exit>, other: Option<Exit>) -> Option<Exit> {
    one.into_iter().chain(other).max_by_key(|exit| exit.status())
}
