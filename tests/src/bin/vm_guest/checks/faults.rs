//! Page faults under `jobtrace run`, against rusage.

use std::iter;

use jobtrace_tests::{
    agree::Agreement,
    disk::RamDisk,
    traced::{Traced, count_and_sum},
};

use super::{Found, workload};

/// Faults of a workload's first process after its report.
const LAST_FAULTS: u64 = 60;
const PAGE: u64 = 4096;
/// Pages of a device that each of two processes reads.
const PAGES: u64 = 200;

pub fn minor() -> Found {
    let touch = workload("touch");
    let mut agree = Agreement::new();
    for mode in ["major", "full"] {
        let command = [&*touch, "fresh", "2000"];
        let (job, report) = Traced::report(&["--faults", mode], &command);
        let truth = report.range(|all| all.minor);
        let bounds = *truth.start()..=truth.end() + LAST_FAULTS;
        let ours = job.number("fault", "minor");
        agree.between(&format!("{mode}: minor"), ours, bounds);
        agree.between(&format!("{mode}: minor, pages touched"), ours, 2000..=3500);
    }
    Ok(agree)
}

/// Pages of a device of our own that are not in the page cache, read by two processes in turn.
pub fn major() -> Found {
    let touch = workload("touch");
    let mut agree = Agreement::new();
    for mode in ["major", "full"] {
        let disk = RamDisk::new(PAGES * PAGE);
        let command = [&*touch, "file", &disk.path(), "2"];
        let (job, report) = Traced::report(&["--faults", mode], &command);
        let named = |what: &str| format!("{mode}: {what}");
        let major = job.number("fault", "major");
        let truth = report.range(|all| all.major);
        agree.near(&named("major"), major, truth, 0, 0);
        agree.between(&named("major, pages touched"), major, 2 * PAGES..=2 * PAGES + 20);
        // A page may have come by the time the task would wait for it.
        let waits = job.hist("fault", "major_wait_ns").0;
        agree.between(&named("major_wait_ns, count"), waits, 1..=major);
        let read = job.block_amount(&disk.name(), "read").0;
        agree.exact(&named("bytes read"), read, 2 * PAGES * PAGE);
    }
    Ok(agree)
}

/// How many faults are timed: all major ones, and some of the minor ones.
pub fn latencies() -> Found {
    let touch = workload("touch");
    let disk = RamDisk::new(PAGES * PAGE);
    let mut agree = Agreement::new();
    for (words, kind) in [(["fresh", "2000", ""], "minor"), (["file", &disk.path(), "2"], "major")]
    {
        let words = words.iter().copied().filter(|word| !word.is_empty());
        let command: Vec<&str> = iter::once(&*touch).chain(words).collect();
        let (job, _) = Traced::report(&["--faults", "full"], &command);
        let ours = job.number("fault", kind);
        let timed = &job.json["fault"][format!("{kind}_latency_ns")];
        if timed.is_null() {
            return Err(format!("no hook gives the latency of {kind} faults"));
        }
        let least = if kind == "major" { ours } else { 1 };
        let (count, sum) = count_and_sum(timed);
        agree.between(&format!("{kind} faults timed"), count, least..=ours);
        if kind == "major" {
            // A fault takes what its task was blocked in it, and more.
            let waited = job.hist("fault", "major_wait_ns").1;
            agree.between("major_latency_ns, sum", sum, waited..=u64::MAX);
        }
    }
    Ok(agree)
}
