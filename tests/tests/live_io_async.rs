//! Live ring: requests to io_uring against a program that knows each one's answer and against fio, and submissions to
//! libaio against fio.

use std::path::Path;

use jobtrace_tests::{
    account::Report,
    agree::{Agreement, tried_again},
    operations::{groups, sum, text},
    rig::mount::Ext4,
    sibling::Sibling,
    traced::{Traced, count_and_sum},
};
use serde_json::Value;

const RINGS: &str = env!("CARGO_BIN_EXE_rings");
const MIB: u64 = 1 << 20;

/// The rows of `op` on `mount`.
fn rows<'a>(job: &'a Traced, mount: &Path, op: &str) -> Vec<&'a Value> {
    let rows = groups(&job.json, "io").iter();
    let of_op =
        |row: &&Value| text(row, "mount") == mount.to_str().unwrap() && text(row, "op") == op;
    rows.filter(of_op).collect()
}

#[test]
fn every_request_to_io_uring_is_told_with_its_answer() {
    tried_again(|| {
        let disk = Ext4::mount(64 * MIB).unwrap();
        let folder = |name: &str| {
            let folder = disk.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            folder.to_str().unwrap().to_owned()
        };
        let (own, beside) = (folder("own"), folder("beside"));
        let sibling = Sibling::start(&[RINGS, &beside]);
        let (job, report) = Traced::report(&["--io"], &[RINGS, &own]);
        sibling.end();
        let mut agree = Agreement::new();
        for op in ["uring_read", "uring_write", "uring_fsync"] {
            let found = rows(&job, disk.path(), op);
            let truth = |field: &str| report.facts[&format!("{op}.{field}")];
            let each = truth("bytes") / truth("ops");
            for (field, each) in [("ops", 1), ("errors", 1), ("bytes", each)] {
                let ours = sum(found.iter().copied(), field);
                agree.completed(&format!("{op}: {field}"), ours, truth(field), each);
            }
            let ops = sum(found.iter().copied(), "ops");
            let (timed, took_ns) = count_and_sum(&found[0]["latency_ns"]);
            agree.exact(&format!("{op}: latencies"), timed, ops);
            let elapsed_ns = job.json["elapsed_ns"].as_u64().unwrap();
            agree.between(&format!("{op}: time, one at a time"), took_ns, 1..=elapsed_ns);
        }
        files_agree(&job, &own, &report, &mut agree);
        agree.between("files of the sibling", file(&job, &format!("{beside}/ring"))[0], 0..=0);
        agree.end();
    });
}

/// What is told of a file: operations, bytes read and written, time; nothing where it is not listed.
fn file(job: &Traced, path: &str) -> [u64; 4] {
    let row = groups(&job.json, "io_files").iter().find(|row| row["path"] == path);
    let number = |field| row.map_or(0, |row| row[field].as_u64().unwrap());
    ["ops", "read_bytes", "written_bytes", "time_ns"].map(number)
}

/// The files of the requests: one for most of them, and the folder for those that fail.
fn files_agree(job: &Traced, own: &str, report: &Report, agree: &mut Agreement) {
    let truth = |fact: &str| report.facts[fact];
    let [ops, read_bytes, written_bytes, time_ns] = file(job, &format!("{own}/ring"));
    let failed = truth("uring_read.errors");
    let requests = truth("uring_write.ops") + truth("uring_fsync.ops") + truth("uring_read.ops");
    // And its open and close.
    agree.completed_between(
        "ring: operations",
        ops,
        requests - failed + 1..=requests - failed + 2,
        1,
    );
    agree.completed("ring: read", read_bytes, truth("uring_read.bytes"), 4096);
    agree.completed("ring: written", written_bytes, truth("uring_write.bytes"), 4096);
    let opens = rows(job, Path::new(own).parent().unwrap(), "open");
    let closes = rows(job, Path::new(own).parent().unwrap(), "close");
    let most: u64 =
        [opens, closes].concat().iter().map(|row| count_and_sum(&row["latency_ns"]).1).sum();
    agree.between("ring: time, none of it the requests'", time_ns, 1..=most);
    let [ops, read_bytes, written_bytes, _] = file(job, own);
    agree.completed_between("folder: operations", ops, failed + 1..=failed + 2, 1);
    agree.exact("folder: bytes", read_bytes + written_bytes, 0);
}

/// What fio does of this kind, and what it says of it: the job, and its read and write.
fn fio(folder: &Path, engine: &str) -> (Traced, [Value; 2]) {
    let fixed = "--name=both --rw=randrw --bs=4k --size=8m --iodepth=16 --direct=1 --thread \
                 --output-format=json";
    let (folder, engine) =
        (format!("--directory={}", folder.display()), format!("--ioengine={engine}"));
    let mut command = vec!["fio"];
    command.extend(fixed.split_whitespace());
    command.push(&folder);
    command.extend(engine.split_whitespace());
    let job = Traced::run(&["--io"], &command);
    assert!(job.output.status.success(), "fio failed: {:?}", job.output);
    let output = String::from_utf8_lossy(&job.output.stdout);
    let json: Value = serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap();
    let both = ["read", "write"].map(|kind| json["jobs"][0][kind].clone());
    (job, both)
}

/// Operations and bytes are what fio says.
fn agrees_with_fio(engine: &str, ops: [&str; 2]) {
    tried_again(|| {
        let disk = Ext4::mount(64 * MIB).unwrap();
        let (job, both) = fio(disk.path(), engine);
        let mut agree = Agreement::new();
        if ops[0] == "uring_read" {
            // What was written, fio has written before by calls besides.
            let path = disk.path().join("both.0.0");
            let [_, read_bytes, ..] = file(&job, path.to_str().unwrap());
            let truth = both[0]["io_bytes"].as_u64().unwrap();
            agree.completed("bytes read of the file", read_bytes, truth, 4096);
        }
        for (op, fio) in ops.into_iter().zip(both) {
            let found = rows(&job, disk.path(), op);
            let number = |field: &str| fio[field].as_u64().unwrap();
            let ours = |field: &str| sum(found.iter().copied(), field);
            let truth = [("ops", number("total_ios"), 1), ("bytes", number("io_bytes"), 4096)];
            for (field, truth, each) in truth {
                let what = format!("{op}: {field}");
                // Submissions are calls, of which none is withheld.
                if op.starts_with("aio") {
                    agree.exact(&what, ours(field), truth);
                } else {
                    agree.completed(&what, ours(field), truth, each);
                }
            }
            agree.exact(&format!("{op}: errors"), ours("errors"), 0);
        }
        agree.end();
    });
}

#[test]
fn requests_of_fio_to_io_uring_are_those_that_it_counts() {
    agrees_with_fio("io_uring", ["uring_read", "uring_write"]);
}

#[test]
fn so_are_those_that_a_thread_of_the_ring_submits() {
    agrees_with_fio("io_uring --sqthread_poll=1", ["uring_read", "uring_write"]);
}

#[test]
fn submissions_of_fio_to_libaio_are_those_that_it_counts() {
    agrees_with_fio("libaio", ["aio_read", "aio_write"]);
}
