//! Page faults under `jobtrace run`, against rusage.

use jobtrace_tests::{
    agree::Agreement,
    disk::RamDisk,
    traced::{Traced, count_and_sum},
};

use super::{Found, workload};

/// Faults of a workload's first process after its report.
const LAST_FAULTS: u64 = 60;
const PAGE: u64 = 4096;

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
        if mode == "full" {
            if job.json["fault"]["minor_latency_ns"].is_null() {
                return Err("no hook gives the latency of minor faults".into());
            }
            let (timed, _) = job.hist("fault", "minor_latency_ns");
            agree.between("full: minor, timed one by one", timed, 1..=ours);
        }
    }
    Ok(agree)
}

/// Pages of a device of our own that are not in the page cache, read by two processes in turn.
pub fn major() -> Found {
    const PAGES: u64 = 200;
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
        let timed = &job.json["fault"]["major_latency_ns"];
        if mode == "full" && !timed.is_null() {
            agree.exact(&named("major faults timed"), count_and_sum(timed).0, major);
        }
    }
    Ok(agree)
}
