//! Live ring: block I/O against known amounts and the kernel's per-cgroup and per-device books.
//! Latencies, against fio: live_block_fio.rs.
//!
//! Most tests use a loop device of their own over memory: nobody else's requests are on it. One uses the
//! disk that holds cargo's target folder, because real drivers complete requests elsewhere.

use std::{io::Write, path::Path};

use jobtrace::model::tables::Block;
use jobtrace_tests::{
    account::Node,
    agree::{Agreement, tried_again},
    disk::{RamDisk, device_below},
    own_cgroup::OwnCgroup,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
};

const TRANSFER: &str = env!("CARGO_BIN_EXE_transfer");
const BYTES: u64 = 64 << 10;
const COUNT: u64 = 200;

/// `COUNT` transfers of `BYTES` in the job and beside it, on one device.
fn known_amount(op: &str) {
    let disk = RamDisk::new(COUNT * BYTES);
    let path = disk.path();
    let command = [TRANSFER, op, &path, &COUNT.to_string(), &BYTES.to_string()];
    let sibling = Sibling::start(&command);
    let (job, report) = Traced::report(&[], &command);
    let beside = sibling.end();
    assert!(beside.iter().all(|report| report.fact("errors") == 0));
    let mut agree = Agreement::new();
    agree.exact("errors met", report.fact("errors"), 0);
    let (bytes, ops) = job.block_amount(&disk.name(), op);
    agree.completed(&format!("{op}: bytes"), bytes, COUNT * BYTES, BYTES);
    agree.completed(&format!("{op}: ops"), ops, COUNT, 1);
    agree.completed("bytes, /proc/PID/io", bytes, report.fact(&format!("{op}_bytes")), BYTES);
    let name = if op == "read" { "Read" } else { "Write" };
    if let Some(&charged) = report.facts.get(&format!("io_service_bytes_{name}")) {
        agree.completed("bytes, blkio.throttle", bytes, charged, BYTES);
        let serviced = report.fact(&format!("io_serviced_{name}"));
        agree.completed("ops, blkio.throttle", ops, serviced, 1);
    }
    let other = if op == "read" { "write" } else { "read" };
    agree.exact(&format!("{other}: bytes"), job.block_amount(&disk.name(), other).0, 0);
    let group = job.block(&disk.name(), op);
    agree.exact("errors", group["errors"].as_u64().unwrap(), 0);
    agree.exact("size_bytes", count_and_sum(&group["size_bytes"]).1, bytes);
    let (requests, _) = count_and_sum(&group["device_latency_ns"]);
    agree.exact("requests queued", count_and_sum(&group["queue_latency_ns"]).0, requests);
    agree.exact("requests on the device", requests, ops);
    let min = group["size_bytes"]["min"].as_u64().unwrap();
    agree.between("least size", min, BYTES * 3 / 4..=BYTES);
    agree.exact("largest size", group["size_bytes"]["max"].as_u64().unwrap(), BYTES);
    agree.end();
}

#[test]
fn direct_reads_are_exact() {
    tried_again(|| {
        known_amount("read");
    });
}

#[test]
fn direct_writes_are_exact() {
    tried_again(|| {
        known_amount("write");
    });
}

#[test]
fn discards_have_a_tag_of_their_own() {
    tried_again(|| {
        let disk = RamDisk::new(COUNT * BYTES);
        let command = [TRANSFER, "discard", &disk.path(), "50", &BYTES.to_string()];
        let (job, report) = Traced::report(&[], &command);
        let mut agree = Agreement::new();
        agree.exact("errors met", report.fact("errors"), 0);
        let (bytes, ops) = job.block_amount(&disk.name(), "discard");
        agree.completed("discard: bytes", bytes, 50 * BYTES, BYTES);
        agree.completed("discard: ops", ops, 50, 1);
        agree.exact("write: bytes", job.block_amount(&disk.name(), "write").0, 0);
        agree.end();
    });
}

#[test]
fn write_back_of_fsync_is_the_jobs() {
    tried_again(|| {
        let disk = RamDisk::new(COUNT * BYTES);
        let command = [TRANSFER, "buffered", &disk.path(), &COUNT.to_string(), &BYTES.to_string()];
        let (job, report) = Traced::report(&[], &command);
        let mut agree = Agreement::new();
        let (bytes, ops) = job.block_amount(&disk.name(), "write");
        // Too little and too short for the kernel's own flusher to begin.
        agree.completed("write: bytes", bytes, COUNT * BYTES, BYTES);
        agree.completed("write_bytes, /proc/PID/io", bytes, report.fact("write_bytes"), BYTES);
        agree.between("write: ops, merged", ops, 1..=COUNT * BYTES / 4096);
        let (_, flushes) = job.block_amount(&disk.name(), "flush");
        agree.between("flush: ops", flushes, 1..=2);
        let blocked = job.hist("sched", "blocked_ns").1;
        agree.between("blocked_ns", blocked, 1..=job.json["elapsed_ns"].as_u64().unwrap());
        agree.end();
    });
}

