//! The dashboard "Node": the jobs on one node, and what jobtrace itself costs there.

use super::{
    compose::{term, whole},
    spec::{Ask, Dashboard, Facts, Look, Panel, Row, Scope, Term, Value, Variable, What},
};

const SCOPE: &[Scope] = &[Scope::One("host")];
const VARIABLES: &[Variable] = &[Variable {
    tag: "host",
    label: "Node",
    of: ("jobtrace_self", "cpu_ns"),
    within: &[],
    many: false,
}];
/// One line for each job.
const JOB: &[&str] = &["job", "user"];

/// The dashboard.
pub fn dashboard() -> Dashboard {
    Dashboard {
        uid: "jobtrace-node",
        title: "Node",
        help: "One node: which job used what, and what jobtrace itself costs. `_system` is \
               everything that belongs to no job.",
        variables: VARIABLES,
        scope: SCOPE,
        from: "now-6h",
        rows: vec![jobs(), disks(), network(), own()],
    }
}

fn by_job(title: &'static str, help: &'static str, unit: &'static str, asked: Term) -> Panel {
    Panel::new(Look::Stack, unit, title, help).line("{job} {user}", asked, JOB)
}

fn sched(value: Value) -> Term {
    term("job_sched", value)
}

fn jobs() -> Row {
    let facts = Facts {
        fields: &[
            ("name", "name", 1.0),
            ("account", "account", 1.0),
            ("partition", "partition", 1.0),
            ("start", "began", 1e-6),
            ("end", "ended", 1e-6),
        ],
        ended: false,
        newest: Some(200),
        computed: &[],
    };
    let list = Panel::new(
        Look::Table,
        "none",
        "Jobs",
        "What the scheduler knows about the jobs on this node. Written again every five minutes for each running job.",
    )
    .ask(Ask { legend: "facts", what: What::Facts(facts) })
    .units(&[("began", "dateTimeAsIso"), ("ended", "dateTimeAsIso")])
    .size(24, 6);
    let cores = by_job(
        "Cores used",
        "Cores that each job kept busy; together they are the load of the node.",
        "short",
        sched(Value::Rate("on_cpu_ns")),
    );
    let held = by_job(
        "Cores allocated",
        "Cores that each job may use at once. Compare with `Cores used` to see what is allocated but not used.",
        "short",
        term("job_cpu", Value::Weighted("cores_held")),
    );
    let waiting = by_job(
        "Tasks waiting for a CPU",
        "How many tasks, on average, waited for a CPU. If several jobs wait at once, the node has \
         more busy tasks than cores; if only one does, it has more busy threads than cores of its \
         own.",
        "short",
        sched(Value::Rate("run_queue_wait_ns_sum")),
    );
    let blocked = by_job(
        "Tasks blocked",
        "How many tasks, on average, waited in the kernel, mostly for a disk or file system. If all jobs do so at once, \
         the file system is slow.",
        "short",
        sched(Value::Rate("blocked_ns_sum")),
    );
    let memory = by_job(
        "Memory",
        "Memory charged to each job, its file cache included.",
        "bytes",
        term("job_memory", Value::Level("current_bytes")),
    );
    let faults = by_job(
        "Major page faults",
        "Pages that had to be read from disk, per second. If there are many, some job has too little memory.",
        "cps",
        term("job_fault", Value::Rate("major")),
    );
    Row {
        title: "Jobs",
        each: None,
        panels: vec![list, cores, held, waiting, blocked, memory, faults],
    }
}

fn disks() -> Row {
    let bytes = Panel::new(
        Look::Stack,
        "Bps",
        "Disk throughput",
        "Bytes that each job moves on each local disk.",
    )
    .line(
        "{job} {device} {op}",
        term("job_block", Value::Rate("bytes")),
        &["job", "device", "op"],
    );
    let latency = Panel::new(
        Look::Lines,
        "ns",
        "Disk latency, 99 of 100 within",
        "The disk's response time as each job saw it. If it is high for all jobs, the disk is the limit.",
    )
    .line(
        "{job} {device} {op}",
        term("job_block", Value::Largest("device_latency_ns_p99")),
        &["job", "device", "op"],
    );
    let gpu = Panel::new(
        Look::Lines,
        "percentunit",
        "GPUs: share of the time at work",
        "For each GPU while a job has it.",
    )
    .line(
        "{job} {gpu}",
        term("job_gpu", Value::Ratio("utilization_ratio_sum", "utilization_ratio_count")),
        &["job", "gpu"],
    );
    let power = Panel::new(
        Look::Stack,
        "watt",
        "GPU power",
        "Mean power of each GPU while a job has it. A GPU that is busy but draws little power does little work.",
    )
    .line(
        "{job} {gpu}",
        term("job_gpu", Value::Ratio("power_watts_sum", "power_watts_count")),
        &["job", "gpu"],
    );
    Row { title: "Disks and GPUs", each: None, panels: vec![bytes, latency, gpu, power] }
}

