//! The job's nodes beside each other.

use serde::Serialize;

use super::whole::{Whole, number};
use crate::{
    base::text::clean,
    model::tables::{Cpu, GPU, Gpu, Sched},
    record::Record,
};

/// What one node did.
#[derive(Debug, Serialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Time on CPU, ns.
    pub on_cpu_ns: Option<u64>,
    /// The same as a share of the core time held.
    pub cores_share: Option<f64>,
    /// Time blocked, ns.
    pub blocked_ns: Option<u64>,
    /// Memory needed at its peak, without the file cache.
    pub memory_bytes: Option<u64>,
    /// How busy its GPUs were.
    pub gpu_share: Option<f64>,
    /// Time for which it was counted, ns.
    pub elapsed_ns: u64,
}

/// All of them, the busiest first; nothing of a job on one node.
pub(super) fn nodes(whole: &Whole, unicode: bool) -> Vec<Node> {
    if whole.nodes.len() < 2 {
        return Vec::new();
    }
    let mut nodes: Vec<_> = whole.nodes.iter().map(|node| of(node, unicode)).collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(node.on_cpu_ns));
    nodes
}

fn of(node: &Record, unicode: bool) -> Node {
    let on_cpu_ns = number(node, Sched::on_cpu_ns);
    let held_ns = number(node, Cpu::held_ns).filter(|ns| *ns > 0);
    let sched = node.totals.stats.group(Sched::blocked_ns.measurement());
    let gpus = |field| {
        let numbers = node.totals.stats.groups(&GPU).filter_map(|gpu| gpu.number(field));
        numbers.reduce(u64::saturating_add)
    };
    let gpu_held_ns = gpus(Gpu::held_ns).filter(|ns| *ns > 0);
    Node {
        name: node.hosts.first().map_or_else(String::new, |host| clean(host, unicode)),
        on_cpu_ns,
        cores_share: on_cpu_ns.zip(held_ns).map(|(used, held)| used as f64 / held as f64),
        blocked_ns: sched.and_then(|group| Some(group.hist(Sched::blocked_ns)?.sum)),
        memory_bytes: node.memory_needed().map(|needed| needed.least_bytes),
        gpu_share: gpus(Gpu::busy_ns)
            .zip(gpu_held_ns)
            .map(|(busy, held)| busy as f64 / held as f64),
        elapsed_ns: node.totals.elapsed_ns,
    }
}
