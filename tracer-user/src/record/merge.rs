//! Several records of one job as one: those of its nodes, and of each node those of the times in which it was
//! counted.

use std::collections::BTreeMap;

use tracer_ebpf::handle::{Handle, Number};

use super::{Record, document::document, peaks::at_once, timeline::Timeline};
use crate::model::{
    gaps::NO_AGENT,
    group::{follow_all, merge_all},
    held::{core_time_ns, most_at_a_moment},
    info::{Exit, Facts, JobInfo},
    software::Software,
    tables::{CPU, Cpu, Fact, MEMORY, Memory, fact},
    totals::{Peaks, RunTotals},
};

/// All of `records`, which are of one job, in one, whatever their order; `None` without any. A record that is
/// there twice counts once, and of two states of one the later.
///
/// On one node a later part of the job follows an earlier one, and its facts stand but the begin; over nodes, and over
/// steps, counters and states add up, and a peak is the most that all can have had at once. Elapsed is the longest of the nodes' times. Steps
/// of one node share what the job may use there.
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
    let is_of_node = |one: &Record, other: &Record| one.hosts == other.hosts;
    let is_of_step =
        |one: &Record, other: &Record| is_of_node(one, other) && one.job().step == other.job().step;
    let steps = joined(parts.into_values().collect(), is_of_step, join_later);
    let peaks: Vec<_> = steps.chunk_by(is_of_node).map(peaks_of_steps).collect();
    let mut nodes = joined(steps, is_of_node, |whole, step| join_beside(whole, step, steps_beside));
    nodes.iter_mut().zip(peaks).for_each(|(node, peaks)| node.totals.peaks = peaks);
    let peaks = at_once(&nodes);
    let mut whole =
        joined(nodes, |_, _| true, |whole, node| join_beside(whole, node, add_up)).pop()?;
    whole.totals.peaks = peaks;
    Some(whole)
}

/// `records` in which those that follow each other and are `alike` are one.
fn joined(
    records: Vec<Record>,
    alike: impl Fn(&Record, &Record) -> bool,
    join: impl Fn(&mut Record, Record),
) -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    for record in records {
        match all.last_mut().filter(|whole| alike(whole, &record)) {
            Some(whole) => join(whole, record),
            None => all.push(record),
        }
    }
    all
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
fn join_beside(whole: &mut Record, other: Record, values: fn(&mut RunTotals, &RunTotals)) {
    let mut other = other;
    name_parts(whole);
    name_parts(&mut other);
    let (of_whole, of_other) = (whole.facts.clone(), other.facts.clone());
    let exit = worse(whole.totals.exit, other.totals.exit);
    if whole.job().step != other.job().step {
        whole.totals.stats.job.step.clear();
    }
    join(whole, other, values);
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

/// Says of the parts of one node's record, and of what it lists of its operations on files, where they are.
fn name_parts(record: &mut Record) {
    let [host] = &record.hosts[..] else { return };
    for part in record.totals.parts.listed.iter_mut().filter(|part| part.host.is_empty()) {
        part.host.clone_from(host);
    }
    record.totals.files.name_host(host);
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
    totals.files.merge(&of_more.files);
    Software::merge_known(&mut totals.software, of_more.software.as_ref());
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

/// Another step on the same node.
fn steps_beside(totals: &mut RunTotals, other: &RunTotals) {
    let most = |table, of: Handle<Number>| {
        let allowed = [&*totals, other].map(|totals| totals.stats.group(table)?.number(of));
        allowed.into_iter().flatten().max()
    };
    let (bytes, cores) = (most(&MEMORY, Memory::limit_bytes), most(&CPU, Cpu::cores_held));
    add_up(totals, other);
    for group in &mut totals.stats.groups {
        if group.is(&MEMORY) {
            group.set(Memory::limit_bytes, bytes);
        } else if group.is(&CPU) {
            group.set(Cpu::cores_held, cores);
            // Each held them all.
            let most_ns = cores.map(|cores| core_time_ns(cores, totals.elapsed_ns));
            let held_ns = group.number(Cpu::held_ns).map(|ns| ns.min(most_ns.unwrap_or(ns)));
            group.set(Cpu::held_ns, held_ns);
        }
    }
}

/// What counted at the same time, but for the peaks.
fn add_up(totals: &mut RunTotals, other: &RunTotals) {
    totals.elapsed_ns = totals.elapsed_ns.max(other.elapsed_ns);
    merge_all(&mut totals.stats.groups, &other.stats.groups);
    merge_all(&mut totals.own, &other.own);
}

/// The peaks of a node on which `steps` ran, which share the cores allowed.
fn peaks_of_steps(steps: &[Record]) -> Peaks {
    let peaks = at_once(steps);
    let cpus = steps.iter().filter_map(|step| step.totals.stats.group(&CPU));
    let cores = cpus.filter_map(|cpu| cpu.number(Cpu::cores_held)).max();
    // Of one alone what was read stands.
    let alone = steps.iter().map(|step| step.totals.peaks.millicores).max();
    let most = cores.map_or(u64::MAX, most_at_a_moment).max(alone.unwrap_or(0));
    Peaks { millicores: peaks.millicores.min(most), ..peaks }
}

/// Of two ends the one that failed.
fn worse(one: Option<Exit>, other: Option<Exit>) -> Option<Exit> {
    one.into_iter().chain(other).max_by_key(|exit| exit.status())
}
