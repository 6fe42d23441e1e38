//! The answer: the record of the time in which file operations were counted. Pure. What was not counted then is
//! unknown, and not zero.

use std::collections::BTreeMap;

use tracer_ebpf::table::Measurement;

use super::Counted;
use crate::{
    model::{
        gaps::Gaps,
        group::{Group, merge_all, since_all},
        lease::Lease,
        tables::{BLOCK, CPU, FAULT, GPU, MEMORY, NET, SCHED, Sched, WAIT, XID, fact},
        totals::RunTotals,
    },
    record::{Record, timeline::Timeline},
};

/// What nobody asks for at the ends of that time.
const NOT_ASKED: [&Measurement; 6] = [&BLOCK, &WAIT, &MEMORY, &CPU, &GPU, &XID];
/// What the slots tell.
const OF_SLOTS: [&Measurement; 3] = [&SCHED, &FAULT, &NET];
/// What they tell of all the time since the job has been counted, and of no part of it.
const OF_ALL_TIME: [tracer_ebpf::handle::Handle<tracer_ebpf::handle::Number>; 2] =
    [Sched::cpus_used, Sched::busiest_cpu_ns];

/// What a job has used at a moment, besides files.
#[derive(Debug, Default)]
pub struct Used {
    /// That moment, nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// The same by CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// What its leases counted, cumulative; `None` where that is not known.
    pub slots: Option<BTreeMap<Lease, Vec<Group>>>,
    /// When the job or step of each lease was seen first, CLOCK_MONOTONIC.
    pub since_ns: BTreeMap<Lease, u64>,
    /// When something of it could not be counted.
    pub gaps: Gaps,
    /// When it ended, CLOCK_MONOTONIC; `None`: it runs, or is forgotten.
    pub ended_ns: Option<u64>,
}

/// The record of the time that was `counted`, with what came between `before` and `after`, of a job of which `so_far`
/// was known.
pub fn whole(so_far: Record, before: &Used, after: &Used, counted: Counted) -> Record {
    let Counted { from_ns, until_ns, has_ended, groups: io, files, notes } = counted;
    let wall_ns = |ns: u64| after.wall_ns.saturating_sub(after.monotonic_ns.saturating_sub(ns));
    let ended_ns = after.ended_ns.or(has_ended.then_some(until_ns));
    let until_ns = ended_ns.map_or(until_ns, |ended_ns| ended_ns.min(until_ns)).max(from_ns);
    let spent = between(before, after);
    let mut lacking = Vec::from(NOT_ASKED);
    lacking.extend(OF_SLOTS.iter().filter(|_| spent.is_none()));
    let mut record = Record {
        totals: RunTotals::new(so_far.job().clone(), so_far.totals.info.clone()),
        timeline: Timeline::new(wall_ns(from_ns)),
        ..so_far
    };
    let totals = &mut record.totals;
    totals.unknown = so_far.totals.unknown;
    totals.unknown.extend(lacking.iter().map(|table| table.key.to_owned()));
    totals.unknown.extend(OF_ALL_TIME.iter().map(|field| field.field().name.to_owned()));
    totals.gaps = after.gaps.since(wall_ns(from_ns));
    (totals.files, totals.notes) = (files, notes);
    record.facts.set(const { fact("counted_from") }, wall_ns(from_ns));
    record.facts.set(const { fact("end") }, ended_ns.map(wall_ns));
    let groups = [spent.unwrap_or_default(), io].concat();
    record.add(until_ns - from_ns, &groups, &[]);
    record.totals.forget_known();
    record
}

/// What all leases counted between two moments; `None` where that is not known at both.
fn between(before: &Used, after: &Used) -> Option<Vec<Group>> {
    let (older, newer) = before.slots.as_ref().zip(after.slots.as_ref())?;
    let mut groups = Vec::new();
    for (lease, now) in newer {
        let since_ns = after.since_ns.get(lease);
        let then = match older.get(lease) {
            Some(then) => &then[..],
            None if since_ns.is_some_and(|since_ns| *since_ns >= before.monotonic_ns) => &[],
            // It may have counted for hours, of which this time is an unknown part.
            None => return None,
        };
        merge_all(&mut groups, &since_all(now, then));
    }
    for group in groups.iter_mut().filter(|group| group.is(&SCHED)) {
        OF_ALL_TIME.iter().for_each(|field| group.set(*field, None));
    }
    (!groups.is_empty()).then_some(groups)
}

#[cfg(test)]
mod tests;
