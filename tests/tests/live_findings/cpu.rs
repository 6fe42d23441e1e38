//! CPUs: too few, too many, and what the kernel makes a task wait for instead of computing.

use jobtrace_tests::{
    findings::{Case, Said, check, said_beside_others, said_by, said_of},
    own_cgroup::OwnCgroup,
    rig::fuse::{FILE, Fuse, Request},
    traced::program,
};
use std::{process::Command, time::Duration};

use super::{computes, teaching};

const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const WAIT: &str = env!("CARGO_BIN_EXE_wait");

pub const CASES: &[Case] = &[
    Case { rule: "waited_for_cpu", speaks: || workers(4), silent: all_cores },
    Case { rule: "node_busy", speaks: beside_others, silent: computes },
    Case { rule: "cpu_quota", speaks: || within_quota(5_000), silent: || within_quota(1_000_000) },
    Case {
        rule: "bound_to_few",
        speaks: || teaching("one-core", &["3000000"]),
        silent: || teaching("one-core-mended", &["3000000"]),
    },
    Case { rule: "many_programs", speaks: || programs("400"), silent: || programs("80") },
    Case { rule: "idle_cores", speaks: || over_time(&[SPIN, "alone", "2500"]), silent: all_cores },
    Case {
        rule: "starting_children",
        speaks: || said_of(&[WAIT, "vfork", "30", "10"]),
        silent: computes,
    },
    Case {
        rule: "memory_maps",
        speaks: || changes_its_map("70"),
        silent: || changes_its_map("20"),
    },
    Case {
        rule: "blocked_otherwise",
        speaks: || said_of(&[WAIT, "membarrier", "50", "0"]),
        silent: computes,
    },
];

/// With several readings, so that there is a busiest moment.
fn over_time(words: &[&str]) -> Said {
    said_by(Command::new(program().unwrap()), &["--interval", "500ms"], words)
}

/// Busy processes, so many on each core.
fn workers(each: usize) -> Said {
    let workers = each * std::thread::available_parallelism().unwrap().get();
    over_time(&[SPIN, "crowd", &workers.to_string(), "2000"])
}

fn all_cores() -> Said {
    workers(1)
}

/// One busy process, beside two of others' on each core.
fn beside_others() -> Said {
    let cores = std::thread::available_parallelism().unwrap().get();
    let busy = |_| Command::new(SPIN).args(["alone", "600000"]).spawn().unwrap();
    let mut others: Vec<_> = (0..2 * cores).map(busy).collect();
    let said = said_beside_others(Command::new(program().unwrap()), &[], &[SPIN, "alone", "500"]);
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    said
}

/// One busy process whose cgroup has so many microseconds of each tenth of a second, once it has begun.
fn within_quota(quota_us: u32) -> Said {
    let cgroup = OwnCgroup::make("quota", &["cpu"]);
    let files = [("cpu.cfs_quota_us", "", "-1"), ("cpu.max", " 100000", "max")];
    let found = files.into_iter().find_map(|(name, period, none)| {
        Some((cgroup.directory_with(name)?.join(name), format!("{quota_us}{period}"), none))
    });
    let (file, quota, none) = found.expect("a CPU controller to hold a job back with");
    let file = file.display();
    let script = format!("echo {quota} > {file}; {SPIN} alone 60; echo {none} > {file}");
    let mut start = cgroup.inside();
    start.arg(program().unwrap());
    said_beside_others(start, &[], &["sh", "-c", &script])
}

/// A shell that starts a program so many times, which does nothing.
fn programs(times: &str) -> Said {
    said_of(&["sh", "-c", "for i in $(seq $0); do /bin/true; done; sleep 0.1", times])
}

/// Threads that wait for each other to change the memory map, so often.
fn changes_its_map(times: &str) -> Said {
    let fuse = Fuse::mount(&[(Request::Write, Duration::from_millis(5))]).unwrap();
    said_of(&[WAIT, "memory", times, "5", &fuse.file(FILE)])
}

#[test]
fn each_rule_speaks_of_its_job_and_not_of_the_other() {
    check(CASES);
}
