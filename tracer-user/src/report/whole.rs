//! All records of a job: by node, and as one.

use std::collections::BTreeMap;

use tracer_ebpf::handle::{Handle, Number};

use crate::{
    model::tables::{CPU, Cpu, MEMORY, Memory},
    record::{Record, merge},
    scheduler::Told,
};

/// A job on all its nodes.
#[derive(Debug)]
pub struct Whole {
    /// All of it: what adds up is added up; cores held are those of all nodes, memory and its limit those of the
    /// fullest node.
    pub record: Record,
    /// Each node of it, by name.
    pub nodes: Vec<Record>,
    /// What its scheduler tells of it, if it was asked: in the facts of `record` too, where these lacked it.
    pub told: Option<Told>,
    /// What differs between the two.
    pub(super) said: Vec<String>,
}

impl Whole {
    /// The job that `records` are of; `None` without any.
    pub fn of(records: Vec<Record>) -> Option<Self> {
        let mut by_host = BTreeMap::<Vec<String>, Vec<Record>>::new();
        for record in records {
            by_host.entry(record.hosts.clone()).or_default().push(record);
        }
        let nodes: Vec<Record> = by_host.into_values().filter_map(merge).collect();
        let mut record = merge(nodes.clone())?;
        let cores = nodes.iter().filter_map(|node| number(node, Cpu::cores_held));
        let cores = cores.reduce(u64::saturating_add);
        let fullest = nodes.iter().max_by(|a, b| {
            let (a, b) = (fullness(a), fullness(b));
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        })?;
        for group in &mut record.totals.stats.groups {
            if group.is(&CPU) {
                group.set(Cpu::cores_held, cores);
            }
            if group.is(&MEMORY) {
                group.set(Memory::limit_bytes, number(fullest, Memory::limit_bytes));
                group.set(Memory::peak_bytes, number(fullest, Memory::peak_bytes));
                group.set(Memory::cache_peak_bytes, number(fullest, Memory::cache_peak_bytes));
            }
        }
        Some(Self { record, nodes, told: None, said: Vec::new() })
    }
}

/// A number of a measurement without tags.
pub(super) fn number(record: &Record, field: Handle<Number>) -> Option<u64> {
    record.totals.stats.group(field.measurement())?.number(field)
}

/// How near its memory is to its limit; what has no limit is never full, and of such nodes it is how much it was.
fn fullness(node: &Record) -> (f64, u64) {
    let peak = number(node, Memory::peak_bytes).unwrap_or(0);
    let limit = number(node, Memory::limit_bytes).map_or(f64::INFINITY, |limit| limit as f64);
    (peak as f64 / limit, peak)
}
