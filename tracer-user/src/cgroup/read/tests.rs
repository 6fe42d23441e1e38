//! Cgroups of every kind, as directories of plain files.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::model::group::Value;

mod changes;

/// A job at `<mount>/<path>` of hierarchy `number`, its own, in a directory that stays while it lives.
fn place(number: u32, controllers: &[&str], path: &str) -> (TempDir, Place) {
    let mount = tempfile::tempdir().unwrap();
    let directory = mount.path().join(path);
    fs::create_dir_all(&directory).unwrap();
    let controllers = controllers.iter().map(|name| (*name).to_owned()).collect();
    let place = Place { number, controllers, mount: mount.path().to_owned(), directory, own: true };
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
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![cpu.clone(), memory]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
    for (current, peak) in [("10\n", 10), ("30\n", 30), ("20\n", 30)] {
        write(&directory, &[("memory.current", current)]);
        assert_eq!(reader.read_memory().number(Memory::peak_bytes), Some(peak));
    }
}

#[test]
fn a_peak_that_was_told_stays_when_its_file_is_gone() {
    let (_mount, place) = place(0, &[], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![place.clone()]), 0);
    assert_eq!(known(&reader.read_memory()), []);
    let names = ["memory.current", "memory.peak", "memory.stat", "memory.max", "cpu.pressure"];
    for name in
        names.into_iter().chain(["pids.current", "cpu.max", "cpu.stat", "memory.swap.current"])
    {
        fs::write(place.directory.join(name), b"-1\xff\nanon\ntotal=\n").unwrap();
    }
    let mut reader = CgroupReader::new(&Places(vec![place.clone()]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
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
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
    assert_eq!(kills(&mut reader, None), None);
    write(&directory, &[("memory.events", "low 1\noom 9\noom_kill 3\noom_group_kill 7\n")]);
    assert_eq!(kills(&mut reader, None), Some(3));
    assert_eq!(kills(&mut reader, Some(0)), Some(0));
}

#[test]
fn kills_under_v1_are_added_up_and_do_not_go_with_their_cgroup() {
    let (_mount, place) = place(4, &["memory"], "job");
    let directory = place.directory.clone();
    let mut reader = CgroupReader::new(&Places(vec![place]), 0);
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
    assert_eq!(kills(&mut CgroupReader::new(&Places(vec![place.clone()]), 0), None), None);
    write(&directory, &[("memory.oom_control", "oom_kill 5\n")]);
    place.own = false;
    assert_eq!(kills(&mut CgroupReader::new(&Places(vec![place]), 0), None), None);
}

/// What a reader of one of many jobs tells at a second, where `moved` tasks came or ended.
fn at(reader: &mut CgroupReader, second: u64, moved: u64) -> (Group, Group) {
    reader.set_now(second * 1_000_000_000, Moves { tasks: moved, all: None });
    (reader.read_memory(), reader.read_cpu())
}

#[test]
fn of_many_jobs_what_is_not_read_again_is_unknown_and_what_moved_is_read() {
    let (_mount, place) = place(3, &["memory"], "job");
    let charge = |current: u64, rss: u64| {
        let stat = format!(
            "rss 9\nhierarchical_memory_limit 8192\ntotal_cache 3\ntotal_rss {rss}\ntotal_shmem 1\ntotal_swap 2\n"
        );
        let files = [
            ("memory.usage_in_bytes", format!("{current}\n")),
            ("memory.max_usage_in_bytes", "9000\n".into()),
            ("memory.stat", stat),
            ("tasks", "1\n2\n".into()),
        ];
        files.iter().for_each(|(name, text)| fs::write(place.directory.join(name), text).unwrap());
    };
    let mut reader = CgroupReader::of_job(&Places(vec![place.clone()]), 0);
    let fields = [Memory::anon_bytes, Memory::shmem_bytes, Memory::swap_bytes, Memory::limit_bytes];
    let told = |memory: &Group| fields.map(|field| memory.number(field));
    let all = |rss| [Some(rss), Some(1), Some(2), Some(8192)];
    charge(1000, 500);
    // Young: each second.
    for second in 1..=10 {
        let (memory, cpu) = at(&mut reader, second, 0);
        assert_eq!((told(&memory), cpu.number(Cpu::tasks)), (all(500), Some(2)), "{second}");
    }
    let (memory, cpu) = at(&mut reader, 100, 0);
    assert_eq!((told(&memory), cpu.number(Cpu::tasks)), (all(500), Some(2)));
    charge(1010, 501);
    let (memory, cpu) = at(&mut reader, 101, 0);
    assert_eq!((told(&memory), cpu.number(Cpu::tasks)), ([None; 4], None), "unknown, not old");
    let each = [Memory::current_bytes, Memory::peak_bytes, Memory::used_peak_bytes];
    assert_eq!(each.map(|field| memory.number(field)), [Some(1010), Some(9000), Some(501)]);
    // More than a hundredth more, or less, than when it was read; a task that came.
    charge(1011, 502);
    assert_eq!(told(&at(&mut reader, 102, 0).0), all(502));
    charge(1000, 503);
    assert_eq!(told(&at(&mut reader, 103, 0).0), all(503));
    let (memory, cpu) = at(&mut reader, 104, 1);
    assert_eq!((told(&memory), cpu.number(Cpu::tasks)), ([None; 4], Some(2)));
    // After a few seconds at the latest; and at long intervals each time.
    assert_eq!(told(&at(&mut reader, 109, 1).0), all(503));
    assert_eq!(told(&at(&mut reader, 119, 1).0), all(503));
    // Near the limit what is used more takes its place from the page cache: each time, until the charge has fallen.
    charge(7700, 504);
    assert_eq!(told(&at(&mut reader, 120, 1).0), all(504));
    charge(7700, 7000);
    assert_eq!(told(&at(&mut reader, 121, 1).0), all(7000));
    charge(7600, 505);
    assert_eq!(told(&at(&mut reader, 122, 1).0), all(505));
    assert_eq!(told(&at(&mut reader, 123, 1).0), [None; 4]);
}

#[test]
fn of_a_job_that_does_nothing_what_was_told_is_told_until_a_sign() {
    let (_memory_mount, memory) = place(3, &["memory"], "job");
    let (_v2_mount, v2) = place(0, &[], "job");
    let stat = "hierarchical_memory_limit 8192\ntotal_cache 3\ntotal_rss 500\ntotal_shmem 1\n";
    let charge = |current: &str, limit: &str| {
        let files = [
            ("memory.usage_in_bytes", current),
            ("memory.max_usage_in_bytes", "900\n"),
            ("memory.limit_in_bytes", limit),
            ("memory.stat", stat),
        ];
        write(&memory.directory, &files);
    };
    let stalled = |us: u64| {
        let text = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
        fs::write(v2.directory.join("io.pressure"), text).unwrap();
    };
    let run = |tasks: &str| fs::write(v2.directory.join("pids.current"), tasks).unwrap();
    charge("800\n", "8192\n");
    stalled(1);
    run("2\n");
    let mut reader = CgroupReader::of_job(&Places(vec![memory.clone(), v2.clone()]), 0);
    let mut told = |second: u64, all: Option<u64>| {
        reader.set_now(second * 1_000_000_000, Moves { tasks: 0, all });
        let [memory, _] = reader.read();
        [Memory::current_bytes, Memory::anon_bytes, Memory::limit_bytes, Memory::io_some_stall_ns]
            .map(|field| memory.number(field))
    };
    let known =
        |current, stall_us: u64| [Some(current), Some(500), Some(8192), Some(stall_us * 1000)];
    // Old: what is read seldom is read once more to be told, when the kernel has added it up.
    assert_eq!(told(100, Some(5)), known(800, 1));
    for second in 101..104 {
        assert_eq!(told(second, Some(5))[1], None);
    }
    assert_eq!(told(104, Some(5)), known(800, 1));
    stalled(2);
    assert_eq!(told(105, Some(5)), known(800, 1), "not read");
    assert_eq!(told(106, Some(6))[3], Some(2000), "a task ran");
    // A task of its waits.
    for second in 107..112 {
        stalled(second);
        assert_eq!(told(second, Some(6))[3], Some(second * 1000));
    }
    assert_eq!(told(112, Some(6))[3], Some(111_000));
    assert_eq!(told(113, Some(6)), known(800, 111));
    stalled(200);
    assert_eq!(told(114, Some(6))[3], Some(111_000), "not read");
    charge("801\n", "8192\n");
    assert_eq!(told(115, Some(6))[3], Some(200_000), "the charge moved");
    assert_eq!(told(116, Some(6))[3], Some(200_000));
    assert_eq!(told(117, Some(6)), known(801, 200));
    stalled(250);
    run("3\n");
    assert_eq!(told(118, Some(6))[3], Some(250_000), "a task was moved in");
    assert_eq!(told(119, Some(6))[3], Some(250_000));
    assert_eq!(told(120, Some(6)), known(801, 250));
    stalled(300);
    charge("801\n", "4096\n");
    assert_eq!(told(121, Some(6))[3], Some(300_000), "the limit was changed");
    assert_eq!(told(122, None)[3], Some(300_000));
    stalled(400);
    assert_eq!(told(123, None)[3], Some(400_000), "nobody counts");
}

/// Its tasks are listed every few seconds: what the readings between do not tell has not changed.
#[test]
fn of_a_job_that_does_nothing_and_whose_tasks_are_listed_what_was_told_is_told() {
    let (_mount, memory) = place(3, &["memory"], "job");
    let files = [
        ("memory.usage_in_bytes", "800\n"),
        ("memory.max_usage_in_bytes", "900\n"),
        ("memory.limit_in_bytes", "8192\n"),
        ("memory.stat", "hierarchical_memory_limit 8192\ntotal_cache 3\ntotal_rss 500\n"),
        ("tasks", "7\n8\n"),
    ];
    write(&memory.directory, &files);
    let mut reader = CgroupReader::of_job(&Places(vec![memory.clone()]), 0);
    let mut listed = 0;
    for second in 100..130_u64 {
        reader.set_now(second * 1_000_000_000, Moves { tasks: 0, all: Some(5) });
        if second == 106 {
            write(&memory.directory, &[("memory.max_usage_in_bytes", "950\n")]);
        }
        let [memory, cpu] = reader.read();
        assert_eq!(memory.number(Memory::peak_bytes), Some(900), "read at {second}");
        listed += u64::from(cpu.number(Cpu::tasks) == Some(2));
    }
    assert!((3..15).contains(&listed), "{listed}");
}
