//! CPUs: too few, too many, and what the kernel makes a task wait for instead of computing.

use jobtrace_tests::{
    findings::{Case, Said, check, said_by, said_of},
    rig::fuse::{FILE, Fuse, Request},
    traced::program,
};
use std::{process::Command, time::Duration};

use super::{computes, teaching};

const SPIN: &str = env!("CARGO_BIN_EXE_spin");
const WAIT: &str = env!("CARGO_BIN_EXE_wait");

pub const CASES: &[Case] = &[
    Case {
        rule: "waited_for_cpu",
        speaks: || teaching("one-core", &["3000000"]),
        silent: computes,
    },
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

fn all_cores() -> Said {
    let cores = std::thread::available_parallelism().unwrap().to_string();
    over_time(&[SPIN, "crowd", &cores, "2000"])
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
