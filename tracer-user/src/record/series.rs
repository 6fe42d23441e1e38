//! What a timeline tells: its series, each with its place among a job's values.

use tracer_ebpf::{
    handle::{Handle, Number},
    table::{Kind, Measurement, Unit},
};

use crate::model::{
    group::Group,
    held::used_bytes,
    tables::{BLOCK, Block, GPU, Gpu, MEMORY, Memory, NET, Net, SCHED, Sched},
};

/// What is told over time: one value a column.
#[derive(Debug)]
pub struct Series {
    /// Public name: never renamed.
    pub name: &'static str,
    /// [`Kind::Counter`], which adds up over columns and nodes, or [`Kind::Peak`], of which the largest stands.
    pub kind: Kind,
    /// Unit of the values.
    pub unit: Unit,
    /// One sentence for docs/RECORD.md.
    pub help: &'static str,
    /// Its value in an interval of a job's; `None` where that is unknown.
    of: fn(&[Group]) -> Option<u64>,
}

impl Series {
    /// Its value in an interval in which the job did `groups`, after all that it did `before`; `None` where that is
    /// unknown. Memory of which only the charge was read is what it was when it was read last.
    pub fn value(&self, groups: &[Group], before: &[Group]) -> Option<u64> {
        let is_charged = || {
            let memory = groups.iter().find(|group| group.is(&MEMORY));
            memory.is_some_and(|memory| memory.number(Memory::current_bytes).is_some())
        };
        let held = || (self.name == MEMORY_BYTES && is_charged()).then(|| (self.of)(before))?;
        (self.of)(groups).or_else(held)
    }
}

const MEMORY_BYTES: &str = "memory_bytes";

/// How many there are.
pub const WIDTH: usize = SERIES.len();

/// All of them, in the order of their output.
pub static SERIES: [Series; 9] = [
    Series {
        name: "on_cpu_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks on a CPU: divided by the width, cores in use.",
        of: |groups| sum(groups, Sched::on_cpu_ns),
    },
    Series {
        name: "run_queue_wait_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks waiting for a CPU.",
        of: |groups| total(groups, &SCHED, |group| Some(group.hist(Sched::run_queue_wait_ns)?.sum)),
    },
    Series {
        name: "blocked_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks blocked.",
        of: |groups| total(groups, &SCHED, |group| Some(group.hist(Sched::blocked_ns)?.sum)),
    },
    Series {
        name: MEMORY_BYTES,
        kind: Kind::Peak,
        unit: Unit::Bytes,
        help: "Most anonymous and shared memory of any reading, without the page cache.",
        of: |groups| total(groups, &MEMORY, used_bytes),
    },
    Series {
        name: "disk_read_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Read from local disks.",
        of: |groups| disk(groups, "read"),
    },
    Series {
        name: "disk_written_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Written to local disks.",
        of: |groups| disk(groups, "write"),
    },
    Series {
        name: "net_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Sent and received through sockets.",
        of: |groups| {
            total(groups, &NET, |group| {
                Some(
                    group
                        .number(Net::sent_bytes)?
                        .saturating_add(group.number(Net::received_bytes)?),
                )
            })
        },
    },
    Series {
        name: "gpu_busy_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time in which a kernel ran on the job's GPUs, all added up.",
        of: |groups| sum(groups, Gpu::busy_ns),
    },
    Series {
        name: "gpu_memory_bytes",
        kind: Kind::Peak,
        unit: Unit::Bytes,
        help: "Most device memory in use at the end of any interval, all of the job's GPUs together.",
        of: |groups| total(groups, &GPU, |group| group.number(Gpu::memory_used_bytes)),
    },
];

fn disk(groups: &[Group], op: &str) -> Option<u64> {
    let is_known = groups.iter().any(|group| group.is(&BLOCK));
    let bytes = |group: &Group| {
        if group.tags[1] == op { group.number(Block::bytes) } else { is_known.then_some(0) }
    };
    total(groups, &BLOCK, bytes)
}

fn sum(groups: &[Group], field: Handle<Number>) -> Option<u64> {
    total(groups, field.measurement(), |group| group.number(field))
}

/// The sum of `value` over the groups of `measurement`; `None` where none of them knows it.
fn total(
    groups: &[Group],
    measurement: &'static Measurement,
    value: impl Fn(&Group) -> Option<u64>,
) -> Option<u64> {
    let values = groups.iter().filter(|group| group.is(measurement)).filter_map(value);
    values.reduce(u64::saturating_add)
}
