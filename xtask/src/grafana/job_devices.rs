//! The dashboard "Job": what it asked of disks, memory and GPUs.

use super::{
    compose::term,
    spec::{Ask, Look, Panel, Row, Value, What},
};

/// Four percentiles of a histogram.
pub fn percentiles(
    of: &'static str,
    parts: [(&'static str, &'static str); 4],
    panel: Panel,
) -> Panel {
    parts.into_iter().fold(panel, |panel, (legend, field)| {
        panel.line(legend, term(of, Value::Largest(field)), &[])
    })
}

/// A histogram over time.
pub fn heat(title: &'static str, help: &'static str, metric: &'static str) -> Panel {
    let what = What::Buckets(metric);
    Panel::new(Look::Heatmap, "ns", title, help).ask(Ask { legend: "{le}", what })
}

/// Local disks.
pub fn disk() -> Row {
    let block = |value| term("job_block", value);
    let bytes = Panel::new(
        Look::Stack,
        "Bps",
        "Disk throughput",
        "Bytes that local disks moved for the job. Network file systems (Lustre, NFS) are not included.",
    )
    .line("{device} {op}", block(Value::Rate("bytes")), &["device", "op"]);
    let size = Panel::new(
        Look::Lines,
        "bytes",
        "Mean size of a request",
        "Below about 64 KiB even a good disk is slow: read and write larger blocks.",
    )
    .line(
        "{device} {op}",
        block(Value::Ratio("size_bytes_sum", "size_bytes_count")),
        &["device", "op"],
    );
    let heatmap = heat(
        "How long the disk took",
        "Each cell counts the requests that took that long on the device. Two bands are common: \
         cache above, disk below. A band that rises means that the disk is the limit.",
        "block.device_latency_ns",
    );
    let latency = percentiles(
        "job_block",
        [
            ("half within", "device_latency_ns_p50"),
            ("9 of 10 within", "device_latency_ns_p90"),
            ("99 of 100 within", "device_latency_ns_p99"),
            ("longest", "device_latency_ns_max"),
        ],
        Panel::new(
            Look::Lines,
            "ns",
            "Disk latency: percentiles",
            "From a request's issue to its completion, on the worst disk at each point. A good SSD \
             answers within 0.1 ms, a hard disk within 10 ms.",
        ),
    );
    let ops =
        Panel::new(Look::Stack, "iops", "Requests", "Requests that disks completed for the job.")
            .line("{device} {op}", block(Value::Rate("ops")), &["device", "op"]);
    let queue = Panel::new(
        Look::Lines,
        "ns",
        "Mean time in the queue",
        "Time before the disk got the request. If this is more than the disk itself takes, there are too many requests at once.",
    )
    .line(
        "{device} {op}",
        block(Value::Ratio("queue_latency_ns_sum", "queue_latency_ns_count")),
        &["device", "op"],
    );
    Row { title: "Disk", each: None, panels: vec![bytes, size, heatmap, latency, ops, queue] }
}

/// Memory and page faults.
pub fn memory() -> Row {
    let level = |field| term("job_memory", Value::Level(field));
    let used = Panel::new(
        Look::Lines,
        "bytes",
        "Memory against its limit",
        "In use: everything that counts against the limit (the dashed line). File cache is dropped \
         when memory runs short; the job's own (anonymous) memory is not. Own memory near the \
         limit means the job will be killed.",
    )
    .line("in use", level("current_bytes"), &[])
    .line("own", level("anon_bytes"), &[])
    .line("file cache", level("file_bytes"), &[])
    .line("swapped out", level("swap_bytes"), &[])
    .line("limit", level("limit_bytes"), &[]);
    let fault = |value| term("job_fault", value);
    let faults = Panel::new(
        Look::Lines,
        "cps",
        "Page faults",
        "Minor: memory used for the first time; cheap, but millions per second cost time. Major: \
         memory that had to be read from disk, each as slow as the disk.",
    )
    .line("minor", fault(Value::Rate("minor")), &[])
    .line("major", fault(Value::Rate("major")), &[]);
    let waits = Panel::new(
        Look::Lines,
        "short",
        "Tasks blocked by major faults",
        "How many tasks, on average, were blocked until a page had been read from disk. Included in `blocked` above.",
    )
    .line("blocked by major faults", fault(Value::Rate("major_wait_ns_sum")), &[]);
    let pressure = |field| term("job_memory", Value::Rate(field));
    let stalls = Panel::new(
        Look::Lines,
        "short",
        "Pressure, as the kernel sees it",
        "Share of the time in which some task of the job was stalled for lack of the resource, \
         added over its nodes. Empty if the kernel does not measure it (no PSI, or cgroup v1).",
    )
    .line("CPU", pressure("cpu_some_stall_ns"), &[])
    .line("memory", pressure("memory_some_stall_ns"), &[])
    .line("I/O", pressure("io_some_stall_ns"), &[]);
    Row { title: "Memory", each: None, panels: vec![used, faults, waits, stalls] }
}

