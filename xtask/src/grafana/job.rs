//! The dashboard "Job": where one job's time went, and why.

use super::{
    compose::{term, whole},
    job_devices::{disk, gpu, heat, memory, percentiles},
    job_net::network,
    job_waits::causes,
    spec::{Ask, Dashboard, Facts, Look, Panel, Row, Scope, Term, Value, Variable, What},
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
        help: "One job: where its time went, and whether CPU, disk, memory or GPU slowed it down. \
               Start at the top: the first row shows which of the rows below to look at.",
        variables: VARIABLES,
        scope: SCOPE,
        from: "now-6h",
        rows: vec![
            overview(),
            time(),
            causes(),
            waiting(),
            disk(),
            network(),
            memory(),
            gpu(),
            nodes(),
        ],
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
        "What the scheduler knows about the job. Empty if the scheduler does not say; some fields stay empty until the job has ended.",
    )
    .ask(Ask { legend: "facts", what: What::Facts(facts) })
    .units(&[("began", "dateTimeAsIso"), ("ended", "dateTimeAsIso")])
    .size(24, 4);
    let cores = Panel::new(
        Look::Numbers,
        "short",
        "Cores: used of allocated",
        "Used: how many cores the job kept busy on average. Allocated: how many it may use. If far \
         fewer are used than allocated, other jobs wait for cores that this one leaves idle: \
         request fewer, or see below what it waited for.",
    )
    .line("used", on_cpu(), &[])
    .line("allocated", held(), &[])
    .size(6, 6);
    let went = Panel::new(
        Look::Bars,
        "s",
        "Where the time went, all tasks added up",
        "The longest bar is the answer. On CPU: it computed. Waiting for a CPU: more busy tasks \
         than cores. Blocked: it waited in the kernel, mostly for a disk or file system. Asleep: it \
         waited for something else, such as the network, a lock or a GPU, or had nothing to do; \
         idle helper threads make this bar long in any job. The row `What its tasks waited for` \
         splits the last two.",
    )
    .ask(seconds("on CPU", "on_cpu_ns"))
    .ask(seconds("waiting for a CPU", "run_queue_wait_ns_sum"))
    .ask(seconds("blocked", "blocked_ns_sum"))
    .ask(seconds("asleep", "sleep_ns_sum"))
    .size(9, 6);
    let fault = |field| term("job_fault", Value::Sum(field));
    let trouble = Panel::new(
        Look::Last,
        "short",
        "Signs of trouble",
        "Killed for memory: tasks that the kernel killed because the job's memory was full. Major \
         faults: memory that had to be read from disk; thousands of them mean too little memory. \
         I/O errors: a failing disk.",
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
        "How many tasks were doing what, on average. Mostly `on CPU`: the job computes, which is \
         good. Mostly `waiting for a CPU`: start fewer threads or request more cores. Mostly \
         `blocked`: the next row shows on what. None of these: its tasks slept.",
    )
    .line("on CPU", on_cpu(), &[])
    .line("waiting for a CPU", sched(Value::Rate("run_queue_wait_ns_sum")), &[])
    .line("blocked", sched(Value::Rate("blocked_ns_sum")), &[])
    .size(12, 9);
    let cores = Panel::new(
        Look::Stack,
        "short",
        "Cores used and allocated",
        "The area is what the job used, the dashed line what is allocated to it. A lasting gap is \
         paid for but not used. Throttled: the quota on its CPU time slowed it down.",
    )
    .line("used", on_cpu(), &[])
    .line("allocated", held(), &[])
    .line("throttled", term("job_cpu", Value::Rate("throttled_ns")), &[])
    .size(12, 9);
    Row { title: "Where the time went", each: None, panels: vec![split, cores] }
}

fn waiting() -> Row {
    let heatmap = heat(
        "How long tasks waited for a CPU",
        "Each column is a moment, each cell the number of waits of that length (darker is more). A \
         band that stays low is fine; one that rises to milliseconds means that tasks queue for \
         CPUs. Needs the agent's profile `histogram` or `full`.",
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
            "The worst node at each point. Around 10 µs is usual; milliseconds mean that too many \
             busy tasks share the cores.",
        ),
    );
    let switches = Panel::new(
        Look::Lines,
        "cps",
        "Switches and migrations",
        "Voluntary: the task went to sleep or blocked. Involuntary: it was preempted by another. \
         Many involuntary switches go with waiting for a CPU. Migrations: moves to another CPU; \
         many of them are bad for caches: pin the tasks.",
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
            "How long a task was blocked each time, mostly for a disk or a file system, network file \
             systems included.",
        ),
    );
    Row { title: "Waiting", each: None, panels: vec![heatmap, wait, switches, blocked] }
}

fn nodes() -> Row {
    let split = Panel::new(
        Look::Stack,
        "short",
        "What its tasks did",
        "As above, on this node alone. One node that differs from the others slows down the whole job.",
    )
    .line("on CPU", on_cpu(), &[])
    .line("waiting for a CPU", sched(Value::Rate("run_queue_wait_ns_sum")), &[])
    .line("blocked", sched(Value::Rate("blocked_ns_sum")), &[])
    .line("allocated", held(), &[])
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
