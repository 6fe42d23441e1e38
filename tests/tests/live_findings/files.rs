//! Disks and file systems: reads that wait, flushes, names of files, failures.

use std::time::Duration;

use jobtrace_tests::{
    disk::RamDisk,
    findings::{Case, Said, check, said_of},
    rig::fuse::{FILE, Fuse, Request},
};

use super::{computes, teaching};

const WAIT: &str = env!("CARGO_BIN_EXE_wait");
const TRANSFER: &str = env!("CARGO_BIN_EXE_transfer");
const BYTES: u64 = 64 << 10;

pub const CASES: &[Case] = &[
    Case { rule: "blocked_on_io", speaks: small_reads, silent: computes },
    Case {
        rule: "blocked_on_large_io",
        speaks: || reads(2_000, 1 << 20),
        silent: || reads(20_000, 4 << 10),
    },
    Case {
        rule: "sync",
        speaks: || teaching("each-line", &["results", "2000"]),
        silent: || teaching("each-line-mended", &["results", "2000"]),
    },
    Case { rule: "metadata", speaks: || names("60"), silent: || names("5") },
    Case { rule: "disk_errors", speaks: || reads_beyond(40), silent: || reads_beyond(80) },
];

/// Reads of which each waits for a server.
fn small_reads() -> Said {
    let fuse = Fuse::mount(&[(Request::Read, Duration::from_millis(10))]).unwrap();
    said_of(&[WAIT, "pread", "40", "10", &fuse.file(FILE)])
}

/// Reads of so many bytes each, past the page cache; enough to last as long as a rule asks on a fast machine.
fn reads(count: u64, bytes: u64) -> Said {
    let disk = RamDisk::new(64 * bytes);
    said_of(&[TRANSFER, "over", &disk.path(), &count.to_string(), &bytes.to_string()])
}

/// Four processes that look for names in one folder of a file system that takes 5 ms for each: whoever removes a
/// name holds the folder meanwhile, and the others are blocked.
fn names(times: &str) -> Said {
    let fuse = Fuse::mount(&[(Request::Lookup, Duration::from_millis(5))]).unwrap();
    let script = "
import os, sys
for process in range(4):
    if os.fork() == 0:
        for at in range(int(sys.argv[2])):
            try:
                os.unlink(f'{sys.argv[1]}/missing-{process}-{at}')
            except FileNotFoundError:
                pass
        os._exit(0)
for process in range(4):
    os.wait()
";
    said_of(&["python3", "-c", script, fuse.path().to_str().unwrap(), times])
}

/// Eighty reads of a disk whose requests fail after `sound` of them.
fn reads_beyond(sound: u64) -> Said {
    let disk = RamDisk::new(80 * BYTES);
    if sound < 80 {
        disk.fail_from(sound * BYTES);
    }
    said_of(&[TRANSFER, "read", &disk.path(), "80", &BYTES.to_string()])
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
