//! Live ring: block I/O against known amounts, the kernel's per-cgroup and per-device books, and fio.
//!
//! Most tests use a loop device of their own over memory: nobody else's requests are on it and its
//! latencies are the kernel's own, while a virtual disk's vary by more than the tolerance. One test
//! uses the disk that holds cargo's target folder, because real drivers complete requests elsewhere.

use std::{fs, io::Write, ops::RangeInclusive, path::Path};

use jobtrace_tests::{
    account::Node,
    agree::{Agreement, MS, tried_again},
    disk::RamDisk,
    own_cgroup::OwnCgroup,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
};
use rustix::fs::FallocateFlags;
use serde_json::Value;

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
            agree.completed(&format!("{op}: bytes, /proc/diskstats"), all("bytes"), truth, BYTES);
            agree.exact(&format!("{op}: bytes, known"), truth, 2 * COUNT * BYTES);
            let truth = after.ops[side] - before.ops[side];
            agree.completed(&format!("{op}: ops, /proc/diskstats"), all("ops"), truth, 1);
        }
        agree.end();
    });
}

/// `total` bytes that each of `readers` of fio's reads from `path`, one 256 KiB transfer at a time: the
/// job, and fio's numbers.
fn fio_reads(path: &str, total: &str, readers: u32) -> (Traced, Value) {
    let fixed = "--name=reads --rw=randread --bs=256k --direct=1 --ioengine=psync --readonly \
                 --norandommap --group_reporting --output-format=json";
    let (path, total) = (format!("--filename={path}"), format!("--io_size={total}"));
    let readers = format!("--numjobs={readers}");
    let mut command: Vec<&str> = fixed.split_whitespace().collect();
    command.insert(0, "fio");
    command.extend([&path[..], &total, &readers]);
    let job = Traced::run(&[], &command);
    assert!(job.output.status.success(), "fio failed: {:?}", job.output);
    let text = String::from_utf8_lossy(&job.output.stdout).into_owned();
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    (job, json["jobs"][0]["read"].clone())
}

/// fio times a transfer from its submission to its task's return. That is the request, and the
/// submission path: what its tasks were on a CPU and waited for one, at most. Nothing else may lie
/// between fio's mean and ours.
fn agree_with_fio(agree: &mut Agreement, device: &str, job: &Traced, fio: &Value) {
    let ios = fio["total_ios"].as_u64().unwrap();
    let group = job.block(device, "read");
    let (count, on_device) = count_and_sum(&group["device_latency_ns"]);
    let (_, queued) = count_and_sum(&group["queue_latency_ns"]);
    let waited = job.hist("sched", "run_queue_wait_ns").1;
    let path = (job.number("sched", "on_cpu_ns") + waited + queued) / ios;
    let mean = fio["clat_ns"]["mean"].as_f64().unwrap() as u64;
    println!("submission path of at most {path} ns");
    let truth = mean.saturating_sub(path)..=mean;
    agree.near("mean device_latency_ns, fio", on_device / count, truth, 5, 0);
}

#[test]
fn a_disk_read_by_fio() {
    tried_again(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut file = tempfile::NamedTempFile::new_in(directory).unwrap();
        let bytes = 32 << 20;
        // In as few pieces as there can be.
        rustix::fs::fallocate(file.as_file(), FallocateFlags::empty(), 0, bytes as u64).unwrap();
        file.write_all(&vec![1; bytes]).unwrap();
        file.as_file().sync_all().unwrap();
        // fio itself comes from a disk the first time.
        fio_reads(file.path().to_str().unwrap(), "1m", 1);
        let (job, fio) = fio_reads(file.path().to_str().unwrap(), "512m", 1);
        let mut agree = Agreement::new();
        let device = device_below(file.path());
        let (bytes, ops) = job.block_amount(&device, "read");
        let known = fio["io_bytes"].as_u64().unwrap();
        // fio and its libraries may have to be read too.
        agree.between("bytes", bytes, *withheld(known, 4096).start()..=known + (16 << 20));
        let ios = fio["total_ios"].as_u64().unwrap();
        // As may be seen of them; a transfer across a seam of the file is two requests.
        agree.between("ops", ops, *withheld(ios, 1).start()..=ios + ios / 10);
        agree_with_fio(&mut agree, &device, &job, &fio);
        agree.end();
    });
}

