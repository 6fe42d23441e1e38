//! Tasks, switches, waits and time on CPU under `jobtrace run`.

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::{
    account::Report,
    agree::{Agreement, MS},
    sibling::Sibling,
    traced::Traced,
};

use super::{Found, workload};

/// Switches of a workload's first process after its report: it writes that and ends, which takes long
/// under emulation. The agent's checks know the first process's whole account and allow nothing.
const LAST_SWITCHES: u64 = 40;
/// What these may wait for a CPU and take of it, ns: on a busy host an emulated CPU stands still now and
/// then, and the guest takes that for time on it.
const LAST_NS: u64 = 2000 * MS;
/// Nothing is estimated where there is no reading between the first and the last.
const NO_READING_MEANWHILE: [&str; 2] = ["--interval", "10m"];

pub fn tasks_made() -> Found {
    let mut agree = Agreement::new();
    let breed = workload("breed");
    for (what, forks, execs) in [("forks", 30, 1), ("execs", 10, 11), ("threads", 30, 1)] {
        let count = if what == "execs" { "10" } else { "30" };
        let forks = if what == "execs" { 10 } else { forks };
        let command = [&*breed, what, count];
        let (job, _) = Traced::report(&[], &command);
        agree.exact(&format!("{what}: forks"), job.number("sched", "forks"), forks);
        agree.exact(&format!("{what}: execs"), job.number("sched", "execs"), execs);
    }
    Ok(agree)
}

/// Three busy processes on each CPU, and one more in a sibling.
pub fn crowd() -> Found {
    let spin = workload("spin");
    let command = [&*spin, "crowd", "6", "300"];
    let sibling = Sibling::start(&[&spin, "crowd", "1", "300"]);
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    sibling.end();
    let mut agree = Agreement::new();
    own_account(&mut agree, &job, &report);
    let own = Hierarchies::read().unwrap();
    // jobtrace joins no hierarchy that schedules: the job then has no cpuacct of its own.
    if own.v1("cpuacct").is_none_or(|v1| !v1.has("cpu")) {
        let on_cpu = job.number("sched", "on_cpu_ns");
        // The cgroup's own file was read while the first process still ran.
        let most = report.usage_ns + report.usage_ns / 100 + LAST_NS;
        let least = report.usage_ns - report.usage_ns / 100;
        agree.between("on_cpu_ns, of the cgroup", on_cpu, least..=most);
    }
    let moves = job.number("sched", "migrations");
    agree.near("migrations", moves, report.range(|all| all.migrations), 0, 2);
    Ok(agree)
}

pub fn sleeps() -> Found {
    let rest = workload("rest");
    let command = [&*rest, "sleep", "100", "5"];
    let (job, report) = Traced::report(&NO_READING_MEANWHILE, &command);
    let mut agree = Agreement::new();
    own_account(&mut agree, &job, &report);
    let (count, sum) = job.hist("sched", "sleep_ns");
    agree.between("sleeps", count, 100..=103);
    let off = report.fact("off_cpu_ns");
    agree.near("sleep_ns", sum, off..=off, 2, 100 * MS);
    Ok(agree)
}

/// The sums of /proc/PID/status and /proc/PID/schedstat over the job's tasks, nothing missing: more
/// than they say by what the first process does after its report only.
fn own_account(agree: &mut Agreement, job: &Traced, report: &Report) {
    let mut least = |what: &str, ours: u64, truth: std::ops::RangeInclusive<u64>, last: u64| {
        agree.between(what, ours, *truth.start()..=truth.end() + last);
    };
    let number = |field: &str| job.number("sched", field);
    let truth = report.range(|all| all.voluntary);
    least("switches_voluntary", number("switches_voluntary"), truth, LAST_SWITCHES);
    let truth = report.range(|all| all.involuntary);
    least("switches_involuntary", number("switches_involuntary"), truth, LAST_SWITCHES);
    let waited = job.hist("sched", "run_queue_wait_ns").1;
    least("run_queue_wait_ns", waited, report.range(|all| all.run_delay_ns), LAST_NS);
    let on_cpu = report.range(|all| all.on_cpu_ns);
    least("on_cpu_ns, schedstat", number("on_cpu_ns"), on_cpu, LAST_NS);
}
