//! What somebody changes of a job's CPUs, quota and memory limit while it runs.

use super::*;
use crate::model::held::is_unlimited;

#[test]
fn cores_and_limits_that_change_are_told_within_seconds_and_those_of_who_ended_stay() {
    let (_set_mount, set) = place(4, &["cpuset"], "slurm/job");
    let (_cpu_mount, cpu) = place(5, &["cpu"], "slurm/job");
    let (_memory_mount, memory) = place(3, &["memory"], "slurm/job");
    let (set_at, cpu_at) = (set.directory.clone(), cpu.directory.clone());
    let limit = |bytes: &str| {
        let stat = format!("hierarchical_memory_limit {bytes}\ntotal_rss 5\ntotal_shmem 1\n");
        let files = [("memory.usage_in_bytes", "1000\n"), ("memory.stat", stat.as_str())];
        write(&memory.directory, &files);
    };
    let cores = |cpus: &str, quota: &str| {
        write(&set_at, &[("cpuset.effective_cpus", cpus)]);
        write(&cpu_at, &[("cpu.cfs_quota_us", quota), ("cpu.cfs_period_us", "100000\n")]);
    };
    limit("8192");
    cores("0-3\n", "-1\n");
    let above = [("cpu.cfs_quota_us", "350000\n"), ("cpu.cfs_period_us", "100000\n")];
    write(cpu_at.parent().unwrap(), &above);
    let mut reader = CgroupReader::of_job(&Places(vec![set, cpu, memory.clone()]), 0);
    // Cores, and the limit with whether its absence says that there is none.
    let mut told = |second| {
        let (memory, cpu) = at(&mut reader, second, 0);
        let limit = memory.number(Memory::limit_bytes);
        (cpu.number(Cpu::cores_held), limit, is_unlimited(&memory))
    };
    assert_eq!(told(100), (Some(3500), Some(8192), false), "the one above allows less");
    cores("0\n", "-1\n");
    limit("9223372036854771712");
    assert_eq!(told(101), (Some(3500), None, false), "not each second");
    assert_eq!(told(106), (Some(1000), None, true));
    cores("0-2\n", "50000\n");
    limit("4096");
    assert_eq!(told(112), (Some(500), Some(4096), false));
    // At long intervals each time.
    cores("0-2\n", "-1\n");
    limit("9223372036854771712");
    assert_eq!(told(122), (Some(3000), None, true), "the quota was removed");
    cores("0\n", "20000\n");
    assert_eq!(told(132).0, Some(200));
    for directory in [&set_at, &cpu_at] {
        fs::remove_dir_all(directory).unwrap();
    }
    assert_eq!(told(142).0, Some(200), "of who has ended it is what was known last");
}

/// Also of a job that does nothing, which is not read as a whole meanwhile.
#[test]
fn a_limit_above_that_changes_is_told_within_seconds() {
    let (_mount, place) = place(0, &[], "slurm/job");
    let (directory, parent) =
        (place.directory.clone(), place.directory.parent().unwrap().to_owned());
    let above = |limit: &str| write(&parent, &[("memory.max", limit)]);
    above("4000\n");
    let files = [
        ("memory.current", "9\n"),
        ("memory.max", "max\n"),
        ("memory.stat", "anon 5\nfile 2\nshmem 1\n"),
    ];
    write(&directory, &files);
    let mut reader = CgroupReader::of_job(&Places(vec![place]), 0);
    let mut told = |second| at(&mut reader, second, 0).0.number(Memory::limit_bytes);
    let known = |told: Option<u64>| told.is_some();
    assert_eq!((100..=110).filter_map(&mut told).min(), Some(4000));
    above("5000\n");
    let after: Vec<_> = (111..=120).map(&mut told).filter(|told| known(*told)).collect();
    assert_eq!(after.last(), Some(&Some(5000)), "{after:?}");
    assert!(after.iter().filter(|told| **told == Some(4000)).count() <= 5, "{after:?}");
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(told(121), None, "nothing is known of what is gone");
}

#[test]
fn under_v2_a_quota_and_a_limit_that_were_removed_are_none() {
    let (_mount, place) = place(0, &[], "slurm/job");
    let directory = place.directory.clone();
    let files = |cpus: &str, quota: &str, limit: &str| {
        let more = [("cpuset.cpus.effective", cpus), ("cpu.max", quota), ("memory.max", limit)];
        write(&directory, &more);
    };
    write(&directory, &[("memory.current", "9\n"), ("memory.stat", "anon 5\nshmem 1\n")]);
    files("0-1\n", "50000 100000\n", "4096\n");
    let mut reader = CgroupReader::of_job(&Places(vec![place]), 0);
    let mut told = |second| {
        let (memory, cpu) = at(&mut reader, second, 0);
        let limit = memory.number(Memory::limit_bytes);
        (cpu.number(Cpu::cores_held), limit, is_unlimited(&memory))
    };
    assert_eq!(told(10), (Some(500), Some(4096), false));
    files("0-1\n", "max 100000\n", "max\n");
    assert_eq!(told(20), (Some(2000), None, true));
    files("1\n", "max 100000\n", "8192\n");
    assert_eq!(told(30), (Some(1000), Some(8192), false));
}