/// GPUs, and what the job did while they were idle.
pub fn gpu() -> Row {
    let gpu = |value| term("job_gpu", value);
    let busy = Panel::new(
        Look::Lines,
        "percentunit",
        "GPU: share of the time at work",
        "How much of the time a kernel ran on the GPU. Long periods far below 100 % mean that the \
         GPU waits for the job; the panel beside shows for what.",
    )
    .line(
        "{host} {gpu}",
        gpu(Value::Ratio("utilization_ratio_sum", "utilization_ratio_count")),
        &["host", "gpu"],
    );
    let idle = |field| gpu(Value::Rate(field));
    let why = Panel::new(
        Look::Stack,
        "short",
        "GPUs idle, and what the job did meanwhile",
        "How many GPUs were idle on average, by what the job's tasks did at the same time. \
         Blocked: data did not arrive from disk fast enough. Waiting for a CPU: too few cores to \
         feed the GPU. Faulting: memory had to be read from disk. On CPU: the job computed on CPUs \
         first. Network: its tasks slept in poll or on sockets. Other: they slept for anything else, \
         or nobody knows.",
    )
    .line("blocked (I/O)", idle("idle_while_blocked_ns"), &[])
    .line("waiting for a CPU", idle("idle_while_run_queue_ns"), &[])
    .line("faulting", idle("idle_while_faulting_ns"), &[])
    .line("on CPU", idle("idle_while_on_cpu_ns"), &[])
    .line("network", idle("idle_while_network_ns"), &[])
    .line("other", idle("idle_other_ns"), &[]);
    let calls = Panel::new(
        Look::Stack,
        "short",
        "GPUs idle while blocked, by call",
        "`blocked (I/O)` of the panel above by what the tasks were doing. Reading: data arrives too \
         slowly; use larger blocks, more loaders or a local copy. Fsync and writing: checkpoints \
         that the GPU waits for. Metadata: many small files.",
    )
    .line("reading", idle("idle_while_reading_ns"), &[])
    .line("writing", idle("idle_while_writing_ns"), &[])
    .line("fsync", idle("idle_while_syncing_ns"), &[])
    .line("metadata", idle("idle_while_metadata_ns"), &[]);
    let part = |of: &'static str, count: &'static str| gpu(Value::Ratio(of, count));
    let works = Panel::new(
        Look::Lines,
        "percentunit",
        "GPU: how much of it works",
        "Share of the multiprocessors' time with work on them, of their tensor units' and of the \
         memory's bandwidth, where the hardware counts that. A GPU that is at work all the time with \
         few of its multiprocessors runs kernels that are too small: larger batches, or several \
         processes on one GPU. Tensor units that idle: numbers of 16 bits or TF32 would use them.",
    )
    .line(
        "{host} {gpu} multiprocessors",
        part("sm_activity_ratio_sum", "sm_activity_ratio_count"),
        &["host", "gpu"],
    )
    .line(
        "{host} {gpu} tensor units",
        part("tensor_activity_ratio_sum", "tensor_activity_ratio_count"),
        &["host", "gpu"],
    )
    .line(
        "{host} {gpu} memory bandwidth",
        part("dram_activity_ratio_sum", "dram_activity_ratio_count"),
        &["host", "gpu"],
    );
    let traffic = Panel::new(
        Look::Stack,
        "Bps",
        "GPU: data moved",
        "Bytes to and from the GPUs, including for others on them. PCIe near its limit (about 25 GB/s \
         for generation 4, 50 for 5) means that copies hold the job up.",
    )
    .line("to, over PCIe", idle("pcie_received_bytes"), &[])
    .line("from, over PCIe", idle("pcie_sent_bytes"), &[])
    .line("to, over NVLink", idle("nvlink_received_bytes"), &[])
    .line("from, over NVLink", idle("nvlink_sent_bytes"), &[]);
    let memory = Panel::new(
        Look::Lines,
        "bytes",
        "GPU memory",
        "Memory that the job's processes use on the GPU. If much is free, a larger batch may keep the GPU busier.",
    )
    .line("{host} {gpu}", gpu(Value::Level("memory_used_bytes")), &["host", "gpu"]);
    let power = Panel::new(
        Look::Lines,
        "watt",
        "GPU power",
        "Mean power of the whole device. A GPU that is busy but draws little power does little work.",
    )
    .line(
        "{host} {gpu}",
        gpu(Value::Ratio("power_watts_sum", "power_watts_count")),
        &["host", "gpu"],
    );
    let lowered = Panel::new(
        Look::Lines,
        "short",
        "GPUs with lowered clocks",
        "How many GPUs, on average, ran slower than they could, and why: the power limit, heat, or anything \
         else that the driver knows of, such as a slower GPU in a group.",
    )
    .line("power", idle("throttled_power_ns"), &[])
    .line("heat", idle("throttled_thermal_ns"), &[])
    .line("other", idle("throttled_other_ns"), &[]);
    let errors = Panel::new(
        Look::Lines,
        "cps",
        "GPU errors",
        "Errors that NVIDIA's driver reported, by their XID code, which its documentation explains: 31 and 13 are \
         mostly the program's, 48, 63, 64, 79, 94 and 95 the hardware's, 45 follows from others. Memory: errors that \
         ECC could not correct.",
    )
    .line("XID {code}", term("job_xid", Value::Rate("errors")), &["code"])
    .line("memory", idle("ecc_uncorrected_errors"), &[]);
    let panels = vec![busy, why, calls, works, traffic, memory, power, lowered, errors];
    Row { title: "GPU", each: None, panels }
}
