//! All measurements, and the tables of those that the agent reads itself.

mod facts;
mod gpu;
mod own;

use tracer_ebpf::table::{
    Field,
    Kind::{Constant, Counter, Gauge, Peak},
    Measurement,
    Unit::{Bytes, Count, Millicores, Nanoseconds},
};
pub use tracer_ebpf::tables::{block::BLOCK, fault::FAULT, job::SCHED};

pub use self::{
    facts::{FACTS, Fact, JOB_INFO, fact, total_name},
    gpu::GPU,
    own::SELF,
};

/// `job_memory`: the memory controller's view, and pressure stall times.
pub static MEMORY: Measurement = Measurement {
    name: "job_memory",
    key: "memory",
    tags: &[],
    help: "Memory of the job's cgroup, and the time its tasks were stalled (PSI) if the kernel measures it.",
    fields: &[
        Field::agent(
            "current_bytes",
            Gauge,
            Bytes,
            "Memory charged now (memory.current, v1 memory.usage_in_bytes).",
        ),
        Field::agent(
            "peak_bytes",
            Peak,
            Bytes,
            "Largest memory charged (memory.peak, v1 memory.max_usage_in_bytes; else the largest seen).",
        ),
        Field::agent(
            "anon_bytes",
            Gauge,
            Bytes,
            "Anonymous memory (memory.stat anon, v1 total_rss).",
        ),
        Field::agent(
            "file_bytes",
            Gauge,
            Bytes,
            "Page cache, shmem included (memory.stat file, v1 total_cache).",
        ),
        Field::agent(
            "shmem_bytes",
            Gauge,
            Bytes,
            "Shared memory and tmpfs (memory.stat shmem, v1 total_shmem).",
        ),
        Field::agent(
            "swap_bytes",
            Gauge,
            Bytes,
            "Swapped out (memory.swap.current, v1 total_swap).",
        ),
        Field::agent(
            "limit_bytes",
            Gauge,
            Bytes,
            "The job's limit (memory.max, v1 memory.limit_in_bytes); absent without one.",
        ),
        Field::agent(
            "cpu_some_stall_ns",
            Counter,
            Nanoseconds,
            "Some task waited for a CPU (cpu.pressure).",
        ),
        Field::agent(
            "cpu_full_stall_ns",
            Counter,
            Nanoseconds,
            "No task could run for lack of a CPU (cpu.pressure).",
        ),
        Field::agent(
            "memory_some_stall_ns",
            Counter,
            Nanoseconds,
            "Some task waited for memory (memory.pressure).",
        ),
        Field::agent(
            "memory_full_stall_ns",
            Counter,
            Nanoseconds,
            "All tasks waited for memory (memory.pressure).",
        ),
        Field::agent(
            "io_some_stall_ns",
            Counter,
            Nanoseconds,
            "Some task waited for I/O (io.pressure).",
        ),
        Field::agent(
            "io_full_stall_ns",
            Counter,
            Nanoseconds,
            "All tasks waited for I/O (io.pressure).",
        ),
    ],
};

/// `job_cpu`: what the job holds.
pub static CPU: Measurement = Measurement {
    name: "job_cpu",
    key: "cpu",
    tags: &[],
    help: "CPU cores available to the job, throttling and tasks.",
    fields: &[
        Field::agent(
            "cores_held",
            Constant,
            Millicores,
            "Cores the job may use at once: the smaller of cpuset or affinity and CPU quota.",
        ),
        Field::agent(
            "throttled_ns",
            Counter,
            Nanoseconds,
            "Time throttled by the quota (cpu.stat).",
        ),
        Field::agent(
            "tasks",
            Gauge,
            Count,
            "Current number of processes and threads (pids.current, else counted).",
        ),
    ],
};

/// What each line of an interval of the agent's tells besides its measurement's own fields.
pub static INTERVAL: Field = Field::agent(
    "interval_ns",
    Constant,
    Nanoseconds,
    "Actual length of the interval by a clock that never steps, even if it was measured late.",
);

/// Every measurement of values, in the order of their output.
pub static ALL: [&Measurement; 7] = [&SCHED, &FAULT, &BLOCK, &MEMORY, &CPU, &GPU, &SELF];

/// How many of its tags a recording has at least: those of the oldest one.
pub fn oldest_tags(measurement: &Measurement) -> usize {
    if std::ptr::eq(measurement, &GPU) { 3 } else { measurement.tags.len() }
}
