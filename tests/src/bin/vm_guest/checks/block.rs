//! Block I/O under `jobtrace run`, on loop devices of our own, against io.stat or blkio.

use jobtrace_tests::{
    agree::Agreement,
    disk::RamDisk,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
};

use super::{Found, workload};
use crate::jobs;

const BYTES: u64 = 64 << 10;
const COUNT: u64 = 64;

pub fn reads() -> Found {
    direct("read", "Read", true)
}

pub fn writes() -> Found {
    direct("write", "Write", false)
}

/// Known transfers past the page cache, perhaps with a sibling that does the same on the same device.
fn direct(op: &str, name: &str, beside: bool) -> Found {
    let disk = RamDisk::new(COUNT * BYTES);
    let (transfer, path) = (workload("transfer"), disk.path());
    let command = [&*transfer, op, &path, &COUNT.to_string(), &BYTES.to_string()];
    let sibling = beside.then(|| Sibling::start(&command));
    let (job, report) = Traced::report(&[], &command);
    sibling.map(Sibling::end);
    let mut agree = Agreement::new();
    agree.exact("errors met", report.fact("errors"), 0);
    let (bytes, ops) = job.block_amount(&disk.name(), op);
    agree.exact("bytes", bytes, COUNT * BYTES);
    agree.exact("bytes, /proc/PID/io", bytes, report.fact(&format!("{op}_bytes")));
    charged(&mut agree, &report.facts, name, bytes, ops);
    let other = if op == "read" { "write" } else { "read" };
    agree.exact(&format!("bytes, {other}"), job.block_amount(&disk.name(), other).0, 0);
    let group = job.block(&disk.name(), op);
    agree.exact("size_bytes", count_and_sum(&group["size_bytes"]).1, bytes);
    agree.exact("requests timed", count_and_sum(&group["device_latency_ns"]).0, ops);
    Ok(agree)
}

/// What the kernel charged to the cgroup. blkio of v1 keeps no book while no limit is set, from Linux
/// 6.1 on at the latest: /proc/PID/io is the judge then.
fn charged(
    agree: &mut Agreement,
    facts: &std::collections::BTreeMap<String, u64>,
    name: &str,
    bytes: u64,
    ops: u64,
) {
    let fact = |file: &str| facts.get(&format!("{file}_{name}")).copied().unwrap_or(0);
    let charged = (fact("io_service_bytes"), fact("io_serviced"));
    if charged == (0, 0) && jobs::hierarchy() != "v2" {
        return;
    }
    agree.exact("bytes, of the cgroup", bytes, charged.0);
    agree.exact("ops, of the cgroup", ops, charged.1);
}

/// Through the page cache, then fsync: the kernel's flusher writes, and it is the job's.
pub fn write_back() -> Found {
    let disk = RamDisk::new(COUNT * BYTES);
    let (transfer, path) = (workload("transfer"), disk.path());
    let command = [&*transfer, "buffered", &path, &COUNT.to_string(), &BYTES.to_string()];
    let (job, report) = Traced::report(&[], &command);
    let mut agree = Agreement::new();
    let (bytes, ops) = job.block_amount(&disk.name(), "write");
    agree.exact("bytes", bytes, COUNT * BYTES);
    agree.exact("bytes, /proc/PID/io", bytes, report.fact("write_bytes"));
    agree.between("ops, merged", ops, 1..=COUNT * BYTES / 4096);
    agree.between("flushes", job.block_amount(&disk.name(), "flush").1, 1..=2);
    Ok(agree)
}

pub fn discards() -> Found {
    let disk = RamDisk::new(COUNT * BYTES);
    let (transfer, path) = (workload("transfer"), disk.path());
    let command = [&*transfer, "discard", &path, "20", &BYTES.to_string()];
    let (job, report) = Traced::report(&[], &command);
    let mut agree = Agreement::new();
    agree.exact("errors met", report.fact("errors"), 0);
    let (bytes, ops) = job.block_amount(&disk.name(), "discard");
    agree.exact("bytes", bytes, 20 * BYTES);
    agree.exact("ops", ops, 20);
    agree.exact("bytes, write", job.block_amount(&disk.name(), "write").0, 0);
    Ok(agree)
}

/// The memory below the device's second half is gone: writes there fail, reads do on newer kernels.
pub fn failures() -> Found {
    let disk = RamDisk::new(COUNT * BYTES);
    disk.fail_from(COUNT / 2 * BYTES);
    let transfer = workload("transfer");
    let mut agree = Agreement::new();
    for op in ["read", "write"] {
        let command = [&*transfer, op, &disk.path(), &COUNT.to_string(), &BYTES.to_string()];
        let (job, report) = Traced::report(&[], &command);
        let met = report.fact("errors");
        let errors = job.block(&disk.name(), op)["errors"].as_u64().unwrap_or(u64::MAX);
        agree.exact(&format!("{op}: errors"), errors, met);
        if op == "write" {
            agree.exact("write: errors met", met, COUNT / 2);
        }
    }
    Ok(agree)
}
