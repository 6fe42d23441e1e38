//! The life of slots, by the probes themselves: memory, ending and reuse, and what does not fit.

use std::{
    fs, os::unix::fs::MetadataExt, path::Path, process::Command, thread::sleep, time::Duration,
};

use jobtrace::{
    cgroup::job::JobCgroup,
    model::{snapshot::Snapshot, source::Source, tables::Own},
    probes::{self, FaultMode, Options, Probes},
};
use jobtrace_tests::{
    probed::{cgroup, forks, own, tasks_directory},
    rig::{PATIENCE, wait_for},
};

const MIB: u64 = 1 << 20;

fn load(cgroup: &JobCgroup) -> Probes {
    let object = std::env::var_os("JOBTRACE_BPF_OBJECT").map(Into::into);
    let options = Options { object, ..Options::new(FaultMode::Full) };
    probes::load(&cgroup.layout(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn snapshot(probes: &mut Probes) -> Snapshot {
    probes.snapshot().expect("a snapshot").expect("probes never end")
}

/// Forks `count` times inside `directory`.
fn fork_inside(directory: &Path, count: u32) {
    let script = format!(
        "echo 0 > {}/cgroup.procs; i=0; while [ $i -lt {count} ]; do (:); i=$((i + 1)); done",
        directory.display()
    );
    let status = Command::new("sh").args(["-c", &script]).status().expect("sh");
    assert!(status.success(), "{status}");
}

#[test]
fn sixty_four_slots_take_at_most_eight_mebibytes_on_two_cpus() {
    let cgroup = cgroup("slots-memory");
    let mut probes = load(&cgroup);
    // Ids of no cgroup at all: nothing is charged to them.
    for slot in 1..64 {
        probes.slots.track((1 << 40) + slot, None).expect("room for 64 slots");
    }
    let snapshot = snapshot(&mut probes);
    assert_eq!(snapshot.slots.len(), 64);
    let cpus = aya_cpus();
    let (bytes, most) = (own(&snapshot, Own::map_bytes), 8 * MIB + (cpus - 2) * 64 * 4096);
    assert!(bytes > 4 * MIB, "the table of tasks alone is more than {bytes} bytes");
    assert!(bytes <= most, "{bytes} bytes on {cpus} CPUs, at most {most}");
}

/// CPUs for which the kernel allocates per-CPU maps.
fn aya_cpus() -> u64 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").expect("possible CPUs");
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<u64>().ok());
    last.expect("a list of CPUs") + 1
}

#[test]
fn a_slot_that_ended_is_free_for_another_job_and_hands_nothing_on() {
    let (first, second) = (cgroup("slots-first"), cgroup("slots-second"));
    let mut probes = load(&first);
    let track = |probes: &mut Probes, cgroup: &JobCgroup| {
        probes.slots.track(cgroup.tasks().id, cgroup.block().map(|block| block.id))
    };
    let ended = track(&mut probes, &first).expect("a free slot");
    fork_inside(&tasks_directory(&first), 30);
    probes.slots.end(ended, 0).expect("it holds a job");
    // What its cgroup does from now on is the rest of the node's.
    let before = forks(&snapshot(&mut probes), 0);
    fork_inside(&tasks_directory(&first), 20);
    sleep(Duration::from_millis(120));
    let last = snapshot(&mut probes);
    assert_eq!(forks(&last, ended), 30, "the ended job");
    assert!(forks(&last, 0) >= before + 20, "the rest of the node");
    let mut is_freed = || (!snapshot(&mut probes).slots.contains_key(&ended)).then_some(());
    wait_for("its slot is free after its last values", PATIENCE, &mut is_freed).unwrap();
    let next = track(&mut probes, &second).expect("a free slot");
    assert_ne!(next, ended, "a lease is never given twice");
    fork_inside(&tasks_directory(&second), 7);
    let reused = snapshot(&mut probes);
    assert_eq!(forks(&reused, next), 7, "the new job begins at zero");
    assert!(probes.slots.end(0, 0).is_err() && probes.slots.end(ended, 0).is_err());
    assert_eq!(own(&reused, Own::dropped_no_bank), 0);
}

#[test]
fn cgroups_that_do_not_fit_are_counted_and_none_is_taken_for_another_jobs() {
    // Four ways of 1,024 sets are the kernel's to fill.
    const ROOM: u32 = 4096;
    const MADE: u32 = ROOM + 200;
    let cgroup = cgroup("slots-full");
    let mut probes = load(&cgroup);
    let lease = probes.slots.track(cgroup.tasks().id, None).expect("a free slot");
    let parent = tasks_directory(&cgroup);
    let path = |n: u32| parent.join(format!("c{n}"));
    for n in 0..MADE {
        fs::create_dir(path(n)).expect("a cgroup");
    }
    let dropped = own(&snapshot(&mut probes), Own::dropped_cgroup);
    assert!((u64::from(MADE - ROOM)..u64::from(MADE)).contains(&dropped), "{dropped} dropped");
    let base = forks(&snapshot(&mut probes), lease);
    fork_inside(&path(0), 5);
    assert_eq!(forks(&snapshot(&mut probes), lease), base + 5, "one of the first is tracked");
    let inode = |n: u32| fs::metadata(path(n)).expect("a cgroup").ino();
    assert!(inode(MADE - 1) > inode(0), "ids are handed out in sequence");
    for n in 0..MADE {
        fs::remove_dir(path(n)).expect("an empty cgroup");
    }
}
