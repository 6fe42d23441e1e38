//! The dashboard "Cluster": what is allocated and what is used, by user, account, job and hour.

use super::{
    compose::{over_time, term, whole},
    spec::{Ask, Dashboard, Facts, Look, Panel, Row, Scope, Step, Term, Value, Variable, What},
};

const SCOPE: &[Scope] = &[Scope::AnyOf("user"), Scope::Not("job", "_system")];
const VARIABLES: &[Variable] = &[Variable {
    tag: "user",
    label: "User",
    of: ("job_sched", "on_cpu_ns"),
    within: &[Scope::Not("job", "_system")],
    many: true,
}];
/// Hours of a nanosecond.
const HOURS: f64 = 1.0 / 3.6e12;

/// The dashboard.
pub fn dashboard() -> Dashboard {
    Dashboard {
        uid: "jobtrace-cluster",
        title: "Cluster",
        help: "All jobs: what is allocated but not used, by whom and when. Allocated: a core or \
               GPU that no other job can have. Used: time it was at work.",
        variables: VARIABLES,
        scope: SCOPE,
        from: "now-7d",
        rows: vec![cores(), offenders(), gpus(), hours()],
    }
}

fn used() -> Term {
    term("job_sched", Value::Sum("on_cpu_ns")).times(HOURS)
}

fn held() -> Term {
    term("job_cpu", Value::Product("cores_held", "interval_ns")).times(HOURS)
}

/// Used and held side by side, joined by `column`, with the share used and what was not.
fn joined(panel: Panel, column: &'static str) -> Panel {
    panel
        .step(Step::Join(column))
        .step(Step::Compute("share used", "used", "/", "allocated"))
        .step(Step::Compute("not used", "allocated", "-", "used"))
        .units(&[
            ("share used", "percentunit"),
            ("used", "h"),
            ("allocated", "h"),
            ("not used", "h"),
        ])
}

fn cores() -> Row {
    let now = Panel::new(
        Look::Stack,
        "short",
        "Cores used and allocated",
        "The area is what all jobs used, the dashed line what is allocated to them. The gap could \
         run other jobs.",
    )
    .ask(over_time("used", term("job_sched", Value::Rate("on_cpu_ns")), &[]))
    .ask(over_time("allocated", term("job_cpu", Value::Weighted("cores_held")), &[]))
    .size(18, 8);
    let nodes = Panel::new(
        Look::Last,
        "short",
        "In the time range",
        "Jobs that ran, and the nodes they ran on. If a node is missing, it sends nothing: check its agent.",
    )
    .ask(whole("jobs", term("job_sched", Value::Different("on_cpu_ns", "job")), &[]))
    .ask(whole("nodes", term("job_sched", Value::Different("on_cpu_ns", "host")), &[]))
    .size(6, 8);
    let users = joined(
        Panel::new(
            Look::Table,
            "short",
            "Core hours by user",
            "Allocated: cores times the time they were allocated. Used: time on a CPU. The largest \
             `not used` first: helping these users frees most.",
        )
        .ask(whole("used", used(), &["user"]))
        .ask(whole("allocated", held(), &["user"])),
        "user",
    )
    .step(Step::Arrange { without: &["Time", "Time 1", "Time 2"], names: &[] })
    .step(Step::Sort { by: "not used", up: false })
    .limits(SHARES)
    .size(12, 10);
    let facts = Facts {
        fields: &[("account", "account", 1.0), ("sched_on_cpu_ns", "used", HOURS)],
        ended: true,
        newest: None,
        computed: &[("allocated", "cpu_cores_held * (end - start) / 3600000000000")],
    };
    let accounts = Panel::new(
        Look::Table,
        "short",
        "Core hours by account",
        "For jobs that ended in the time range: a job's account is written with its totals at its \
         end. If the scheduler has no accounts, there is one row without a name.",
    )
    .ask(Ask { legend: "accounts", what: What::Facts(facts) })
    .step(Step::Group { by: &["account"], of: &["used", "allocated"], how: "sum" })
    .step(Step::Arrange {
        without: &[],
        names: &[("used (sum)", "used"), ("allocated (sum)", "allocated")],
    })
    .step(Step::Compute("share used", "used", "/", "allocated"))
    .step(Step::Compute("not used", "allocated", "-", "used"))
    .step(Step::Sort { by: "not used", up: false })
    .units(&[("share used", "percentunit"), ("used", "h"), ("allocated", "h"), ("not used", "h")])
    .limits(SHARES)
    .size(12, 10);
    Row { title: "Allocated and used", each: None, panels: vec![now, nodes, users, accounts] }
}

/// The share used, in colours: little is bad.
const SHARES: &[(f64, &str)] = &[(0.0, "red"), (0.25, "orange"), (0.5, "yellow"), (0.75, "green")];

