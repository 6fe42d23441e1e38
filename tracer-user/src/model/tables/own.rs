//! The table of `jobtrace_self`: what the tracing itself costs and lost.

use tracer_ebpf::measurement;

measurement! {
    /// `jobtrace_self`: what the tracing itself costs and lost.
    SELF, Own = "jobtrace_self", key "self", tags [],
        "What the tracing itself costs, and what could not be counted, by cause.";

    counter cpu_ns: Nanoseconds,
        "CPU time of jobtrace itself.";
    gauge rss_bytes: Bytes,
        "Resident memory of jobtrace itself.";
    gauge map_bytes: Bytes,
        "Memory of the BPF maps (memlock of their fdinfo).";
    counter drain_ns: Nanoseconds,
        "Time spent reading the maps.";
    counter bpf_ns: Nanoseconds,
        "Run time of the BPF programs, if the kernel's statistics are enabled.";
    counter bpf_runs: Count,
        "Runs of the BPF programs, if the kernel's statistics are enabled.";
    counter bpf_missed: Count,
        "Runs that the kernel skipped (recursion_misses).";
    counter dropped_no_bank: Count,
        "Events whose slot had no bank.";
    counter dropped_task_record: Count,
        "Task records taken over by another live task whose pid has the same low 16 bits: what the first task did since it was last charged is lost each time. A victim of the out-of-memory killer whose record is replaced by another's before it exits counts here too.";
    counter dropped_cgroup: Count,
        "Cgroups created for which the table of cgroups had no room; their events are in _system.";
    counter dropped_slot: Count,
        "Cgroups created when no spare slot was left, and jobs found at the agent's start for which no slot was left; their events are in _system until the agent finds one.";
    counter dropped_block_cell: Count,
        "Block completions for which there was no room for a new device and operation.";
    counter dropped_wait_cell: Count,
        "Waits that are missing in job_wait: there was no room for a new file system and kind of call, or the task was in another job when the wait ended. job_sched has them.";
    counter dropped_sighting: Count,
        "Programs, libraries and Python modules that found no room, or whose paths are too long: job_software lacks them.";
    counter dropped_cgroup_event: Count,
        "Cgroup events lost because the ring buffer was full.";
    counter dropped_output_bytes: Bytes,
        "Output that could not be written (disk full).";
    counter dropped_spool_files: Count,
        "Files of the spool removed because nothing collected them in time (agent).";
    counter dropped_spool_bytes: Bytes,
        "Bytes of the files removed from the spool (agent).";
    counter dropped_records: Count,
        "Records of jobs that could not be saved (agent).";
    counter dropped_intervals: Count,
        "Intervals lost because they could not be written and no longer fitted into memory (agent).";
    counter merged_intervals: Count,
        "Intervals that could not be written and were merged with the next one (agent).";
    counter late_intervals: Count,
        "Intervals measured late; their length is in interval_ns (agent).";
    gauge jobs: Count,
        "Jobs that have cgroups on the node now (agent).";
    counter gpu_cpu_ns: Nanoseconds,
        "CPU time of the thread that reads the GPUs, including the driver's library; a part of cpu_ns.";
    counter gpu_readings: Count,
        "Readings of the GPUs.";
    counter gpu_failures: Count,
        "GPUs lost, and failed attempts to open their driver; the log has the reason.";
    gauge overhead_ratio: PartsPerMillion,
        "Share of the online CPUs' time that the attached probes took (agent).";
    gauge overhead_measured: Count,
        "1: overhead_ratio is the probes' run time from the kernel's statistics, without the cost of entering them; 0: it is events times nanoseconds per event (agent).";
    gauge families_measured: Count,
        "Families of probes whose nanoseconds per event were measured by the kernel's statistics on this node; the others use jobtrace's built-in figures (agent).";
    gauge shed_families: Count,
        "Families of probes that were detached for all or part of the interval: their values are unknown (agent).";
    gauge shed_sched: Count,
        "1: the switch hook was detached; unknown: job_sched except forks and execs, job_wait, minor and major of job_fault (agent).";
    gauge shed_major_fault: Count,
        "1: the probe of major faults was detached; unknown: major_wait_ns (agent).";
    gauge shed_full_fault: Count,
        "1: the probes of fault latencies were detached; unknown: minor_latency_ns, major_latency_ns (agent).";
    gauge shed_block: Count,
        "1: the probe of block I/O was detached; unknown: job_block (agent).";
    gauge shed_net: Count,
        "1: the probes of the network were detached; unknown: job_net (agent).";
    gauge shed_census: Count,
        "1: the probes of what jobs run were detached; unknown: job_software (agent).";
    gauge hooks_missing: Count,
        "Hooks that this kernel lacks or refuses.";
}