fn network() -> Row {
    let by_device = |title, help, field| {
        Panel::new(Look::Stack, "Bps", title, help).line(
            "{device}",
            term("node_net", Value::Rate(field)),
            &["device"],
        )
    };
    let sent = by_device(
        "Network devices: sent",
        "By the devices' own counters, RDMA (most of MPI on InfiniBand) included. They do not tell which job sent it.",
        "sent_bytes",
    );
    let received = by_device(
        "Network devices: received",
        "The same for what the devices received.",
        "received_bytes",
    );
    let jobs = by_job(
        "Sockets: sent by job",
        "Bytes that each job sent through sockets, including those that stay on the node. RDMA is not included.",
        "Bps",
        term("job_net", Value::Rate("sent_bytes")),
    );
    let trouble = Panel::new(
        Look::Lines,
        "cps",
        "Network devices: packets with errors, dropped",
        "If there are many, a cable, a port or a switch is faulty, or packets arrive faster than the node takes them.",
    )
    .line("{device} errors", term("node_net", Value::Rate("errors")), &["device"])
    .line("{device} dropped", term("node_net", Value::Rate("dropped")), &["device"]);
    Row { title: "Network", each: None, panels: vec![sent, received, jobs, trouble] }
}

fn own() -> Row {
    let own = |value| term("jobtrace_self", value);
    let share = Panel::new(
        Look::Lines,
        "percentunit",
        "jobtrace: share of the node's CPUs",
        "Share of all CPUs' time taken by the probes in the kernel. If it stays above the limit \
         (`overhead.max_ratio`), the agent detaches the costliest probes.",
    )
    .line("probes", own(Value::Largest("overhead_ratio")), &[])
    .limits(&[(0.01, "yellow"), (0.02, "red")]);
    let cpu = Panel::new(
        Look::Lines,
        "short",
        "jobtrace: cores used by the agent",
        "CPU time of the agent itself, including that for reading the maps.",
    )
    .line("agent", own(Value::Rate("cpu_ns")), &[])
    .line("reading the maps", own(Value::Rate("drain_ns")), &[]);
    let memory = Panel::new(
        Look::Lines,
        "bytes",
        "jobtrace: memory",
        "The agent's resident memory, and that of its maps in the kernel.",
    )
    .line("agent", own(Value::Level("rss_bytes")), &[])
    .line("maps", own(Value::Level("map_bytes")), &[]);
    let lost = |legend, field| whole(legend, own(Value::Sum(field)), &[]);
    let losses = Panel::new(
        Look::Last,
        "short",
        "jobtrace: what is missing",
        "Everything should be zero. No slot: more jobs than `slots`; the rest count in `_system`. \
         Spool: nothing collected the files in time. Late: the node was too busy to be read in \
         time, but nothing is lost.",
    )
    .ask(lost("no slot", "dropped_slot"))
    .ask(lost("no room for a cgroup", "dropped_cgroup"))
    .ask(lost("cgroup events lost", "dropped_cgroup_event"))
    .ask(lost("spool files dropped", "dropped_spool_files"))
    .ask(lost("intervals lost", "dropped_intervals"))
    .ask(lost("intervals late", "late_intervals"))
    .ask(whole("families of probes shed", own(Value::Largest("shed_families")), &[]))
    .ask(whole("hooks missing", own(Value::Largest("hooks_missing")), &[]))
    .limits(&[(1.0, "orange")]);
    let interval = Panel::new(
        Look::Last,
        "ns",
        "jobtrace: the agent's interval",
        "The longest in the time range. Select it, or a longer one, at the top.",
    )
    .ask(whole("interval", own(Value::Largest("interval_ns")), &[]))
    .size(6, 4);
    let count = Panel::new(
        Look::Last,
        "short",
        "Jobs with cgroups now",
        "Jobs that have cgroups on the node, as the agent counts them.",
    )
    .line("jobs", own(Value::Level("jobs")), &[])
    .size(6, 4);
    let panels = vec![share, cpu, memory, losses, interval, count];
    Row { title: "jobtrace itself", each: None, panels }
}
