//! The table of `job_gpu`, which the sampler of GPUs fills in.

use tracer_ebpf::measurement;

measurement! {
    /// `job_gpu`: the GPUs that the job has or its processes are on.
    GPU, Gpu = "job_gpu", key "gpu", tags ["gpu", "uuid", "model", "vendor", "parent"],
        "GPUs while the job has them or processes of it are on them, by readings once a second: NVIDIA's through NVML, AMD's, Intel's and others' from the kernel's files. `gpu` is the driver's index, which may change with a boot; `uuid` does not: NVML's, `GPU-` and the unique id of AMD's, else `PCI-` and the address. `vendor` is `nvidia`, `amd`, `intel` or the kernel's driver. A MIG instance is a device of its own: `gpu` is `0:1` for the second of GPU 0, `parent` the whole's uuid.";

    histogram utilization_ratio: PartsPerMillion,
        "Share of the time in which a kernel ran: the device's where only the job is on it, else that of the job's processes.";
    histogram memory_utilization_ratio: PartsPerMillion,
        "Share of the time in which the device's memory was read or written; the device's or the processes', as above.";
    gauge memory_used_bytes: Bytes,
        "Device memory that the job's processes hold; where that is not told and only the job is on the device, all memory in use.";
    peak memory_peak_bytes: Bytes,
        "Largest `memory_used_bytes` read.";
    constant memory_total_bytes: Bytes,
        "Memory of the device.";
    histogram power_watts: Milliwatts,
        "Power of the whole device, whoever else is on it.";
    counter energy_joules: Millijoules,
        "Energy of the whole device while the job was on it (its own counter, not power times time).";
    histogram sm_clock_hz: Hertz,
        "Clock of the multiprocessors.";
    peak temperature_max_celsius: Celsius,
        "Highest temperature read while the job was on the device.";
    histogram sm_activity_ratio: PartsPerMillion,
        "Share of the multiprocessors' time in which work was on them (NVIDIA from Hopper on, by GPM). AMD: share of the compute units that the waves of the job's processes would fill at the moment of the reading.";
    histogram tensor_activity_ratio: PartsPerMillion,
        "Share of the multiprocessors' time in which their tensor units worked (GPM); absent while others are on the device.";
    histogram dram_activity_ratio: PartsPerMillion,
        "Share of the device memory's bandwidth in use (GPM); absent while others are on the device.";
    histogram memory_clock_hz: Hertz,
        "Clock of the device's memory.";
    counter throttled_power_ns: Nanoseconds,
        "Time in which the power limit or the supply's brake held the clocks down: each reading that says so counts the time since the one before.";
    counter throttled_thermal_ns: Nanoseconds,
        "The same for heat. Both may be the case at once.";
    counter throttled_other_ns: Nanoseconds,
        "The same for other reasons (a slower GPU of a boost group, a slowdown without a reason); clocks that were set so, and idling, are none.";
    counter ecc_uncorrected_errors: Count,
        "Errors of the device's memory that ECC could not correct, while the job was on it or in the second after.";
    counter xid_errors: Count,
        "XID errors that NVIDIA's driver reported of the device, while the job was on it or in the second after.";
    constant xid_last: Count,
        "Code of the newest of them.";
    gauge processes: Count,
        "Processes of the job on the device.";
    counter readings_shared: Count,
        "Readings in which processes of others were on the device too: its power and energy are then not the job's alone.";
    counter held_ns: Nanoseconds,
        "Time in which the job had the device: its scheduler or the site gave it, or a process of it was on it.";
    counter used_ns: Nanoseconds,
        "Time in which a process of the job was on the device; held_ns less this is a GPU that nobody used.";
    counter busy_ns: Nanoseconds,
        "Of held_ns, time in which a kernel ran on the device, whoever's; from the job's second reading on, where the device tells its utilisation.";
    counter idle_ns: Nanoseconds,
        "As busy_ns, time in which no kernel ran: the sum of the five below. What nothing accounts for is told up to 30 s later, since a wait is known when it ends.";
    counter idle_while_blocked_ns: Nanoseconds,
        "Of idle_ns, what time of the job's tasks blocked on I/O accounts for, major faults apart. Each second the states share idle_ns by the tasks' time in them, none with more than that.";
    counter idle_while_run_queue_ns: Nanoseconds,
        "Of idle_ns, what waits of the job's tasks for a CPU account for, beyond those beside busy devices as below.";
    counter idle_while_faulting_ns: Nanoseconds,
        "Of idle_ns, what waits in major faults account for; where the kernel does not tell them apart they are in idle_while_blocked_ns.";
    counter idle_while_on_cpu_ns: Nanoseconds,
        "Of idle_ns, what the tasks' time on CPU accounts for. As long as the job's devices were busy, tasks are taken to have fed them or to have spun until they were done, on CPU or waiting for one: that is left out.";
    counter idle_other_ns: Nanoseconds,
        "Of idle_ns, what nothing of these accounts for: every task asleep (network, locks, timers), or not known.";
}
