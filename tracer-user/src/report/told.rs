//! What a job's scheduler tells beside its record: what the record lacks is taken over, what both know and tell
//! differently is said. The record wins where it is exact, which its times and kills are.

use super::{Whole, identity::SUBMITTED, moment};
use crate::{
    base::{
        text::clean,
        units::{bytes, cores as cores_shown, count, counted, long_duration},
    },
    model::{
        end_reason::EndReason,
        tables::{Cpu, Fact, fact},
    },
    record::Record,
    scheduler::Told,
};

/// Times nearer to each other are the same: what comes before and after the job is in one of them.
const SAME_NS: u64 = 10_000_000_000;

const START: &Fact = fact("start");
const END: &Fact = fact("end");
const REASON: &Fact = fact("end_reason");

impl Whole {
    /// Takes over what its scheduler tells.
    pub fn tell(&mut self, told: Told) {
        let mut said = Vec::new();
        let record = &mut self.record;
        let nodes = told.nodes.unwrap_or(record.hosts.len() as u64).max(1);
        let gpus_per_node = told.gpus.map(|gpus| gpus.div_ceil(nodes));
        for (row, told, show) in [
            (const { fact("node_count") }, told.nodes, count as fn(u64) -> String),
            (const { fact("gpu_count") }, gpus_per_node, count),
            (const { fact("memory_per_node_bytes") }, told.memory_per_node_bytes, bytes),
        ] {
            said.extend(number(record, row, told, show));
        }
        if record.facts.number(const { fact("time_limit_end") }).is_none() {
            let row = const { fact("time_limit_ns") };
            said.extend(number(record, row, told.time_limit_ns, long_duration));
        }
        for (row, told) in [
            (const { fact("partition") }, &told.partition),
            (const { fact("account") }, &told.account),
            (const { fact("qos") }, &told.qos),
        ] {
            said.extend(text(record, row, told));
        }
        for (row, told) in [(SUBMITTED, told.submit), (START, told.start), (END, told.end)] {
            said.extend(time(record, row, told));
        }
        said.extend(cores(record, &told));
        said.extend(end(record, &told));
        let source = told.source;
        self.said.extend(said.into_iter().map(|what| format!("{source} says {what}")));
        self.told = Some(told);
    }

    /// Notes why its scheduler told nothing.
    pub fn not_told(&mut self, why: &str) {
        self.said.push(format!("what its scheduler knows of it is not known: {why}"));
    }
}

/// A number that both have; `None` where they agree.
fn number(
    record: &mut Record,
    row: &'static Fact,
    told: Option<u64>,
    show: fn(u64) -> String,
) -> Option<String> {
    let told = told?;
    match record.facts.number(row) {
        Some(known) if known == told => None,
        Some(known) => Some(format!("{} {}, the record {}", name_of(row), show(told), show(known))),
        None => {
            record.facts.set(row, told);
            None
        }
    }
}

/// `memory per node` of `memory_per_node_bytes`.
fn name_of(row: &Fact) -> String {
    let name = row.name.trim_end_matches("_bytes").trim_end_matches("_ns");
    name.replace('_', " ")
}

fn text(record: &mut Record, row: &'static Fact, told: &str) -> Option<String> {
    let known = record.facts.text(row).to_owned();
    if known.is_empty() {
        record.facts.set_text(row, told);
        return None;
    }
    (!told.is_empty() && told != known).then(|| format!("{} {told}, the record {known}", row.name))
}

fn time(record: &mut Record, row: &'static Fact, told: Option<u64>) -> Option<String> {
    let told = told?;
    match record.facts.number(row) {
        Some(known) if known.abs_diff(told) <= SAME_NS => None,
        Some(known) => {
            Some(format!("{} {}, the record {} UTC", row.name, moment(told), moment(known)))
        }
        None => {
            record.facts.set(row, told);
            None
        }
    }
}

/// Cores are measured, by what the job may run on: where that is more, nobody keeps it to what it was given.
fn cores(record: &Record, told: &Told) -> Option<String> {
    let held = record.totals.stats.group(Cpu::cores_held.measurement())?.number(Cpu::cores_held)?;
    let given = told.cores?;
    let has_all = told.nodes.is_none_or(|nodes| nodes == record.hosts.len() as u64);
    let is_other = has_all && given.checked_mul(1000) != Some(held);
    is_other
        .then(|| format!("{}, and the job may use {}", counted(given, "core"), cores_shown(held)))
}

/// Why it ended: a scheduler knows, the record infers it from its values but for kills, which it counted.
fn end(record: &mut Record, told: &Told) -> Option<String> {
    let reason = told.end_reason?;
    let known = record.facts.text(REASON).to_owned();
    if known == EndReason::OutOfMemory.word() {
        let is_same = matches!(reason, EndReason::OutOfMemory | EndReason::Itself);
        return (!is_same).then(|| format!("end_reason {}, the record {known}", reason.word()));
    }
    record.facts.remove(REASON);
    record.facts.set_text(REASON, reason.word());
    if reason == EndReason::Itself {
        record.totals.exit = record.totals.exit.or(told.exit);
    }
    None
}

/// What it was given, and how its scheduler calls its state.
pub(super) fn in_words(told: &Told, unicode: bool) -> String {
    let mut parts = Vec::new();
    let given = [
        told.cores.map(|cores| counted(cores, "core")),
        told.gpus.map(|gpus| counted(gpus, "GPU")),
        told.memory_per_node_bytes.map(|memory| format!("{} of memory a node", bytes(memory))),
        told.time_limit_ns.map(|limit| format!("at most {}", long_duration(limit))),
    ];
    let given: Vec<_> = given.into_iter().flatten().collect();
    if !given.is_empty() {
        parts.push(format!("given {}", given.join(", ")));
    }
    if !told.qos.is_empty() {
        parts.push(format!("QOS {}", clean(&told.qos, unicode)));
    }
    parts.push(format!("{} says {}", told.source, clean(&told.state, unicode)));
    parts.join("; ")
}
