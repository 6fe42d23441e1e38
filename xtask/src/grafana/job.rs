//! The dashboard "Job": where one job's time went, and why.

use super::spec::{
    Ask, Dashboard, Facts, Look, Panel, Row, Scope, Term, Value, Variable, What, term, whole,
};

const SCOPE: &[Scope] = &[Scope::One("job"), Scope::AnyOf("host")];
const VARIABLES: &[Variable] = &[
    Variable { tag: "job", label: "Job", of: ("job_info", "start"), within: &[], many: false },
    Variable {
        tag: "host",
        label: "Node",
        of: ("job_sched", "on_cpu_ns"),
        within: &[Scope::One("job")],
        many: true,
    },
];

/// Seconds of a nanosecond.
const SECONDS: f64 = 1e-9;
/// Milliseconds, in which Grafana takes dates, of a nanosecond.
const MILLISECONDS: f64 = 1e-6;

/// The dashboard.
pub fn dashboard() -> Dashboard {
    Dashboard {
        uid: "jobtrace-job",
        title: "Job",
        help: "One job: where its time went, and whether CPU, disk, memory or GPU held it up. \
               Read from the top: the first row says which of the rows below to look at.",
        variables: VARIABLES,
        scope: SCOPE,
        from: "now-6h",
        rows: vec![overview(), time(), waiting(), disk(), memory(), gpu(), nodes()],
    }
}

fn sched(value: Value) -> Term {
    term("job_sched", value)
}

fn on_cpu() -> Term {
    sched(Value::Rate("on_cpu_ns"))
}

fn held() -> Term {
    term("job_cpu", Value::Level("cores_held"))
}

fn overview() -> Row {
    let seconds = |legend, field| whole(legend, sched(Value::Sum(field)).times(SECONDS), &[]);
    let facts = Facts {
        fields: &[
            ("name", "name", 1.0),
            ("account", "account", 1.0),
            ("partition", "partition", 1.0),
            ("start", "began", MILLISECONDS),
            ("end", "ended", MILLISECONDS),
            ("exit", "exit status", 1.0),
        ],
        ended: false,
        newest: Some(1),
        computed: &[],
    };
    let who = Panel::new(
        Look::Table,
        "none",
        "The job",
        "What the scheduler knows of it. Empty where the scheduler does not tell, and until it has ended.",
    )
    .ask(Ask { legend: "facts", what: What::Facts(facts) })
    .units(&[("began", "dateTimeAsIso"), ("ended", "dateTimeAsIso")])
    .size(24, 4);
    let cores = Panel::new(
        Look::Numbers,
        "short",
        "Cores: used of held",
        "Used: how many cores the job kept busy on average. Held: how many it was given. Far less used \
         than held means that others wait for cores which this job does not use: ask for fewer, or see \
         below what it waited for.",
    )
    .line("used", on_cpu(), &[])
    .line("held", held(), &[])
    .size(6, 6);
    let went = Panel::new(
        Look::Bars,
        "s",
        "Where the time went, all tasks added up",
        "The longest bar is the answer. On CPU: it computed. Waiting for a CPU: more busy tasks than \
         cores. Blocked: it waited for a disk or file system. Asleep: it waited for something else, a \
         network, a lock, a GPU or nothing to do; idle helper threads make this bar long in any job.",
    )
    .ask(seconds("on CPU", "on_cpu_ns"))
    .ask(seconds("waiting for a CPU", "run_queue_wait_ns_sum"))
    .ask(seconds("blocked (I/O)", "blocked_ns_sum"))
    .ask(seconds("asleep", "sleep_ns_sum"))
    .size(9, 6);
    let fault = |field| term("job_fault", Value::Sum(field));
    let trouble = Panel::new(
        Look::Last,
        "short",
        "Signs of trouble",
        "Killed for memory: tasks that the kernel ended because the job's memory was full. Major faults: \
         memory that had to come back from disk, thousands of them mean too little memory. I/O errors: a \
         sick disk.",
    )
    .ask(whole("killed for memory", fault("oom_kills"), &[]))
    .ask(whole("major faults", fault("major"), &[]))
    .ask(whole("I/O errors", term("job_block", Value::Sum("errors")), &[]))
    .limits(&[(1.0, "red")])
    .size(9, 6);
    Row { title: "In one minute", each: None, panels: vec![who, cores, went, trouble] }
}