#[test]
fn what_fails_is_counted() {
    tried_again(|| {
        let disk = RamDisk::new(COUNT * BYTES);
        disk.fail_from(50 * BYTES);
        let beside = RamDisk::new(COUNT * BYTES);
        let mut agree = Agreement::new();
        for op in ["read", "write"] {
            let sibling = Sibling::start(&[TRANSFER, op, &beside.path(), "80", &BYTES.to_string()]);
            let command = [TRANSFER, op, &disk.path(), "80", &BYTES.to_string()];
            let (job, report) = Traced::report(&[], &command);
            sibling.end();
            agree.exact("errors met", report.fact("errors"), 30);
            let group = job.block(&disk.name(), op);
            agree.completed(&format!("{op}: errors"), group["errors"].as_u64().unwrap(), 30, 1);
            let (bytes, ops) = job.block_amount(&disk.name(), op);
            agree.completed(&format!("{op}: ops, failed ones included"), ops, 80, 1);
            agree.completed(
                &format!("{op}: bytes, failed ones left out"),
                bytes,
                50 * BYTES,
                BYTES,
            );
            agree.exact("of the sibling", job.block_amount(&beside.name(), op).1, 0);
        }
        agree.end();
    });
}

#[test]
fn job_and_system_are_the_devices_books() {
    tried_again(|| {
        let disk = RamDisk::new(COUNT * BYTES);
        let outside = OwnCgroup::make("outside", &["blkio"]);
        let procs = outside.procs();
        let mut agree = Agreement::new();
        for (op, side) in [("read", 0), ("write", 1)] {
            let (path, count, bytes) = (disk.path(), COUNT.to_string(), BYTES.to_string());
            let mut command = vec![TRANSFER, op, &path, &count, &bytes];
            command.extend(procs.iter().map(|path| path.to_str().unwrap()));
            let before = Node::read(&disk.name());
            let (job, _) = Traced::report(&[], &command);
            let after = Node::read(&disk.name());
            // A child of the job's left it and did the same: no request falls outside the readings.
            let (name, op) = (disk.name(), op.to_owned());
            let all =
                |field| job.node_growth(field, |group| group.tags == [name.clone(), op.clone()]);
            let own = job.block_amount(&name, &op).0;
            agree.completed(&format!("{op}: the job's bytes"), own, COUNT * BYTES, BYTES);
            let truth = after.bytes[side] - before.bytes[side];
            agree.completed(
                &format!("{op}: bytes, /proc/diskstats"),
                all(Block::bytes),
                truth,
                BYTES,
            );
            agree.exact(&format!("{op}: bytes, known"), truth, 2 * COUNT * BYTES);
            let truth = after.ops[side] - before.ops[side];
            agree.completed(&format!("{op}: ops, /proc/diskstats"), all(Block::ops), truth, 1);
        }
        agree.end();
    });
}

#[test]
fn a_disk_with_a_file_system() {
    tried_again(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut file = tempfile::NamedTempFile::new_in(directory).unwrap();
        let mut other = tempfile::NamedTempFile::new_in(directory).unwrap();
        // Written before, so that the job makes no change of the file's own books.
        for file in [&mut file, &mut other] {
            file.write_all(&vec![1; (COUNT * BYTES) as usize]).unwrap();
            file.as_file().sync_all().unwrap();
        }
        let device = device_below(file.path());
        let mut agree = Agreement::new();
        for op in ["read", "write"] {
            let (count, bytes) = (COUNT.to_string(), BYTES.to_string());
            let sibling = other.path().to_str().unwrap();
            let sibling = Sibling::start(&[TRANSFER, op, sibling, &count, &bytes]);
            let path = file.path().to_str().unwrap();
            let (job, report) = Traced::report(&[], &[TRANSFER, op, path, &count, &bytes]);
            sibling.end();
            let (bytes, ops) = job.block_amount(&device, op);
            // The program lies on that disk too, as does what the file system keeps of the file: what of
            // these is not in memory is read besides, a page at least each time, and the task knows it.
            let known = COUNT * BYTES;
            let (least, most) = match op {
                "read" => (report.fact("read_bytes"), report.fact("read_bytes_all")),
                _ => (known, known),
            };
            assert!(least >= known, "{least} of {known} bytes read, says /proc/PID/io");
            agree.completed_between(&format!("{op}: bytes"), bytes, least..=most, BYTES);
            // A file in several pieces takes a request more for each seam.
            let most = COUNT + COUNT / 4 + (most - known) / 4096;
            agree.completed_between(&format!("{op}: ops"), ops, COUNT..=most, 1);
            let name = if op == "read" { "Read" } else { "Write" };
            if let Some(&charged) = report.facts.get(&format!("io_service_bytes_{name}")) {
                agree.completed("bytes, blkio.throttle", bytes, charged, BYTES);
            }
            let (_, latency) = count_and_sum(&job.block(&device, op)["device_latency_ns"]);
            let blocked = job.hist("sched", "blocked_ns").1;
            agree.between("device_latency_ns, of the blocked", latency, blocked / 10..=2 * blocked);
        }
        agree.end();
    });
}
