//! All measurements, and the tables of those that the agent reads itself.

use tracer_ebpf::table::{
    Field,
    Kind::{Constant, Counter, Gauge, Peak},
    Measurement, Place,
    Unit::{
        Bytes, Celsius, Count, Hertz, Millicores, Millijoules, Milliwatts, Nanoseconds,
        PartsPerMillion,
    },
};
pub use tracer_ebpf::{
    block::BLOCK,
    job::{FAULT, SCHED},
};

/// `job_memory`: the memory controller's view, and pressure stall times.
pub static MEMORY: Measurement = Measurement {
    name: "job_memory",
    key: "memory",
    tags: &[],
    help: "Memory of the job's cgroup, and time its tasks were stalled (PSI) where the kernel measures it.",
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
            "No task could run for want of a CPU (cpu.pressure).",
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
    help: "CPU the job holds.",
    fields: &[
        Field::agent(
            "cores_held",
            Constant,
            Millicores,
            "Cores it may use at once: the smaller of cpuset or affinity and CPU quota.",
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
            "Processes and threads now (pids.current, else counted).",
        ),
    ],
};

/// `job_gpu`: the GPUs that the job has or its processes are on.
pub static GPU: Measurement = Measurement {
    name: "job_gpu",
    key: "gpu",
    tags: &["gpu", "uuid", "model", "vendor", "parent"],
    help: "GPUs while the job has them or processes of it are on them, by readings once a second: NVIDIA's through NVML, AMD's, Intel's and others' from the kernel's files. `gpu` is the driver's index, which may change with a boot; `uuid` does not: NVML's, `GPU-` and the unique id of AMD's, else `PCI-` and the address. `vendor` is `nvidia`, `amd`, `intel` or the kernel's driver. A MIG instance is a device of its own: `gpu` is `0:1` for the second of GPU 0, `parent` the whole's uuid.",
    fields: &[
        Field::histogram(
            "utilization_ratio",
            PartsPerMillion,
            Place::Agent,
            "Share of the time in which a kernel ran: the device's where only the job is on it, else that of the job's processes.",
        ),
        Field::histogram(
            "memory_utilization_ratio",
            PartsPerMillion,
            Place::Agent,
            "Share of the time in which the device's memory was read or written; the device's or the processes', as above.",
        ),
        Field::agent(
            "memory_used_bytes",
            Gauge,
            Bytes,
            "Device memory that the job's processes hold; where that is not told and only the job is on the device, all memory in use.",
        ),
        Field::agent("memory_peak_bytes", Peak, Bytes, "Largest `memory_used_bytes` read."),
        Field::agent("memory_total_bytes", Constant, Bytes, "Memory of the device."),
        Field::histogram(
            "power_watts",
            Milliwatts,
            Place::Agent,
            "Power of the whole device, whoever else is on it.",
        ),
        Field::agent(
            "energy_joules",
            Counter,
            Millijoules,
            "Energy of the whole device while the job was on it (its own counter, not power times time).",
        ),
        Field::histogram("sm_clock_hz", Hertz, Place::Agent, "Clock of the multiprocessors."),
        Field::agent(
            "temperature_max_celsius",
            Peak,
            Celsius,
            "Highest temperature read while the job was on the device.",
        ),
        Field::histogram(
            "sm_activity_ratio",
            PartsPerMillion,
            Place::Agent,
            "Share of the multiprocessors' time in which work was on them (NVIDIA from Hopper on, by GPM). AMD: share of the compute units that the waves of the job's processes would fill at the moment of the reading.",
        ),
        Field::histogram(
            "tensor_activity_ratio",
            PartsPerMillion,
            Place::Agent,
            "Share of the multiprocessors' time in which their tensor units worked (GPM); absent while others are on the device.",
        ),
        Field::histogram(
            "dram_activity_ratio",
            PartsPerMillion,
            Place::Agent,
            "Share of the device memory's bandwidth in use (GPM); absent while others are on the device.",
        ),
        Field::histogram("memory_clock_hz", Hertz, Place::Agent, "Clock of the device's memory."),
        Field::agent(
            "throttled_power_ns",
            Counter,
            Nanoseconds,
            "Time in which the power limit or the supply's brake held the clocks down: each reading that says so counts the time since the one before.",
        ),
        Field::agent(
            "throttled_thermal_ns",
            Counter,
            Nanoseconds,
            "The same for heat. Both may be the case at once.",
        ),
        Field::agent(
            "throttled_other_ns",
            Counter,
            Nanoseconds,
            "The same for other reasons (a slower GPU of a boost group, a slowdown without a reason); clocks that were set so, and idling, are none.",
        ),
        Field::agent(
            "ecc_uncorrected_errors",
            Counter,
            Count,
            "Errors of the device's memory that ECC could not correct, while the job was on it or in the second after.",
        ),
        Field::agent(
            "xid_errors",
            Counter,
            Count,
            "XID errors that NVIDIA's driver reported of the device, while the job was on it or in the second after.",
        ),
        Field::agent("xid_last", Constant, Count, "Code of the newest of them."),
        Field::agent("processes", Gauge, Count, "Processes of the job on the device."),
        Field::agent(
            "readings_shared",
            Counter,
            Count,
            "Readings in which processes of others were on the device too: its power and energy are then not the job's alone.",
        ),
        Field::agent(
            "held_ns",
            Counter,
            Nanoseconds,
            "Time in which the job had the device: its scheduler or the site gave it, or a process of it was on it.",
        ),
        Field::agent(
            "used_ns",
            Counter,
            Nanoseconds,
            "Time in which a process of the job was on the device; held_ns less this is a GPU that nobody used.",
        ),
        Field::agent(
            "busy_ns",
            Counter,
            Nanoseconds,
            "Of held_ns, time in which a kernel ran on the device, whoever's; from the job's second reading on, where the device tells its utilisation.",
        ),
        Field::agent(
            "idle_ns",
            Counter,
            Nanoseconds,
            "As busy_ns, time in which no kernel ran: the sum of the five below. What nothing accounts for is told up to 30 s later, since a wait is known when it ends.",
        ),
        Field::agent(
            "idle_while_blocked_ns",
            Counter,
            Nanoseconds,
            "Of idle_ns, what time of the job's tasks blocked on I/O accounts for, major faults apart. Each second the states share idle_ns by the tasks' time in them, none with more than that.",
        ),
        Field::agent(
            "idle_while_run_queue_ns",
            Counter,
            Nanoseconds,
            "Of idle_ns, what waits of the job's tasks for a CPU account for, beyond those beside busy devices as below.",
        ),
        Field::agent(
            "idle_while_faulting_ns",
            Counter,
            Nanoseconds,
            "Of idle_ns, what waits in major faults account for; where the kernel does not tell them apart they are in idle_while_blocked_ns.",
        ),
        Field::agent(
            "idle_while_on_cpu_ns",
            Counter,
            Nanoseconds,
            "Of idle_ns, what the tasks' time on CPU accounts for. As long as the job's devices were busy, tasks are taken to have fed them or to have spun until they were done, on CPU or waiting for one: that is left out.",
        ),
        Field::agent(
            "idle_other_ns",
            Counter,
            Nanoseconds,
            "Of idle_ns, what nothing of these accounts for: every task asleep (network, locks, timers), or not known.",
        ),
    ],
};

