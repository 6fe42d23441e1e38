//! The table of `jobtrace_self`: what the tracing itself costs and lost.

use tracer_ebpf::measurement;

measurement! {
    /// `jobtrace_self`: what the tracing itself costs and lost.
    SELF, Own = "jobtrace_self", key "self", tags [],
        "What the tracing itself costs, and what it could not count, by cause.";

    counter cpu_ns: Nanoseconds,
        "CPU time of jobtrace itself.";
    gauge rss_bytes: Bytes,
        "Resident memory of jobtrace itself.";
    gauge map_bytes: Bytes,
        "Memory of the BPF maps (memlock of their fdinfo).";
    counter drain_ns: Nanoseconds,
        "Time spent reading the maps.";
    counter bpf_ns: Nanoseconds,
        "Run time of the BPF programs, where the kernel's statistics are on.";
    counter bpf_runs: Count,
        "Runs of the BPF programs, where the kernel's statistics are on.";
    counter bpf_missed: Count,
        "Runs that the kernel skipped (recursion_misses).";
    counter dropped_no_bank: Count,
        "Events whose slot had no bank.";
    counter dropped_task_record: Count,
        "Task records taken over by another live task (pids alike in their low 16 bits): what it did since it was last charged is lost each time. A victim of the out-of-memory killer taken over by another before it exits counts here too.";
    counter dropped_cgroup: Count,
        "Cgroups made that found no room in the table of cgroups; their events are in _system.";
    counter dropped_slot: Count,
        "Cgroups made that found no slot to spare, and jobs found at the agent's start that no slot was left for; their events are in _system until the agent finds one.";
    counter dropped_block_cell: Count,
        "Block completions that found no room for a new device and operation.";
    counter dropped_cgroup_event: Count,
        "Cgroup events that found the ring buffer full.";
    counter dropped_output_bytes: Bytes,
        "Output that could not be written (disk full).";
    counter dropped_spool_files: Count,
        "Files of the spool dropped because nobody took them in time (agent).";
    counter dropped_spool_bytes: Bytes,
        "Bytes of the spool's dropped files (agent).";
    counter dropped_intervals: Count,
        "Intervals that could not be written and no longer fitted into memory (agent).";
    counter merged_intervals: Count,
        "Intervals that could not be written and became one with the next (agent).";
    counter late_intervals: Count,
        "Intervals that ended late; their length is in interval_ns (agent).";
    gauge jobs: Count,
        "Jobs with cgroups on the node now (agent).";
    counter gpu_cpu_ns: Nanoseconds,
        "CPU time of the thread that asks for GPUs, the driver's library included; a part of cpu_ns.";
    counter gpu_readings: Count,
        "Readings of the GPUs.";
    counter gpu_failures: Count,
        "GPUs lost, and attempts to open their driver that failed; what it was is in the log.";
    gauge overhead_ratio: PartsPerMillion,
        "Share of the online CPUs' time that the attached probes took (agent).";
    gauge overhead_measured: Count,
        "1: overhead_ratio is the probes' run time by the kernel's statistics, getting into them left out; 0: it is events times nanoseconds per event (agent).";
    gauge families_measured: Count,
        "Families of probes whose nanoseconds per event are from the kernel's statistics on this node; the others' are jobtrace's own figures (agent).";
    gauge shed_families: Count,
        "Families of probes that were detached in the interval or a part of it: their values are unknown (agent).";
    gauge shed_sched: Count,
        "1: the switch hook was detached; unknown: job_sched but forks and execs, minor and major of job_fault (agent).";
    gauge shed_major_fault: Count,
        "1: the probe of major faults was detached; unknown: major_wait_ns (agent).";
    gauge shed_full_fault: Count,
        "1: the probes of fault latencies were detached; unknown: the latencies of job_fault (agent).";
    gauge shed_block: Count,
        "1: the probe of block I/O was detached; unknown: job_block (agent).";
    gauge hooks_missing: Count,
        "Hooks that this kernel lacks or refused.";
}
