//! Time off the CPU: asleep, or blocked.

use std::path::Path;

use jobtrace_tests::{
    account::Report,
    agree::{Agreement, MS},
    disk::RamDisk,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
    work::Pages,
};

const REST: &str = env!("CARGO_BIN_EXE_rest");

#[test]
fn sleeps_of_known_length() {
    let command = [REST, "sleep", "200", "5"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&[], &command);
    sibling.end();
    let (count, sum) = job.hist("sched", "sleep_ns");
    let off = report.fact("off_cpu_ns");
    let mut agree = Agreement::new();
    // This kernel withholds some switches from BPF (0 to 1.4 %): a sleep before one may be lost. Two
    // more at most: waiting for the start, and whatever the runtime of the language waits for.
    agree.between("sleeps", count, 196..=202);
    agree.near("sleep_ns", sum, off..=off, 2, MS);
    agree.between("mean sleep_ns", sum / count, 49 * MS / 10..=off / 200 + MS / 10);
    agree.between("blocked_ns", job.hist("sched", "blocked_ns").1, 0..=20 * MS);
    every_moment_is_somewhere(&mut agree, &job, &report);
    agree.end();
}

/// A task is on a CPU, waits for one, sleeps or is blocked, from its first moment in the job on.
fn every_moment_is_somewhere(agree: &mut Agreement, job: &Traced, report: &Report) {
    let states = ["on_cpu_slice_ns", "run_queue_wait_ns", "sleep_ns", "blocked_ns"];
    let sum = states.iter().map(|state| job.hist("sched", state).1).sum();
    let least = report.fact("end_ns") - report.fact("begin_ns");
    let most = job.json["elapsed_ns"].as_u64().unwrap();
    agree.near("all states", sum, least..=most, 1, MS);
}

#[test]
fn reads_that_block() {
    const READS: u64 = 2000;
    // One request each, and long: what a host steals while the task is on its CPU is told as off it by the kernel's sums,
    // and the kernel stamps a wakeup a microsecond or two before its event.
    const PAGES: usize = 256;
    const DISK_BYTES: u64 = 64 << 20;
    // Reading its own program from the disk would block it too.
    let _held = Pages::held_file(Path::new(REST));
    let (disk, other) = (RamDisk::new(DISK_BYTES), RamDisk::new(DISK_BYTES));
    let (path, beside) = (disk.path(), other.path());
    let (reads, pages) = (READS.to_string(), PAGES.to_string());
    let sibling = Sibling::start(&[REST, "read", &beside, &reads, &pages]);
    let (job, report) = Traced::report(&[], &[REST, "read", &path, &reads, &pages]);
    sibling.end();
    let mut agree = Agreement::new();
    let (count, sum) = job.hist("sched", "blocked_ns");
    // A read that is done before its task would block does not count.
    agree.between("blocks", count, READS * 9 / 10..=READS + 50);
    let off = report.fact("off_cpu_ns");
    agree.near("blocked_ns", sum, off..=off, 2, MS);
    agree.between("sleep_ns", job.hist("sched", "sleep_ns").1, 0..=5 * MS);
    let (_, device) = count_and_sum(&job.block(&disk.name(), "read")["device_latency_ns"]);
    let reads = report.fact("reads_ns");
    agree.between("blocked in reads, of device_latency_ns", reads, device / 2..=device * 4);
    every_moment_is_somewhere(&mut agree, &job, &report);
    agree.end();
}

#[test]
fn waits_that_nothing_can_interrupt() {
    let command = [REST, "vfork", "3", "200"];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&[], &command);
    sibling.end();
    let off = report.fact("off_cpu_ns");
    let mut agree = Agreement::new();
    let (count, sum) = job.hist("sched", "blocked_ns");
    agree.between("blocks", count, 3..=6);
    agree.near("blocked_ns", sum, off..=off, 1, MS);
    agree.between("blocked_ns, known", sum, 600 * MS..=off + 20 * MS);
    let (count, sum) = job.hist("sched", "sleep_ns");
    agree.between("sleeps of the children", count, 3..=8);
    agree.between("sleep_ns of the children", sum, 597 * MS..=off + 20 * MS);
    agree.exact("forks", job.number("sched", "forks"), 3);
    agree.end();
}
