//! Cgroups of every kind, as directories of plain files.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;
use crate::{cgroup::place::Place, model::group::Value};

mod changes;
mod seldom;

/// A job at `<mount>/<path>` of hierarchy `number`, its own, in a directory that stays while it lives.
fn place(number: u32, controllers: &[&str], path: &str) -> (TempDir, Place) {
    let mount = tempfile::tempdir().unwrap();
    let place = Place::of_test(number, controllers, mount.path(), path);
    fs::create_dir_all(&place.directory).unwrap();
    (mount, place)
}

fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::write(directory.join(name), text).unwrap();
    }
}

fn known(group: &Group) -> Vec<(&'static str, u64)> {
    let number = |value: &Option<Value>| match value {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    group.fields().filter_map(|(field, value)| Some((field.name, number(value)?))).collect()
}

/// What a reader of one of many jobs, which does something all the time, tells at a second, where `moved` tasks came or ended.
fn at(reader: &mut CgroupReader, second: u64, moved: u64) -> (Group, Group) {
    reader.set_now(
        second * 1_000_000_000,
        Moves { tasks: moved, tells_tasks: false, all: Some(second) },
    );
    (reader.read_memory(), reader.read_cpu())
}

#[test]
fn v2_with_all_its_files() {
    // An agent knows what v2 offers; that makes none of them v1's.
    let (mount, place) = place(0, &["cpuset", "cpu", "io", "memory", "pids"], "a/job");
    write(
        &place.directory,
        &[
            ("memory.current", "1000\n"),
            ("memory.peak", "5000\n"),
            ("memory.stat", "anon 600\nfile 300\nshmem 20\n"),
            ("memory.swap.current", "0\n"),
            ("memory.max", "max\n"),
            ("cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"),
            (
                "io.pressure",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4\n",
            ),
            ("pids.current", "17\n"),
            ("cpu.max", "max 100000\n"),
            ("cpu.stat", "usage_usec 9\nthrottled_usec 0\n"),
        ],
    );
    let above = mount.path().join("a");
    write(
        &above,
        &[
            ("memory.max", "4096\n"),
            ("cpu.max", "500 100000\n"),
            ("cpu.stat", "usage_usec 99\nnr_throttled 2\nthrottled_usec 70\n"),
        ],
    );
    let mut reader = CgroupReader::new(&Places(vec![place]));
    assert_eq!(
        known(&reader.read_memory()),
        [
            ("current_bytes", 1000),
            ("peak_bytes", 5000),
            ("used_peak_bytes", 620),
            ("cache_peak_bytes", 280),
            ("anon_bytes", 600),
            ("file_bytes", 300),
            ("shmem_bytes", 20),
            ("swap_bytes", 0),
            ("limit_bytes", 4096),
            ("cpu_some_stall_ns", 3000),
            ("io_some_stall_ns", 5000),
            ("io_full_stall_ns", 4000),
        ]
    );
    write(&above, &[("cpu.stat", "throttled_usec 75\n")]);
    let cpu = [("cores_held", 5), ("throttled_ns", 75_000), ("tasks", 17)];
    assert!(!reader.throttles_alone(), "the quota is others' too");
    assert_eq!(known(&reader.read_cpu()), cpu);
    write(&above, &[("cpu.max", "700 100000\n")]);
    assert_eq!(reader.read_cpu().number(Cpu::cores_held), Some(7), "it was changed meanwhile");
}

#[test]
fn v1_with_all_its_files() {
    let (_memory_mount, memory) = place(4, &["memory"], "slurm/job");
    write(
        &memory.directory,
        &[
            ("memory.usage_in_bytes", "1000\n"),
            ("memory.max_usage_in_bytes", "5000\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            (
                "memory.stat",
                "cache 1\nrss 2\nhierarchical_memory_limit 8192\ntotal_cache 300\ntotal_rss 600\ntotal_shmem 20\n",
            ),
            ("tasks", "11\n12\n"),
        ],
    );
    fs::create_dir(memory.directory.join("inner")).unwrap();
    write(&memory.directory.join("inner"), &[("tasks", "13\n")]);
    let (_cpu_mount, mut cpu) = place(3, &["cpu", "cpuacct"], "slurm");
    cpu.own = false;
    write(
        &cpu.directory,
        &[
            ("cpu.cfs_quota_us", "500\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 70\n"),
        ],
    );
    let mut reader = CgroupReader::new(&Places(vec![cpu.clone(), memory]));
    assert_eq!(
        known(&reader.read_memory()),
        [
            ("current_bytes", 1000),
            ("peak_bytes", 5000),
            ("used_peak_bytes", 620),
            ("cache_peak_bytes", 280),
            ("anon_bytes", 600),
            ("file_bytes", 300),
            ("shmem_bytes", 20),
            ("limit_bytes", 8192),
        ]
    );
    write(&cpu.directory, &[("cpu.stat", "throttled_time 77\n")]);
    let cpu = [("cores_held", 5), ("throttled_ns", 77), ("tasks", 3)];
    assert_eq!(known(&reader.read_cpu()), cpu);
}

#[test]
fn without_a_peak_file_it_is_the_largest_seen() {
    let (_mount, place) = place(0, &[], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]));
    for (current, peak) in [("10\n", 10), ("30\n", 30), ("20\n", 30)] {
        write(&directory, &[("memory.current", current)]);
        assert_eq!(reader.read_memory().number(Memory::peak_bytes), Some(peak));
    }
}