#[test]
fn latencies_are_fios_and_the_devices_books() {
    tried_again(|| {
        let disk = RamDisk::new(256 << 20);
        let before = Node::read(&disk.name());
        // The device's books end a request after its waiter was woken, the hook before: 8 us on this
        // virtual machine, where a wake-up of another CPU leaves it, and 12 us until the waiter runs.
        // Sixteen readers at once make the latencies so long that this is no part of the tolerance.
        let (job, fio) = fio_reads(&disk.path(), "128m", 16);
        let after = Node::read(&disk.name());
        let mut agree = Agreement::new();
        let (bytes, ops) = job.block_amount(&disk.name(), "read");
        agree.completed("bytes, fio", bytes, fio["io_bytes"].as_u64().unwrap(), 256 << 10);
        agree.completed("ops, fio", ops, fio["total_ios"].as_u64().unwrap(), 1);
        agree.completed("ops, /proc/diskstats", ops, after.ops[0] - before.ops[0], 1);
        agree_with_fio(&mut agree, &disk.name(), &job, &fio);
        let group = job.block(&disk.name(), "read");
        let ours = count_and_sum(&group["device_latency_ns"]).1
            + count_and_sum(&group["queue_latency_ns"]).1;
        // From the making of each request, in whole milliseconds.
        let took = (after.took_ms[0] - before.took_ms[0]) * MS;
        agree.near("queue and device latency, /proc/diskstats", ours, took..=took + MS, 5, 0);
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
            // Its program and libraries are in the page cache now.
            let path = file.path().to_str().unwrap();
            let (job, report) = Traced::report(&[], &[TRANSFER, op, path, &count, &bytes]);
            sibling.end();
            let (bytes, ops) = job.block_amount(&device, op);
            agree.between(&format!("{op}: bytes"), bytes, withheld(COUNT * BYTES, BYTES));
            agree.exact(
                "bytes known, /proc/PID/io",
                COUNT * BYTES,
                report.fact(&format!("{op}_bytes")),
            );
            // A file in several pieces takes a request more for each seam.
            agree.between(
                &format!("{op}: ops"),
                ops,
                *withheld(COUNT, 1).start()..=COUNT + COUNT / 4,
            );
            let name = if op == "read" { "Read" } else { "Write" };
            if let Some(&charged) = report.facts.get(&format!("io_service_bytes_{name}")) {
                agree.exact("bytes known, blkio.throttle", COUNT * BYTES, charged);
            }
            let (_, latency) = count_and_sum(&job.block(&device, op)["device_latency_ns"]);
            let blocked = job.hist("sched", "blocked_ns").1;
            agree.between("device_latency_ns, of the blocked", latency, blocked / 10..=2 * blocked);
        }
        agree.end();
    });
}

/// What may be seen of `amount` on a disk that completes requests in interrupts. Some kernels withhold
/// events from BPF, without counting them as missed: here, of runs of 2048 reads, half were whole and
/// the others 1 to 9 short, in no slot at all; of 200, once 4. Never more than there was. `each` is the
/// amount of one request.
fn withheld(amount: u64, each: u64) -> RangeInclusive<u64> {
    amount - amount / 100 - 8 * each..=amount
}

/// Name of the whole disk that holds `path`.
fn device_below(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let number = fs::metadata(path).unwrap().dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(number), libc::minor(number));
    let whole = fs::canonicalize(&link).unwrap_or_else(|_| {
        panic!("{} is on no block device: set CARGO_TARGET_DIR", path.display())
    });
    // A partition's directory lies in its disk's.
    let whole = if whole.join("partition").exists() { whole.parent().unwrap() } else { &whole };
    whole.file_name().unwrap().to_string_lossy().into_owned()
}
