//! All measurements, and the tables of those that the agent reads itself.

mod facts;
mod gpu;
mod node;
mod own;
mod software;

pub use tracer_ebpf::tables::{
    block::{BLOCK, Block},
    fault::{FAULT, Fault},
    io::{IO, IO_ERROR, Io, IoError},
    job::{SCHED, Sched},
    net::{NET, Net},
    wait::{WAIT, Wait},
};
use tracer_ebpf::{
    measurement,
    table::{Field, Kind, Measurement, Place, Unit},
};

pub use self::{
    facts::{FACTS, Fact, JOB_INFO, fact, total_name, total_parts},
    gpu::{GPU, Gpu, XID, Xid},
    node::{NODE_MOUNT, NODE_NET, NodeMount, NodeNet},
    own::{Own, SELF},
    software::{JOB_SOFTWARE, SOFTWARE_FIELDS, SoftwareField},
};

measurement! {
    /// `job_memory`: the memory controller's view, and pressure stall times.
    MEMORY, Memory = "job_memory", key "memory", tags [],
        "Memory of the job's cgroup, and the time its tasks were stalled (PSI) if the kernel measures it. The agent reads anonymous, file, shared and swapped memory and the limit of a job older than ten seconds every tenth of its age, every six seconds at the latest (a limit of a cgroup above it is up to five seconds older), and at once when current_bytes has changed by more than 1 % or is within a sixteenth of the limit; at shorter intervals they are absent in between. Of a job that does nothing, current_bytes and limits are read every five seconds, all else every half minute or when one of these changed; in between what was read last is told. After the last reading, up to an interval before the job's directory was removed, the kernel tells peak_bytes alone: what came then is in no other peak and in no stall time.";

    gauge current_bytes: Bytes,
        "Memory charged now (memory.current, v1 memory.usage_in_bytes).";
    peak peak_bytes: Bytes,
        "Largest memory charged (memory.peak, v1 memory.max_usage_in_bytes; else the largest seen). When the job's directory is removed the kernel tells the agent once more, which needs no file for it.";
    peak used_peak_bytes: Bytes,
        "Largest anonymous and shared memory of any reading: what the job needs, without the page cache.";
    peak cache_peak_bytes: Bytes,
        "Largest page cache of any reading, shmem not included.";
    gauge anon_bytes: Bytes,
        "Anonymous memory (memory.stat anon, v1 total_rss).";
    gauge file_bytes: Bytes,
        "Page cache, shmem included (memory.stat file, v1 total_cache).";
    gauge shmem_bytes: Bytes,
        "Shared memory and tmpfs (memory.stat shmem, v1 total_shmem).";
    gauge swap_bytes: Bytes,
        "Swapped out (memory.swap.current, v1 total_swap).";
    gauge limit_bytes: Bytes,
        "The job's limit (memory.max, v1 memory.limit_in_bytes); absent without one.";
    counter held_byte_s: ByteSeconds,
        "Memory held over time: `limit_bytes` times the time for which the job was there; absent without a limit.";
    counter used_byte_s: ByteSeconds,
        "Memory used over time: anonymous and shared, as read at the end of each interval or last before it, times its length.";
    counter cpu_some_stall_ns: Nanoseconds,
        "Some task waited for a CPU (cpu.pressure).";
    counter cpu_full_stall_ns: Nanoseconds,
        "No task could run for lack of a CPU (cpu.pressure).";
    counter memory_some_stall_ns: Nanoseconds,
        "Some task waited for memory (memory.pressure).";
    counter memory_full_stall_ns: Nanoseconds,
        "All tasks waited for memory (memory.pressure).";
    counter io_some_stall_ns: Nanoseconds,
        "Some task waited for I/O (io.pressure).";
    counter io_full_stall_ns: Nanoseconds,
        "All tasks waited for I/O (io.pressure).";
}

measurement! {
    /// `job_cpu`: what the job holds.
    CPU, Cpu = "job_cpu", key "cpu", tags [],
        "CPU cores available to the job, throttling and tasks. Where the kernel only lists tasks (no pids controller), the agent counts them when one came or ended or a program was executed, and every half minute for those that were moved or made into its cgroups or out of them, and workers of io_uring; in between it tells what it counted last. Where it does not see all that come and end (probes given up or runs of them missed, other cgroups in its directories), it counts those of a job that does something as seldom as it reads the parts of job_memory; in between they are absent. Where the kernel counts them, those of a job that does nothing are read every five seconds. It looks as seldom as at those parts whether the job's own CPUs and quota changed.";

    constant cores_held: Millicores,
        "Cores the job may use at once: the smaller of cpuset or affinity and CPU quota.";
    counter held_ns: Nanoseconds,
        "Core time held: `cores_held` times the time for which the job was there.";
    counter throttled_ns: Nanoseconds,
        "Time throttled by the quota (cpu.stat), up to the last reading before the job's end.";
    gauge tasks: Count,
        "Current number of processes and threads (pids.current, else counted).";
}

/// What each line of an interval of the agent's tells besides its measurement's own fields.
pub static INTERVAL: Field = Field {
    name: "interval_ns",
    kind: Kind::Constant,
    unit: Unit::Nanoseconds,
    place: Place::Agent,
    help: "Actual length of the interval by a clock that never steps, even if it was measured late.",
};

/// Every measurement of values, in the order of their output.
pub static ALL: [&Measurement; 14] = [
    &SCHED,
    &FAULT,
    &BLOCK,
    &WAIT,
    &IO,
    &IO_ERROR,
    &NODE_MOUNT,
    &NET,
    &MEMORY,
    &CPU,
    &GPU,
    &XID,
    &NODE_NET,
    &SELF,
];

/// How many of its tags a recording has at least: those of the oldest one.
pub fn oldest_tags(measurement: &Measurement) -> usize {
    if std::ptr::eq(measurement, &GPU) { 3 } else { measurement.tags.len() }
}
