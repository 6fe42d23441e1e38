//! The table of `job_info`: what is told of a job besides its values, and how its totals are named there.

use tracer_ebpf::{
    table::{
        Field, Kind, Measurement,
        Unit::{self, Bytes, Count, Nanoseconds},
    },
    tables::{block::OPS, net::FAMILIES},
};

/// Name of the measurement.
pub const JOB_INFO: &str = "job_info";

/// One field of `job_info`. Made in this table alone: what has no row cannot be written.
#[derive(Debug)]
pub struct Fact {
    /// Public name: never renamed.
    pub name: &'static str,
    /// Unit of a number; a text has none.
    pub unit: Option<Unit>,
    /// One sentence for the reader of docs/METRICS.md: meaning and source.
    pub help: &'static str,
}

/// All facts, in the order of their output.
pub const FACTS: &[Fact] = &[
    text(
        "name",
        "Name of the job from its scheduler's environment; for `jobtrace run` from --name, else the command's name.",
    ),
    number("uid", Count, "User id of its owner."),
    text("command", "The command with its arguments (run)."),
    number(
        "submitted",
        Nanoseconds,
        "Submission, since the Unix epoch, if it can be known on the node: from Slurm's SLUID (26.05 and later) or the name of LSF's job file. Absent if a clock shows it after the start (agent).",
    ),
    number("start", Nanoseconds, "Start, since the Unix epoch."),
    number(
        "counted_from",
        Nanoseconds,
        "Time from which its values are counted, since the Unix epoch, if that is later than its start: the job was there before the agent, or waited for a slot (agent).",
    ),
    number(
        "end",
        Nanoseconds,
        "End, since the Unix epoch; present once it has ended. If no agent was running at its end: when the next one found it gone.",
    ),
    number(
        "exit",
        Count,
        "Exit status as a shell shows it (128 + number for a signal); present once it has ended (run).",
    ),
    text("account", "Account or project; for a pod, its namespace (agent)."),
    text("partition", "Partition or queue (agent)."),
    text("nodes", "Its nodes, in the scheduler's notation (agent)."),
    number("node_count", Count, "Number of its nodes (agent)."),
    number("task_count", Count, "Number of tasks that its scheduler starts, on all nodes (agent)."),
    text("array_job", "The job array it belongs to (agent)."),
    text("array_task", "Its index in the array (agent)."),
    text(
        "gpus_held",
        "GPUs allocated on this node, as the scheduler's environment lists them: numbers, ranges, UUIDs (agent).",
    ),
    number("gpu_count", Count, "Number of these GPUs (agent)."),
    number("core_count", Count, "Number of cores allocated on this node (agent)."),
    number("memory_per_node_bytes", Bytes, "Memory requested on each node (agent)."),
    number("memory_per_core_bytes", Bytes, "Memory requested per core (agent)."),
    number("memory_per_gpu_bytes", Bytes, "Memory requested per GPU (agent)."),
    number(
        "restarts",
        Count,
        "How often its scheduler has started it anew, after a requeue or a failure (agent).",
    ),
    text(
        "end_reason",
        "Why it ended, if its values show it: `out_of_memory` (it ended within 5 s of the interval in which a process was killed for lack of memory) or `time_limit` (it ended at its limit or up to 90 s later) (agent).",
    ),
    number("node_cores", Count, "CPUs of the node (agent)."),
    number("node_memory_bytes", Bytes, "Memory of the node (agent)."),
    number(
        "time_limit_end",
        Nanoseconds,
        "When its time limit expires, since the Unix epoch (agent).",
    ),
    number("time_limit_ns", Nanoseconds, "Run time that its scheduler allows it (agent)."),
    text(
        "sluid",
        "Slurm's unique, lasting id of the job, if the cgroup's path contains it (agent).",
    ),
    text(
        "container",
        "First 12 digits of the container's id, if the cgroup's path contains it (agent).",
    ),
    text(
        "qos",
        "Quality of service: of a pod `guaranteed`, `burstable` or `besteffort`; else the scheduler's (agent).",
    ),
    text("runtime", "Runtime of a pod's container: `containerd`, `crio` or `docker` (agent)."),
];

const fn text(name: &'static str, help: &'static str) -> Fact {
    Fact { name, unit: None, help }
}

const fn number(name: &'static str, unit: Unit, help: &'static str) -> Fact {
    Fact { name, unit: Some(unit), help }
}

/// The row of `name`. Called in a `const` block, so that a field without a row stops the build.
pub const fn fact(name: &str) -> &'static Fact {
    let mut row = 0;
    while row < FACTS.len() {
        if is_same(FACTS[row].name.as_bytes(), name.as_bytes()) {
            return &FACTS[row];
        }
        row += 1;
    }
    panic!("job_info has no such row")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// The name of a total in `job_info`: of all devices of a job together, of block I/O by its operation, of the
/// network by its family, the measurement's `last_tag`. Of a histogram it is the sum.
pub fn total_name(measurement: &Measurement, last_tag: Option<&str>, field: &Field) -> String {
    let prefix = match last_tag {
        Some(part) if !total_parts(measurement).is_empty() => {
            format!("{}_{part}", measurement.key)
        }
        _ => measurement.key.to_owned(),
    };
    let part = if field.kind == Kind::Histogram { "_sum" } else { "" };
    format!("{prefix}_{}{part}", field.name)
}

/// What a measurement's totals are kept apart by: its operations or families.
pub fn total_parts(measurement: &Measurement) -> &'static [&'static str] {
    match measurement.key {
        "block" => &OPS,
        "net" => &FAMILIES,
        _ => &[],
    }
}
