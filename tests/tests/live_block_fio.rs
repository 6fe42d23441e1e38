//! Live ring: block I/O against fio, on a loop device over memory, whose latencies are the kernel's own,
//! and on the disk that holds cargo's target folder, whose vary by more than the tolerance.

use std::{io::Write, path::Path, process::Command};

use jobtrace_tests::{
    account::{Node, Report},
    agree::{Agreement, MS, tried_again},
    disk::{RamDisk, device_below},
    traced::{Traced, count_and_sum},
    work::Pages,
};
use rustix::fs::FallocateFlags;
use serde_json::Value;

const REAPED: &str = env!("CARGO_BIN_EXE_reaped");

/// fio, its libraries and who starts it, held in memory: the time to read them is not in fio's numbers.
fn held_fio() -> Vec<Pages> {
    let script = "command -v fio; LD_TRACE_LOADED_OBJECTS=1 fio";
    let output = Command::new("sh").args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "no fio: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let files: Vec<_> = text.split_whitespace().filter(|word| word.starts_with('/')).collect();
    assert!(files.len() > 2, "fio and no libraries: {files:?}");
    files.into_iter().chain([REAPED]).map(|file| Pages::held_file(Path::new(file))).collect()
}

/// `total` bytes that each of `readers` of fio's reads from `path`, one 256 KiB transfer at a time: the
/// job, fio's numbers, and the job's report.
fn fio_reads(path: &str, total: &str, readers: u32) -> (Traced, Value, Report) {
    let fixed = "--name=reads --rw=randread --bs=256k --direct=1 --ioengine=psync --readonly \
                 --norandommap --group_reporting --output-format=json";
    let (path, total) = (format!("--filename={path}"), format!("--io_size={total}"));
    let readers = format!("--numjobs={readers}");
    let mut command: Vec<&str> = fixed.split_whitespace().collect();
    command.splice(..0, [REAPED, "fio"]);
    command.extend([&path[..], &total, &readers]);
    let job = Traced::run(&[], &command);
    assert!(job.output.status.success(), "fio failed: {:?}", job.output);
    let text = String::from_utf8_lossy(&job.output.stdout).into_owned();
    let mut values =
        serde_json::Deserializer::from_str(&text[text.find('{').unwrap()..]).into_iter();
    let json: Value = values.next().unwrap().unwrap();
    let report = serde_json::from_value(values.next().unwrap().unwrap()).unwrap();
    (job, json["jobs"][0]["read"].clone(), report)
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
        let _held = held_fio();
        let (job, fio, report) = fio_reads(file.path().to_str().unwrap(), "512m", 1);
        let mut agree = Agreement::new();
        let device = device_below(file.path());
        let (bytes, ops) = job.block_amount(&device, "read");
        let known = fio["io_bytes"].as_u64().unwrap();
        // What else fio looks at, and what the file system keeps of the files, may have to be read too.
        let most = report.fact("read_bytes");
        agree.completed_between("bytes", bytes, known..=most, 256 << 10);
        let ios = fio["total_ios"].as_u64().unwrap();
        // A transfer across a seam of the file is two requests; all else are pages at least.
        let most = ios + ios / 10 + (most - known) / 4096;
        agree.completed_between("ops", ops, ios..=most, 1);
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
        let (job, fio, _) = fio_reads(&disk.path(), "128m", 16);
        let after = Node::read(&disk.name());
        let mut agree = Agreement::new();
        let (bytes, ops) = job.block_amount(&disk.name(), "read");
        agree.completed("bytes, fio", bytes, fio["io_bytes"].as_u64().unwrap(), 256 << 10);
        agree.completed("ops, fio", ops, fio["total_ios"].as_u64().unwrap(), 1);
        agree.completed("ops, /proc/diskstats", ops, after.ops[0] - before.ops[0], 1);
        agree_with_fio(&mut agree, &disk.name(), &job, &fio);
        let group = job.block(&disk.name(), "read");
        // Zeros, which the kernel side leaves out, included.
        let queued = count_and_sum(&group["queue_latency_ns"]).0;
        agree.exact("requests queued", queued, count_and_sum(&group["device_latency_ns"]).0);
        let ours = count_and_sum(&group["device_latency_ns"]).1
            + count_and_sum(&group["queue_latency_ns"]).1;
        // From the making of each request, in whole milliseconds.
        let took = (after.took_ms[0] - before.took_ms[0]) * MS;
        agree.near("queue and device latency, /proc/diskstats", ours, took..=took + MS, 5, 0);
        agree.end();
    });
}