fn time() -> Row {
    let split = Panel::new(
        Look::Stack,
        "short",
        "What the job's tasks did",
        "How many tasks were doing what on average. Much `on CPU`: it computes, good. Much `waiting for a \
         CPU`: start fewer threads or ask for more cores. Much `blocked`: look at the row Disk. Nothing of \
         all: its tasks slept.",
    )
    .line("on CPU", on_cpu(), &[])
    .line("waiting for a CPU", sched(Value::Rate("run_queue_wait_ns_sum")), &[])
    .line("blocked (I/O)", sched(Value::Rate("blocked_ns_sum")), &[])
    .size(12, 9);
    let cores = Panel::new(
        Look::Stack,
        "short",
        "Cores used against held",
        "The area is what it used, the dashed line what it holds. A gap that lasts is paid for and \
         unused. Throttled: the limit on its CPU time held it back.",
    )
    .line("used", on_cpu(), &[])
    .line("held", held(), &[])
    .line("throttled", term("job_cpu", Value::Rate("throttled_ns")), &[])
    .size(12, 9);
    Row { title: "Where the time went", each: None, panels: vec![split, cores] }
}

fn percentiles(of: &'static str, parts: [(&'static str, &'static str); 4], panel: Panel) -> Panel {
    parts.into_iter().fold(panel, |panel, (legend, field)| {
        panel.line(legend, term(of, Value::Largest(field)), &[])
    })
}

fn heat(title: &'static str, help: &'static str, metric: &'static str) -> Panel {
    let what = What::Buckets(metric);
    Panel::new(Look::Heatmap, "ns", title, help).ask(Ask { legend: "{le}", what })
}

fn waiting() -> Row {
    let heatmap = heat(
        "How long tasks waited for a CPU",
        "Each column is a moment, each cell how many waits were so long (darker is more). A band that \
         stays low is fine; one that rises to milliseconds means that tasks stand in line. Needs the \
         agent's profile `histogram` or `full`.",
        "sched.run_queue_wait_ns",
    );
    let wait = percentiles(
        "job_sched",
        [
            ("half within", "run_queue_wait_ns_p50"),
            ("9 of 10 within", "run_queue_wait_ns_p90"),
            ("99 of 100 within", "run_queue_wait_ns_p99"),
            ("longest", "run_queue_wait_ns_max"),
        ],
        Panel::new(
            Look::Lines,
            "ns",
            "Waits for a CPU: percentiles",
            "Of the worst node in each step. Some 10 µs are usual; milliseconds say that cores are \
             shared by too many busy tasks.",
        ),
    );
    let switches = Panel::new(
        Look::Lines,
        "cps",
        "Switches and migrations",
        "Voluntary: the task went to sleep or blocked. Involuntary: it was pushed off its CPU by another. \
         Many involuntary ones go with waiting for a CPU. Migrations: moves to another CPU, bad for \
         caches where they are many; pin the tasks.",
    )
    .line("voluntary", sched(Value::Rate("switches_voluntary")), &[])
    .line("involuntary", sched(Value::Rate("switches_involuntary")), &[])
    .line("migrations", sched(Value::Rate("migrations")), &[]);
    let blocked = percentiles(
        "job_sched",
        [
            ("half within", "blocked_ns_p50"),
            ("9 of 10 within", "blocked_ns_p90"),
            ("99 of 100 within", "blocked_ns_p99"),
            ("longest", "blocked_ns_max"),
        ],
        Panel::new(
            Look::Lines,
            "ns",
            "Blocked: percentiles",
            "How long a task stood still each time it waited for a disk or a file system, network file \
             systems included.",
        ),
    );
    Row { title: "Waiting", each: None, panels: vec![heatmap, wait, switches, blocked] }
}

fn disk() -> Row {
    let block = |value| term("job_block", value);
    let bytes = Panel::new(
        Look::Stack,
        "Bps",
        "Disk throughput",
        "Bytes that local disks moved for the job. Network file systems (Lustre, NFS) do not pass here.",
    )
    .line("{device} {op}", block(Value::Rate("bytes")), &["device", "op"]);
    let size = Panel::new(
        Look::Lines,
        "bytes",
        "Mean size of a request",
        "Below some 64 KiB a disk is slow however good it is: read and write larger pieces.",
    )
    .line(
        "{device} {op}",
        block(Value::Ratio("size_bytes_sum", "size_bytes_count")),
        &["device", "op"],
    );
    let heatmap = heat(
        "How long the disk took",
        "Each cell counts requests that took so long on the device. Two bands are common: cache above, \
         disk below. A band that rises says that the disk is the limit.",
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
            "From the request's issue to its end, of the worst disk in each step. A good SSD answers within \
             0.1 ms, a hard disk within 10 ms.",
        ),
    );
    let ops =
        Panel::new(Look::Stack, "iops", "Requests", "Requests that disks completed for the job.")
            .line("{device} {op}", block(Value::Rate("ops")), &["device", "op"]);
    let queue = Panel::new(
        Look::Lines,
        "ns",
        "Mean time in the queue",
        "Before the disk saw the request. More than the disk itself takes: too many requests at once.",
    )
    .line(
        "{device} {op}",
        block(Value::Ratio("queue_latency_ns_sum", "queue_latency_ns_count")),
        &["device", "op"],
    );
    Row { title: "Disk", each: None, panels: vec![bytes, size, heatmap, latency, ops, queue] }
}

