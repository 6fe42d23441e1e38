//! The table of `job_gpu`, which the sampler of GPUs fills in.

use tracer_ebpf::table::{
    Field,
    Kind::{Constant, Counter, Gauge, Peak},
    Measurement, Place,
    Unit::{Bytes, Celsius, Count, Hertz, Millijoules, Milliwatts, Nanoseconds, PartsPerMillion},
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
