//! Memory: killed for it, near its limit, full of file cache, faulting.

use std::{process::Command, time::Duration};

use jobtrace_tests::{
    findings::{Case, Said, check, said_by, said_of},
    own_cgroup::OwnCgroup,
    rig::fuse::{FILE, Fuse, Request},
    traced::program,
};

const TOUCH: &str = env!("CARGO_BIN_EXE_touch");
const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const WAIT: &str = env!("CARGO_BIN_EXE_wait");
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

pub const CASES: &[Case] = &[
    Case {
        rule: "out_of_memory",
        speaks: || within(384, &[TOUCH, "beyond", &(1024 * MIB).to_string()]),
        silent: || within(384, &[TOUCH, "fresh", &(64 * MIB / PAGE).to_string()]),
    },
    Case { rule: "memory_short", speaks: || holds(2976), silent: || holds(2600) },
    Case { rule: "cache_at_limit", speaks: || reads(1500), silent: || reads(600) },
    Case { rule: "memory_kept", speaks: || keeps("40"), silent: || keeps("480") },
    Case { rule: "major_faults", speaks: || beside(1488), silent: || beside(1000) },
    Case {
        rule: "mapped_files",
        speaks: mapped_file,
        silent: || said_of(&[TOUCH, "fresh", "20000"]),
    },
    Case {
        rule: "minor_faults",
        speaks: || timed(&[TOUCH, "fresh", "200000"]),
        silent: || timed(&[SPIN, "alone", "500"]),
    },
];

/// `words` where there are so many MiB for them and jobtrace together, which takes some 30 of them.
fn within(mib: u64, words: &[&str]) -> Said {
    let cgroup = OwnCgroup::limited("findings", mib);
    let mut start = cgroup.inside();
    start.arg(program().unwrap());
    said_by(start, &[], words)
}

/// Takes so many MiB of the 3072 that it may have and holds them for two seconds, so that a reading sees them all: what
/// a job needs besides file cache is known of readings alone.
fn holds(mib: u64) -> Said {
    let script = "
import sys, time
kept = bytearray(int(sys.argv[1]) << 20)
kept[::4096] = b'x' * (len(kept) // 4096)
time.sleep(2)
";
    within(3072, &["python3", "-c", script, &mib.to_string()])
}

/// Reads a file of so many MiB, in which nothing was written, where the kernel may keep less than 1024 of it in memory.
fn reads(mib: u64) -> Said {
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(mib * MIB).unwrap();
    let words = ["dd", &format!("if={}", file.path().display()), "of=/dev/null", "bs=1M"];
    let said = within(1024, &words);
    assert!(!said.contains("memory_short"), "{said:?}");
    said
}

/// Twelve seconds in which it takes so many MiB each second, up to 480.
fn keeps(mib: &str) -> Said {
    let script = "
import sys, time
kept, step = [], int(sys.argv[1])
for second in range(12):
    if len(kept) * step < 480:
        kept.append(b'x' * (step << 20))
    time.sleep(1)
";
    said_of(&["python3", "-c", script, mib])
}

/// A mapped file whose pages a server sends.
fn mapped_file() -> Said {
    let fuse = Fuse::mount(&[(Request::Read, Duration::from_millis(10))]).unwrap();
    said_of(&[WAIT, "fault", "30", "10", &fuse.file(FILE)])
}

/// Reads 16 MiB of a mapped file that a server sends, with so many MiB in use of the 1536 that it may have.
fn beside(mib: u64) -> Said {
    let fuse = Fuse::mount(&[(Request::Read, Duration::from_millis(1))]).unwrap();
    let script = "
import mmap, sys
used = bytearray(int(sys.argv[2]) << 20)
used[::4096] = b'x' * (len(used) // 4096)
with open(sys.argv[1], 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
    sum(mapped[at] for at in range(0, 16 << 20, 4096))
";
    within(1536, &["python3", "-c", script, &fuse.file(FILE), &mib.to_string()])
}

/// With each fault timed.
fn timed(words: &[&str]) -> Said {
    said_by(Command::new(program().unwrap()), &["--faults", "full"], words)
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
