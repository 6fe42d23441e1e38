//! Several records of one job as one: those of its nodes, and of each node those of the times in which it was
//! counted.

use std::collections::BTreeMap;

use super::{Record, document::document, timeline::Timeline};
use crate::model::{
    gaps::NO_AGENT,
    group::{follow_all, merge_all},
    info::{Exit, Facts, JobInfo},
    tables::{Fact, fact},
    totals::{Peaks, RunTotals},
};

/// All of `records`, which are of one job, in one, whatever their order; `None` without any. A record that is
/// there twice counts once, and of two states of one the later.
///
/// On one node a later part of the job follows an earlier one, and its facts stand but the begin; over nodes, and over
/// steps, counters and states add up, and of peaks the largest stands. Elapsed is the longest of the nodes' times.
pub fn merge(records: Vec<Record>) -> Option<Record> {
    // Parts by what tells them apart: the node, the step, and from when on it counted.
    let mut parts = BTreeMap::<_, Record>::new();
    for record in records {
        let step = record.job().step.clone();
        let key = (record.hosts.clone(), step, record.timeline.begin_ns());
        match parts.get(&key) {
            Some(known) if is_later(known, &record) => {}
            _ => drop(parts.insert(key, record)),
        }
    }
    let mut nodes: Vec<Record> = Vec::new();
    for record in parts.into_values() {
        let is_same =
            |of: &&mut Record| of.hosts == record.hosts && of.job().step == record.job().step;
        match nodes.last_mut().filter(is_same) {
            Some(node) => join_later(node, record),
            None => nodes.push(record),
        }
    }
    let mut nodes = nodes.into_iter();
    let mut whole = nodes.next()?;
    nodes.for_each(|node| join_node(&mut whole, node));
    Some(whole)
}

const START: &Fact = fact("start");
const FROM: &Fact = fact("counted_from");
const END: &Fact = fact("end");
const EXIT: &Fact = fact("exit");
const REASON: &Fact = fact("end_reason");

/// What grows with each state of one record.
fn age(record: &Record) -> (u64, bool, u64) {
    (record.timeline.end_ns(), record.facts.has(END), record.totals.intervals)
}

/// Whether `one` is the later of two states of a record; of two that are as old the same one in any order.
fn is_later(one: &Record, other: &Record) -> bool {
    let text = |record| document(record).unwrap_or_default();
    age(one).cmp(&age(other)).then_with(|| text(one).cmp(&text(other))).is_ge()
}

/// A later part of the job on the same node: how it ended, if it has, is what that says.
fn join_later(whole: &mut Record, later: Record) {
    let (earlier, facts) = (whole.facts.clone(), later.facts.clone());
    let exit = later.totals.exit;
    if !earlier.has(END) {
        let until_ns = later.timeline.begin_ns();
        whole.totals.gaps.add(NO_AGENT, whole.timeline.end_ns(), until_ns);
    }
    join(whole, later, follow);
    whole.totals.exit = exit;
    for fact in [END, EXIT, REASON] {
        whole.facts.remove(fact);
    }
    whole.facts.extend(&facts);
    whole.facts.set(START, least(&earlier, &facts, START));
    whole.facts.set(FROM, earlier.number(FROM));
    tell_info(whole);
}

/// Another node, or another step: the job has ended when both have.
fn join_node(whole: &mut Record, other: Record) {
    let mut other = other;
    name_parts(whole);
    name_parts(&mut other);
    let (of_whole, of_other) = (whole.facts.clone(), other.facts.clone());
    let exit = worse(whole.totals.exit, other.totals.exit);
    if whole.job().step != other.job().step {
        whole.totals.stats.job.step.clear();
    }
    join(whole, other, beside);
    whole.totals.exit = exit;
    let facts = &mut whole.facts;
    facts.clone_from(&of_other);
    facts.extend(&of_whole);
    for fact in [START, FROM] {
        facts.set(fact, least(&of_whole, &of_other, fact));
    }
    facts.set(EXIT, of_whole.number(EXIT).max(of_other.number(EXIT)));
    let ends = of_whole.number(END).zip(of_other.number(END));
    facts.set(END, ends.map(|(one, other)| one.max(other)));
    if ends.is_none() {
        facts.remove(REASON);
    }
    tell_info(whole);
}

/// Says of the parts of one node's record where they are.
fn name_parts(record: &mut Record) {
    let [host] = &record.hosts[..] else { return };
    for part in record.totals.parts.listed.iter_mut().filter(|part| part.host.is_empty()) {
        part.host.clone_from(host);
    }
}

/// The lesser number, where both or one of them know it.
fn least(one: &Facts, other: &Facts, fact: &'static Fact) -> Option<u64> {
    one.number(fact).into_iter().chain(other.number(fact)).min()
}

/// What the summary is headed by is what the facts say.
fn tell_info(whole: &mut Record) {
    let user = std::mem::take(&mut whole.totals.info.user);
    whole.totals.info = JobInfo { user, ..JobInfo::from(&whole.facts) };
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
    totals.gaps.merge(&of_more.gaps);
    totals.parts.merge(&of_more.parts);
    for (texts, more) in
        [(&mut totals.notes, &of_more.notes), (&mut totals.unknown, &of_more.unknown)]
    {
        let fresh: Vec<_> = more.iter().filter(|text| !texts.contains(text)).cloned().collect();
        texts.extend(fresh);
    }
}

/// A later part of the same node.
fn follow(totals: &mut RunTotals, later: &RunTotals) {
    totals.elapsed_ns = totals.elapsed_ns.saturating_add(later.elapsed_ns);
    follow_all(&mut totals.stats.groups, &later.stats.groups);
    follow_all(&mut totals.own, &later.own);
    totals.peaks.merge(&later.peaks);
}

/// Another node.
fn beside(totals: &mut RunTotals, other: &RunTotals) {
    totals.elapsed_ns = totals.elapsed_ns.max(other.elapsed_ns);
    merge_all(&mut totals.stats.groups, &other.stats.groups);
    merge_all(&mut totals.own, &other.own);
    // Each node's busiest moment was its own: their sum is no less than any moment's of all, and no one moment's.
    let sum = |of: fn(&Peaks) -> u64| of(&totals.peaks).saturating_add(of(&other.peaks));
    totals.peaks = Peaks {
        millicores: sum(|peaks| peaks.millicores),
        disk_bytes_per_s: sum(|peaks| peaks.disk_bytes_per_s),
        ..Peaks::default()
    };
}

/// Of two ends the one that failed.
fn worse(one: Option<Exit>, other: Option<Exit>) -> Option<Exit> {
    one.into_iter().chain(other).max_by_key(|exit| exit.status())
}
