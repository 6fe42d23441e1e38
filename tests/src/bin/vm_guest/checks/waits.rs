//! What tasks wait for under `jobtrace run`: programs of one cause each, whose causes add up exactly.

use jobtrace_tests::{
    agree::{Agreement, MS},
    causes::{Causes, Waits, sum},
    disk::RamDisk,
    traced::Traced,
};

use super::{Found, unknown, workload};

/// Waits of each cause, and their milliseconds: long, as a program's start and end are under emulation.
const COUNT: u64 = 20;
const TIME_MS: u64 = 30;
/// Off a CPU by the workload's account and not by ours, or the other way round: the moments of going to
/// sleep and of waking, which emulation stretches.
const MARGIN_NS: u64 = 100 * MS;

/// One of each state, and one for another task.
pub fn few() -> Found {
    causes(&[("timer", "sleep_timer"), ("pipe", "sleep_pipe"), ("vfork", "blocked_child")])
}

/// Others that need nothing but the kernel; some have no io_uring that waits for a time.
pub fn more() -> Found {
    causes(&[
        ("futex", "sleep_lock"),
        ("contention", "sleep_lock"),
        ("poll", "sleep_poll"),
        ("socket", "sleep_socket"),
        ("child", "sleep_child"),
        ("signal", "sleep_signal"),
        ("semaphore", "sleep_message"),
        ("stop", "sleep_stopped"),
    ])
}

fn causes(all: &[(&str, &str)]) -> Found {
    let mut agree = Agreement::new();
    for (name, cause) in all {
        let (waits, off) = traced(&mut agree, name, &[cause])?;
        let named = format!("{name}: {cause}");
        agree.near(&format!("{named}_ns"), waits.ns, off..=off, 2, MARGIN_NS);
    }
    Ok(agree)
}

/// A sleep that a stop interrupted, which the kernel then goes on with as another call.
pub fn after_a_stop() -> Found {
    let mut agree = Agreement::new();
    for (name, cause) in [("stopped-timer", "sleep_timer"), ("stopped-futex", "sleep_lock")] {
        traced(&mut agree, name, &["sleep_stopped", cause])?;
    }
    Ok(agree)
}

/// The waits of `causes` in `wait NAME`, and what it says of them.
fn traced(agree: &mut Agreement, name: &str, causes: &[&str]) -> Result<(Waits, u64), String> {
    let wait = workload("wait");
    let (count, ms) = (COUNT.to_string(), TIME_MS.to_string());
    let (job, report) = Traced::report(&[], &[&wait, name, &count, &ms]);
    let found = known(&job)?;
    found.add_up(agree);
    let waits = sum(causes.iter().map(|cause| found.of_cause(cause)));
    let off = report.fact("off_cpu_ns");
    // Who comes late to wait for another waits for less than the other takes.
    let least = (report.fact("least_ns") / 10 * 9).min(off.saturating_sub(MARGIN_NS));
    agree.between(&format!("{name}: {causes:?}_ns"), waits.ns, least..=u64::MAX);
    // All else is its start and its end: programs are read from memory here.
    let rest = found.all().ns - waits.ns;
    agree.between(&format!("{name}: all other waits"), rest, 0..=MARGIN_NS);
    Ok((waits, off))
}

/// The causes of a job's waits, or why this kernel does not tell them.
pub fn known(job: &Traced) -> Result<Causes, String> {
    unknown(job, "what tasks sleep and are blocked for").map_or_else(|| Ok(Causes::of(job)), Err)
}

/// Reads past the page cache of a device, whose file system is told by the descriptor.
pub fn reads() -> Found {
    const READS: u64 = 400;
    let disk = RamDisk::new(READS * (64 << 10));
    let (rest, path) = (workload("rest"), disk.path());
    let (job, report) = Traced::report(&[], &[&rest, "read", &path, &READS.to_string()]);
    let mut agree = Agreement::new();
    let found = known(&job)?;
    found.add_up(&mut agree);
    let (waits, off) = (found.of_cause("blocked_read"), report.fact("reads_ns"));
    agree.near("blocked_read_ns", waits.ns, off..=off, 2, MARGIN_NS);
    let filed = found.for_files("read", |fs, mount| (fs, mount) == ("devtmpfs", "/dev"));
    agree.between("blocked_read_waits", waits.count, 1..=READS + 50);
    agree.between("job_wait of devtmpfs, count", filed.count, 1..=waits.count);
    agree.between("job_wait of devtmpfs", filed.ns, waits.ns / 100 * 90..=waits.ns);
    Ok(agree)
}
