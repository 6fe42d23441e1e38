//! The tables of `job_gpu` and `job_xid`, which the sampler of GPUs fills in.

use tracer_ebpf::measurement;

measurement! {
    /// `job_gpu`: the GPUs that the job has or its processes are on.
    GPU, Gpu = "job_gpu", key "gpu", tags ["gpu", "uuid", "model", "vendor", "parent"],
        "GPUs that are allocated to the job or used by its processes, read once a second: NVIDIA's through NVML, AMD's, Intel's and others' from the kernel's files. `gpu` is the driver's index, which may change at a reboot; `uuid` does not: it is NVML's, for AMD's `GPU-` and the unique id, else `PCI-` and the address. `vendor` is `nvidia`, `amd`, `intel` or the name of the kernel's driver. A MIG instance is a device of its own: `gpu` is `0:1` for the second one of GPU 0, `parent` the uuid of the whole GPU.";

    histogram utilization_ratio: PartsPerMillion,
        "Share of the time in which a kernel ran: the device's if only this job uses it, else that of the job's processes.";
    histogram memory_utilization_ratio: PartsPerMillion,
        "Share of the time in which the device's memory was read or written; of the device or of the job's processes, as above.";
    gauge memory_used_bytes: Bytes,
        "Device memory used by the job's processes; if that is not reported and only this job uses the device, all memory in use.";
    peak memory_peak_bytes: Bytes,
        "Largest `memory_used_bytes` read.";
    constant memory_total_bytes: Bytes,
        "Memory of the device.";
    histogram power_watts: Milliwatts,
        "Power of the whole device, including use by others.";
    counter energy_joules: Millijoules,
        "Energy of the whole device while the job had it (the device's own counter; from one answer of it to the next, up to ten seconds, by its power).";
    histogram sm_clock_hz: Hertz,
        "Clock of the multiprocessors.";
    peak temperature_max_celsius: Celsius,
        "Highest temperature read while the job had the device.";
    histogram sm_activity_ratio: PartsPerMillion,
        "Share of the multiprocessors' time in which they had work (NVIDIA from Hopper on, through GPM). AMD: share of the compute units that the waves of the job's processes would fill at the moment of the reading.";
    histogram tensor_activity_ratio: PartsPerMillion,
        "Share of the multiprocessors' time in which their tensor units worked (GPM); absent while others use the device.";
    histogram dram_activity_ratio: PartsPerMillion,
        "Share of the device memory's bandwidth in use (GPM); absent while others use the device.";
    histogram memory_clock_hz: Hertz,
        "Clock of the device's memory.";
    counter throttled_power_ns: Nanoseconds,
        "Time in which the power limit or the power supply's brake signal lowered the clocks, by the driver's counters; where they stand still, each reading that reports it counts the time since the previous one.";
    counter throttled_thermal_ns: Nanoseconds,
        "The same because of temperature. Both may apply at once.";
    counter throttled_other_ns: Nanoseconds,
        "The same for other reasons (a slower GPU in a boost group, a slowdown without a stated reason). Clocks set by a user and idling do not count.";
    counter ecc_uncorrected_errors: Count,
        "Errors of the device's memory that ECC could not correct, while the job had the device or in the second after.";
    counter xid_errors: Count,
        "XID errors that NVIDIA's driver reported for the device, while the job had it or in the second after; not those of code 45.";
    counter xid_cleanups: Count,
        "XID errors of code 45: channels torn down, one each, after another error or because a process was killed.";
    constant xid_first: Count,
        "Code of the first XID error that is not 45: others often follow from it.";
    constant xid_last: Count,
        "Code of the latest XID error that is not 45.";
    gauge processes: Count,
        "Processes of the job that use the device.";
    counter readings_shared: Count,
        "Readings in which processes of others used the device too: its power and energy are then not the job's alone.";
    counter held_ns: Nanoseconds,
        "Time in which the device was allocated to the job by its scheduler or the site, or used by one of its processes.";
    counter used_ns: Nanoseconds,
        "Time in which a process of the job used the device; held_ns minus this is time allocated but not used.";
    counter busy_ns: Nanoseconds,
        "Part of held_ns in which a kernel ran on the device, anyone's, while the device reports its utilisation.";
    counter idle_ns: Nanoseconds,
        "Part of held_ns in which no kernel ran, under the same conditions: the sum of idle_while_blocked_ns, idle_while_run_queue_ns, idle_while_faulting_ns, idle_while_on_cpu_ns, idle_while_network_ns and idle_other_ns. Time that nothing accounts for is reported up to 30 s later, since a wait is known only when it ends.";
    counter idle_while_blocked_ns: Nanoseconds,
        "Part of idle_ns attributed to the job's tasks being blocked on I/O, except in major faults; blocked on anything if causes are unknown. Each second's idle_ns is divided among the states in proportion to the tasks' time in them, none getting more than that time.";
    counter idle_while_run_queue_ns: Nanoseconds,
        "Part of idle_ns attributed to the job's tasks waiting for a CPU, beyond those that go with busy devices, as below.";
    counter idle_while_faulting_ns: Nanoseconds,
        "Part of idle_ns attributed to waits in major faults; if the kernel does not distinguish them, they are in idle_while_blocked_ns.";
    counter idle_while_on_cpu_ns: Nanoseconds,
        "Part of idle_ns attributed to the tasks' time on CPU. For as long as the job's devices were busy, tasks are assumed to have fed them or to have spun until they were done, on CPU or waiting for one: that time is left out.";
    counter idle_other_ns: Nanoseconds,
        "Part of idle_ns that none of these accounts for: every task slept (locks, timers, children; network too if causes are unknown), was blocked on something that is not I/O, or the cause is unknown.";
    counter idle_while_network_ns: Nanoseconds,
        "Part of idle_ns that no other state accounts for and in which tasks slept in poll or in socket calls, not counting as many tasks as do so while the device is busy. Absent if causes are unknown.";
    counter idle_while_reading_ns: Nanoseconds,
        "Part of idle_while_blocked_ns in which tasks were blocked reading files. What none of these four fields accounts for was blocked in other page faults or loading programs.";
    counter idle_while_writing_ns: Nanoseconds,
        "Part of idle_while_blocked_ns in which tasks were blocked writing files.";
    counter idle_while_syncing_ns: Nanoseconds,
        "Part of idle_while_blocked_ns in which tasks were blocked until written data was stored (fsync).";
    counter idle_while_metadata_ns: Nanoseconds,
        "Part of idle_while_blocked_ns in which tasks were blocked on names, attributes and directories (open, stat).";
    histogram sm_occupancy_ratio: PartsPerMillion,
        "Share of the warps for which the multiprocessors have room that were on them (GPM); absent, like the next three, while others use the device.";
    histogram fp64_activity_ratio: PartsPerMillion,
        "Share of the multiprocessors' time in which their units for 64-bit numbers worked (GPM).";
    histogram fp32_activity_ratio: PartsPerMillion,
        "The same for 32-bit numbers.";
    histogram fp16_activity_ratio: PartsPerMillion,
        "The same for 16-bit numbers, tensor units excluded.";
    counter pcie_sent_bytes: Bytes,
        "Bytes that the device sent over PCIe while the job had it, including for others (GPM's rate times time; else the driver's counter).";
    counter pcie_received_bytes: Bytes,
        "Bytes that it received over PCIe, likewise.";
    counter nvlink_sent_bytes: Bytes,
        "Bytes that it sent over all its NVLinks, including for others (GPM's rate times time).";
    counter nvlink_received_bytes: Bytes,
        "Bytes that it received over all its NVLinks, likewise.";
    histogram encoder_ratio: PartsPerMillion,
        "Share of the time in which the video encoders worked; absent, like decoder_ratio, while others use the device.";
    histogram decoder_ratio: PartsPerMillion,
        "Share of the time in which the video decoders worked.";
    peak memory_temperature_max_celsius: Celsius,
        "Highest temperature of the device's memory.";
    constant power_limit_watts: Milliwatts,
        "Power that the device may draw: the smallest of the limits in force.";
    counter ecc_corrected_errors: Count,
        "Errors of the device's memory that ECC corrected, while the job had the device or in the second after.";
    constant remapped_rows: Count,
        "Rows of the device's memory that spare ones have replaced, ever.";
    counter pcie_replays: Count,
        "Packets that were sent again over PCIe, while the job had the device or in the second after.";
    counter nvlink_errors: Count,
        "Errors of the device's NVLinks (checksums, replays, recoveries), likewise.";
    constant mig_gpu_instance: Count,
        "Id of a MIG device's GPU instance; its profile is in the tag `model`.";
    constant mig_compute_instance: Count,
        "Id of a MIG device's compute instance.";
}

measurement! {
    /// `job_xid`: errors that a GPU's driver reported, by their code.
    XID, Xid = "job_xid", key "xid", tags ["gpu", "uuid", "code"],
        "XID errors of NVIDIA GPUs by `code`, as NVIDIA's documentation lists them; one series for each code that the driver reported while the job had the device or in the second after.";

    counter errors: Count,
        "Errors of this code. Those of all codes but 45 add up to `xid_errors` of `job_gpu`, those of code 45 to `xid_cleanups`.";
}