#[test]
fn a_peak_that_was_told_stays_when_its_file_is_gone() {
    let (_mount, place) = place(0, &[], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]));
    for (current, peak, told) in
        [("10\n", "157\n", 157), ("30\n", "\n", 157), ("20\n", "160\n", 160)]
    {
        write(&directory, &[("memory.current", current), ("memory.peak", peak)]);
        assert_eq!(reader.read_memory().number(Memory::peak_bytes), Some(told));
    }
}

#[test]
fn what_a_job_needs_and_its_cache_are_each_the_largest_of_all_readings() {
    let (_mount, place) = place(0, &[], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]));
    for (stat, used, cached) in [
        ("file 900\n", None, None),
        ("anon 10\nshmem 4\nfile 800\n", Some(14), Some(796)),
        ("anon 30\nshmem 5\nfile 9\n", Some(35), Some(796)),
        ("anon 20\nshmem 1\nfile 900\n", Some(35), Some(899)),
    ] {
        write(&directory, &[("memory.current", "1000\n"), ("memory.stat", stat)]);
        let group = reader.read_memory();
        assert_eq!(group.number(Memory::used_peak_bytes), used);
        assert_eq!(group.number(Memory::cache_peak_bytes), cached);
    }
}

#[test]
fn garbage_and_absence_are_unknown() {
    let (_mount, place) = place(0, &[], "job");
    let mut reader = CgroupReader::new(&Places(vec![place.clone()]));
    assert_eq!(known(&reader.read_memory()), []);
    let names = ["memory.current", "memory.peak", "memory.stat", "memory.max", "cpu.pressure"];
    for name in
        names.into_iter().chain(["pids.current", "cpu.max", "cpu.stat", "memory.swap.current"])
    {
        fs::write(place.directory.join(name), b"-1\xff\nanon\ntotal=\n").unwrap();
    }
    let mut reader = CgroupReader::new(&Places(vec![place.clone()]));
    assert_eq!(known(&reader.read_memory()), []);
    let names: Vec<_> = known(&reader.read_cpu()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["cores_held"], "the affinity alone is known");
}

#[test]
fn a_cgroup_shared_with_others_lends_its_limits_only() {
    let (_mount, mut place) = place(0, &[], "session");
    write(
        &place.directory,
        &[
            ("memory.current", "1000\n"),
            ("memory.max", "4096\n"),
            ("pids.current", "17\n"),
            ("cpu.pressure", "some total=3\n"),
        ],
    );
    place.own = false;
    let mut reader = CgroupReader::new(&Places(vec![place]));
    assert_eq!(known(&reader.read_memory()), [("limit_bytes", 4096)]);
    assert_eq!(reader.read_cpu().number(Cpu::tasks), None);
}

/// `job_fault` with `kills`, as the probes know it, after `reader` has seen it.
fn kills(reader: &mut CgroupReader, kills: Option<u64>) -> Option<u64> {
    let mut groups = [Group::unknown(&MEMORY, Vec::new()), Group::unknown(&FAULT, Vec::new())];
    groups[1].set(Fault::oom_kills, kills);
    reader.add_oom_kills(&mut groups);
    groups[1].number(Fault::oom_kills)
}

#[test]
fn kills_that_no_probe_counts_are_the_cgroups() {
    let (_mount, place) = place(0, &[], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]));
    assert_eq!(kills(&mut reader, None), None);
    write(&directory, &[("memory.events", "low 1\noom 9\noom_kill 3\noom_group_kill 7\n")]);
    assert_eq!(kills(&mut reader, None), Some(3));
    assert_eq!(kills(&mut reader, Some(0)), Some(0));
}

#[test]
fn kills_under_v1_are_added_up_and_do_not_go_with_their_cgroup() {
    let (_mount, place) = place(4, &["memory"], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]));
    write(&directory, &[("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")]);
    let inner = directory.join("inner");
    fs::create_dir(&inner).unwrap();
    write(&inner, &[("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")]);
    assert_eq!(kills(&mut reader, None), Some(3));
    fs::remove_dir_all(&inner).unwrap();
    assert_eq!(kills(&mut reader, None), Some(3));
    // Those since the last look went with it, so the interval's are unknown.
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(kills(&mut reader, None), None);
}

#[test]
fn kills_without_a_count_or_a_cgroup_of_the_jobs_own_are_unknown() {
    let (_mount, mut place) = place(4, &["memory"], "job");
    let directory = place.directory.clone();
    // As on kernels that did not count yet.
    write(&directory, &[("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n")]);
    assert_eq!(kills(&mut CgroupReader::new(&Places(vec![place.clone()])), None), None);
    write(&directory, &[("memory.oom_control", "oom_kill 5\n")]);
    place.own = false;
    assert_eq!(kills(&mut CgroupReader::new(&Places(vec![place])), None), None);
}