/// `jobtrace_self`: what the tracing itself costs and lost.
pub static SELF: Measurement = Measurement {
    name: "jobtrace_self",
    key: "self",
    tags: &[],
    help: "What the tracing itself costs, and what it could not count, by cause.",
    fields: &[
        Field::agent("cpu_ns", Counter, Nanoseconds, "CPU time of jobtrace itself."),
        Field::agent("rss_bytes", Gauge, Bytes, "Resident memory of jobtrace itself."),
        Field::agent(
            "map_bytes",
            Gauge,
            Bytes,
            "Memory of the BPF maps (memlock of their fdinfo).",
        ),
        Field::agent("drain_ns", Counter, Nanoseconds, "Time spent reading the maps."),
        Field::agent(
            "bpf_ns",
            Counter,
            Nanoseconds,
            "Run time of the BPF programs, where the kernel's statistics are on.",
        ),
        Field::agent(
            "bpf_runs",
            Counter,
            Count,
            "Runs of the BPF programs, where the kernel's statistics are on.",
        ),
        Field::agent(
            "bpf_missed",
            Counter,
            Count,
            "Runs that the kernel skipped (recursion_misses).",
        ),
        Field::agent("dropped_no_bank", Counter, Count, "Events whose slot had no bank."),
        Field::agent(
            "dropped_task_record",
            Counter,
            Count,
            "Task records taken over by another live task (pids alike in their low 16 bits): what it did since it was last charged is lost each time.",
        ),
        Field::agent(
            "dropped_cgroup",
            Counter,
            Count,
            "Cgroups made that found no room in the table of cgroups; their events are in _system.",
        ),
        Field::agent(
            "dropped_slot",
            Counter,
            Count,
            "Cgroups made that found no slot to spare; their events are in _system until the agent finds one.",
        ),
        Field::agent(
            "dropped_block_cell",
            Counter,
            Count,
            "Block completions that found no room for a new device and operation.",
        ),
        Field::agent(
            "dropped_cgroup_event",
            Counter,
            Count,
            "Cgroup events that found the ring buffer full.",
        ),
        Field::agent(
            "dropped_output_bytes",
            Counter,
            Bytes,
            "Output that could not be written (disk full).",
        ),
        Field::agent(
            "dropped_spool_files",
            Counter,
            Count,
            "Files of the spool dropped because nobody took them in time (agent).",
        ),
        Field::agent(
            "dropped_spool_bytes",
            Counter,
            Bytes,
            "Bytes of the spool's dropped files (agent).",
        ),
        Field::agent(
            "dropped_intervals",
            Counter,
            Count,
            "Intervals that could not be written and no longer fitted into memory (agent).",
        ),
        Field::agent(
            "merged_intervals",
            Counter,
            Count,
            "Intervals that could not be written and became one with the next (agent).",
        ),
        Field::agent(
            "late_intervals",
            Counter,
            Count,
            "Intervals that ended late; their length is in interval_ns (agent).",
        ),
        Field::agent("jobs", Gauge, Count, "Jobs with cgroups on the node now (agent)."),
        Field::agent(
            "gpu_cpu_ns",
            Counter,
            Nanoseconds,
            "CPU time of the thread that asks for GPUs, the driver's library included; a part of cpu_ns.",
        ),
        Field::agent("gpu_readings", Counter, Count, "Readings of the GPUs."),
        Field::agent(
            "gpu_failures",
            Counter,
            Count,
            "GPUs lost, and attempts to open their driver that failed; what it was is in the log.",
        ),
        Field::agent(
            "overhead_ratio",
            Gauge,
            PartsPerMillion,
            "Share of the online CPUs' time that the attached probes took (agent).",
        ),
        Field::agent(
            "overhead_measured",
            Gauge,
            Count,
            "1: overhead_ratio is the probes' run time by the kernel's statistics, getting into them left out; 0: it is events times nanoseconds per event (agent).",
        ),
        Field::agent(
            "families_measured",
            Gauge,
            Count,
            "Families of probes whose nanoseconds per event are from the kernel's statistics on this node; the others' are jobtrace's own figures (agent).",
        ),
        Field::agent(
            "shed_families",
            Gauge,
            Count,
            "Families of probes that were detached in the interval or a part of it: their values are unknown (agent).",
        ),
        Field::agent(
            "shed_sched",
            Gauge,
            Count,
            "1: the switch hook was detached; unknown: job_sched but forks and execs, minor and major of job_fault (agent).",
        ),
        Field::agent(
            "shed_major_fault",
            Gauge,
            Count,
            "1: the probe of major faults was detached; unknown: major_wait_ns (agent).",
        ),
        Field::agent(
            "shed_full_fault",
            Gauge,
            Count,
            "1: the probes of fault latencies were detached; unknown: the latencies of job_fault (agent).",
        ),
        Field::agent(
            "shed_block",
            Gauge,
            Count,
            "1: the probe of block I/O was detached; unknown: job_block (agent).",
        ),
        Field::agent("hooks_missing", Gauge, Count, "Hooks that this kernel lacks or refused."),
    ],
};

/// Every measurement with a table, in the order of their output.
pub static ALL: [&Measurement; 7] = [&SCHED, &FAULT, &BLOCK, &MEMORY, &CPU, &GPU, &SELF];

/// How many of its tags a recording has at least: those of the oldest one.
pub fn oldest_tags(measurement: &Measurement) -> usize {
    if std::ptr::eq(measurement, &GPU) { 3 } else { measurement.tags.len() }
}