fn offenders() -> Row {
    let worst = joined(
        Panel::new(
            Look::Table,
            "short",
            "Jobs that leave the most unused",
            "Core hours allocated but not used, the largest first. Open a job in the dashboard Job \
             to see what it waited for.",
        )
        .ask(whole("used", used(), &["job", "user"]))
        .ask(whole("allocated", held(), &["job"])),
        "job",
    )
    .ranked("not used")
    .limits(SHARES);
    let blocked = Panel::new(
        Look::Table,
        "h",
        "Jobs that wait for disks the most",
        "Task hours blocked in the kernel, network file systems included, the largest first.",
    )
    .ask(whole(
        "blocked",
        term("job_sched", Value::Sum("blocked_ns_sum")).times(HOURS),
        &["job", "user"],
    ))
    .ask(whole(
        "waiting for a CPU",
        term("job_sched", Value::Sum("run_queue_wait_ns_sum")).times(HOURS),
        &["job"],
    ))
    .step(Step::Join("job"))
    .ranked("blocked");
    let memory = Panel::new(
        Look::Table,
        "bytes",
        "Memory: largest use against the limit",
        "For jobs with a limit, on the node where each used most. A limit far above the largest \
         use keeps memory from other jobs.",
    )
    .ask(whole("largest use", term("job_memory", Value::Largest("peak_bytes")), &["job", "user"]))
    .ask(whole("limit", term("job_memory", Value::Largest("limit_bytes")), &["job"]))
    .step(Step::Join("job"))
    .step(Step::Arrange { without: &["Time", "Time 1", "Time 2"], names: &[] })
    .step(Step::Compute("share used", "largest use", "/", "limit"))
    .step(Step::Sort { by: "limit", up: false })
    .step(Step::First(25))
    .units(&[("share used", "percentunit")])
    .limits(SHARES)
    .size(12, 10);
    let killed = Panel::new(
        Look::Table,
        "short",
        "Jobs killed for memory, and major faults",
        "Tasks that the kernel killed because their job's memory was full; page faults that had to \
         read from disk.",
    )
    .ask(whole("killed", term("job_fault", Value::Sum("oom_kills")), &["job", "user"]))
    .ask(whole("major faults", term("job_fault", Value::Sum("major")), &["job"]))
    .step(Step::Join("job"))
    .ranked("major faults");
    Row { title: "Worst offenders", each: None, panels: vec![worst, blocked, memory, killed] }
}

fn gpus() -> Row {
    let hours = |field| term("job_gpu", Value::Sum(field)).times(HOURS);
    let users = Panel::new(
        Look::Table,
        "h",
        "GPU hours by user",
        "Allocated: the job had the GPU. With a process: one of the job's processes used it. At \
         work: a kernel ran. The largest `not at work` first.",
    )
    .ask(whole("allocated", hours("held_ns"), &["user"]))
    .ask(whole("with a process", hours("used_ns"), &["user"]))
    .ask(whole("at work", hours("busy_ns"), &["user"]))
    .step(Step::Join("user"))
    .step(Step::Compute("share at work", "at work", "/", "allocated"))
    .step(Step::Compute("not at work", "allocated", "-", "at work"))
    .step(Step::Arrange { without: &["Time", "Time 1", "Time 2", "Time 3"], names: &[] })
    .step(Step::Sort { by: "not at work", up: false })
    .units(&[("share at work", "percentunit")])
    .limits(SHARES)
    .size(12, 10);
    let by = &["job", "user", "host", "gpu"];
    let idle = Panel::new(
        Look::Table,
        "percentunit",
        "GPUs that do the least",
        "Share of the allocated time in which a kernel ran, for each GPU of each job, including \
         those that the job never used; the lowest first. The dashboard Job shows why a GPU was \
         idle.",
    )
    .ask(whole("share at work", term("job_gpu", Value::Ratio("busy_ns", "held_ns")), by))
    .step(Step::Arrange { without: &["Time"], names: &[] })
    .step(Step::Sort { by: "share at work", up: true })
    .step(Step::First(25))
    .units(&[("share at work", "percentunit")])
    .limits(SHARES)
    .size(12, 10);
    let busy = Panel::new(
        Look::Lines,
        "percentunit",
        "GPUs: share of the time at work, by user",
        "The mean over all GPUs that the user's jobs have.",
    )
    .line(
        "{user}",
        term("job_gpu", Value::Ratio("utilization_ratio_sum", "utilization_ratio_count")),
        &["user"],
    )
    .size(24, 8);
    Row { title: "GPUs allocated and used", each: None, panels: vec![users, idle, busy] }
}

/// Core hours by a part of the time.
fn by_clock(title: &'static str, help: &'static str, format: &'static str) -> Panel {
    Panel::new(Look::Columns, "h", title, help)
        .ask(Ask { legend: "used", what: What::Hourly(used(), &[]) })
        .ask(Ask { legend: "allocated", what: What::Hourly(held(), &[]) })
        .step(Step::Join("Time"))
        .step(Step::Clock(format))
        .step(Step::Group { by: &["Time"], of: &["used", "allocated"], how: "sum" })
        .step(Step::Sort { by: "Time", up: true })
        .step(Step::Arrange {
            without: &[],
            names: &[("used (sum)", "used"), ("allocated (sum)", "allocated")],
        })
}

fn hours() -> Row {
    let hour = by_clock(
        "Core hours by hour of the day",
        "When is the cluster allocated, and when is it at work? All days of the time range \
         together, by your browser's clock.",
        "HH",
    );
    let weekday = by_clock(
        "Core hours by weekday",
        "All weeks of the time range together; 1 is Monday.",
        "E ddd",
    );
    Row { title: "By hour and weekday", each: None, panels: vec![hour, weekday] }
}
