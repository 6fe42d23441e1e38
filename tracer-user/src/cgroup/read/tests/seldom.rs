//! One of many jobs, whose files are read as seldom as what they tell allows.

use super::*;

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
        reader.set_now(second * 1_000_000_000, Moves { tasks: 0, tells_tasks: false, all });
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
    // What no task does is compared every five seconds.
    for second in 115..118 {
        assert_eq!(told(second, Some(6)), known(800, 111));
    }
    assert_eq!(told(118, Some(6))[3], Some(200_000), "the charge moved");
    assert_eq!(told(119, Some(6))[3], Some(200_000));
    assert_eq!(told(120, Some(6)), known(801, 200));
    stalled(250);
    run("3\n");
    for second in 121..125 {
        assert_eq!(told(second, Some(6)), known(801, 200));
    }
    assert_eq!(told(125, Some(6))[3], Some(250_000), "a task was moved in");
    assert_eq!(told(126, Some(6))[3], Some(250_000));
    assert_eq!(told(127, Some(6)), known(801, 250));
    stalled(300);
    charge("801\n", "4096\n");
    for second in 128..132 {
        assert_eq!(told(second, Some(6)), known(801, 250));
    }
    assert_eq!(told(132, Some(6))[3], Some(300_000), "the limit was changed");
    assert_eq!(told(133, None)[3], Some(300_000));
    stalled(400);
    assert_eq!(told(134, None)[3], Some(400_000), "nobody counts");
}

/// Its tasks are listed every half minute: between them none came or ended by the probes. Version 2 may lack the controller
/// that counts them.
#[test]
fn of_a_job_that_does_nothing_and_whose_tasks_are_listed_what_was_told_is_told() {
    let v1 = [
        ("memory.usage_in_bytes", "800\n"),
        ("memory.max_usage_in_bytes", "900\n"),
        ("memory.limit_in_bytes", "8192\n"),
        ("memory.stat", "hierarchical_memory_limit 8192\ntotal_cache 3\ntotal_rss 500\n"),
        ("tasks", "7\n8\n"),
    ];
    let v2 = [
        ("memory.current", "800\n"),
        ("memory.peak", "900\n"),
        ("memory.max", "8192\n"),
        ("memory.stat", "file 3\nanon 500\nshmem 1\n"),
        ("cgroup.threads", "7\n8\n"),
    ];
    for (number, controllers, files) in [(3, &["memory"][..], v1), (0, &[], v2)] {
        let (_mount, memory) = place(number, controllers, "job");
        write(&memory.directory, &files);
        let mut reader = CgroupReader::of_job(&Places(vec![memory.clone()]), 0);
        let mut listed = Vec::new();
        for second in 100..215_u64 {
            // Nothing, but for something at second 180.
            let all = Some(if second < 180 { 5 } else { 6 });
            reader.set_now(second * 1_000_000_000, Moves { tasks: 0, tells_tasks: false, all });
            if second == 106 {
                write(&memory.directory, &[(files[1].0, "950\n")]);
            }
            write(&memory.directory, &[(files[4].0, &"7\n".repeat(second as usize))]);
            let [memory, cpu] = reader.read();
            if second < 130 {
                assert_eq!(memory.number(Memory::peak_bytes), Some(900), "read at {second}");
            }
            let tasks = cpu.number(Cpu::tasks);
            match tasks {
                Some(tasks) if tasks == second => listed.push(second),
                tasks => assert_eq!(tasks, listed.last().copied(), "at {second}"),
            }
        }
        assert_eq!(listed, [100, 130, 160, 180, 210], "hierarchy {number}");
    }
}

/// Where the probes tell of each task that comes or ends, tasks are listed when one did, and each half minute for those that
/// were moved; what nobody counted for a while is listed again.
#[test]
fn tasks_that_come_and_end_by_the_probes_alone_are_listed_when_one_did() {
    let (_mount, place) = place(3, &["memory"], "job");
    let mut reader = CgroupReader::of_job(&Places(vec![place.clone()]), 0);
    let mut listed = Vec::new();
    for second in 100..215_u64 {
        // One task at second 150; not told at 190.
        let (tasks, tells_tasks) = (u64::from(second >= 150), second != 190);
        let moves = Moves { tasks, tells_tasks, all: Some(second) };
        reader.set_now(second * 1_000_000_000, moves);
        write(&place.directory, &[("tasks", &"7\n".repeat(second as usize))]);
        let [_, cpu] = reader.read();
        match cpu.number(Cpu::tasks) {
            Some(tasks) if tasks == second => listed.push(second),
            None => assert!((191..196).contains(&second), "at {second}"),
            tasks => assert_eq!(tasks, listed.last().copied(), "at {second}"),
        }
    }
    assert_eq!(listed[..6], [100, 130, 150, 151, 181, 190], "once more after a sign");
    assert!(listed.len() == 7 && (194..=196).contains(&listed[6]), "{listed:?}");
}