fn memory() -> Row {
    let level = |field| term("job_memory", Value::Level(field));
    let used = Panel::new(
        Look::Lines,
        "bytes",
        "Memory against its limit",
        "In use: all that counts against the limit, the dashed line. File cache gives way when memory is \
         short; the job's own (anonymous) memory does not. Own memory near the limit ends in a kill.",
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
        "Minor: memory used for the first time, cheap, but millions a second cost. Major: it had to come \
         from disk, each as slow as the disk.",
    )
    .line("minor", fault(Value::Rate("minor")), &[])
    .line("major", fault(Value::Rate("major")), &[]);
    let waits = Panel::new(
        Look::Lines,
        "short",
        "Tasks blocked by major faults",
        "How many tasks stood still on average until a page had come from disk. A part of `blocked` above.",
    )
    .line("blocked by major faults", fault(Value::Rate("major_wait_ns_sum")), &[]);
    let pressure = |field| term("job_memory", Value::Rate(field));
    let stalls = Panel::new(
        Look::Lines,
        "short",
        "Pressure, as the kernel sees it",
        "Share of the time in which some task of the job stood still for want of the resource, added over \
         its nodes. Empty where the kernel does not measure it (PSI, cgroup v1).",
    )
    .line("CPU", pressure("cpu_some_stall_ns"), &[])
    .line("memory", pressure("memory_some_stall_ns"), &[])
    .line("I/O", pressure("io_some_stall_ns"), &[]);
    Row { title: "Memory", each: None, panels: vec![used, faults, waits, stalls] }
}

fn gpu() -> Row {
    let gpu = |value| term("job_gpu", value);
    let busy = Panel::new(
        Look::Lines,
        "percentunit",
        "GPU: share of the time at work",
        "How much of the time a kernel ran on the GPU. Long stretches far below 100 %: the GPU waits for \
         the job; the panel beside says for what.",
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
        "How many GPUs were idle on average, by what the job's tasks did at the same time. Blocked: data \
         did not come from disk fast enough. Waiting for a CPU: too few cores to feed it. Faulting: memory \
         was being set up. On CPU: the job computed on the CPU first. Other: it slept, or waited for a \
         network.",
    )
    .line("blocked (I/O)", idle("idle_while_blocked_ns"), &[])
    .line("waiting for a CPU", idle("idle_while_run_queue_ns"), &[])
    .line("faulting", idle("idle_while_faulting_ns"), &[])
    .line("on CPU", idle("idle_while_on_cpu_ns"), &[])
    .line("other", idle("idle_other_ns"), &[]);
    let memory = Panel::new(
        Look::Lines,
        "bytes",
        "GPU memory",
        "What the job's processes hold on the GPU. Much to spare: a larger batch may keep it busier.",
    )
    .line("{host} {gpu}", gpu(Value::Level("memory_used_bytes")), &["host", "gpu"]);
    let power = Panel::new(
        Look::Lines,
        "watt",
        "GPU power",
        "Mean power of the whole device. A GPU that is busy and draws little does little.",
    )
    .line(
        "{host} {gpu}",
        gpu(Value::Ratio("power_watts_sum", "power_watts_count")),
        &["host", "gpu"],
    );
    Row { title: "GPU", each: None, panels: vec![busy, why, memory, power] }
}

fn nodes() -> Row {
    let split = Panel::new(
        Look::Stack,
        "short",
        "What its tasks did",
        "As above, on this node alone. One node that differs from the others holds up the whole job.",
    )
    .line("on CPU", on_cpu(), &[])
    .line("waiting for a CPU", sched(Value::Rate("run_queue_wait_ns_sum")), &[])
    .line("blocked (I/O)", sched(Value::Rate("blocked_ns_sum")), &[])
    .line("held", held(), &[])
    .size(8, 7);
    let memory = Panel::new(
        Look::Lines,
        "bytes",
        "Memory",
        "As above, on this node alone; the dashed line is the limit.",
    )
    .line("in use", term("job_memory", Value::Level("current_bytes")), &[])
    .line("limit", term("job_memory", Value::Level("limit_bytes")), &[])
    .size(8, 7);
    let disk = Panel::new(Look::Stack, "Bps", "Disk", "Bytes moved by this node's local disks.")
        .line("{device} {op}", term("job_block", Value::Rate("bytes")), &["device", "op"])
        .size(8, 7);
    Row { title: "Node", each: Some("host"), panels: vec![split, memory, disk] }
}
