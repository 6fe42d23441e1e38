//! What is read of a command's cgroups while it runs, and when they are gone.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use jobtrace::{
    cgroup::{
        parts::PartFiles,
        place::{Place, Places},
        read::CgroupReader,
        remove::Removal,
    },
    model::tables::{Cpu, Memory},
};

use super::{create, directories, run};

#[test]
fn memory_and_tasks_are_the_jobs_own() {
    let cgroup = create("memory");
    let mut reader = CgroupReader::new(cgroup.places());
    let idle = reader.read_cpu();
    assert_eq!(idle.number(Cpu::tasks), Some(0));
    let cores = idle.number(Cpu::cores_held).unwrap();
    let online = thread::available_parallelism().unwrap().get() as u64;
    assert!((1..=online * 1000).contains(&cores), "{cores} of {online}");

    // dd keeps a block of 48 MiB in its own memory while it waits to write it, which is until it was seen.
    let directory = tempfile::tempdir().unwrap();
    let [fifo, seen] = ["fifo", "seen"].map(|name| directory.path().join(name));
    let script = format!(
        "mkfifo {0}; exec 3<>{0}; dd if=/dev/zero of={0} bs=48M count=1 2>&- & \
         while [ ! -e {1} ]; do sleep 0.02; done; head -c 48M <&3 >/dev/null; wait",
        fifo.display(),
        seen.display()
    );
    let (mut most_tasks, mut most_anon) = (0, 0);
    thread::scope(|scope| {
        let job = scope.spawn(|| run(&cgroup, &script).unwrap());
        let start = Instant::now();
        while !job.is_finished() && start.elapsed() < Duration::from_secs(20) {
            most_tasks = most_tasks.max(reader.read_cpu().number(Cpu::tasks).unwrap());
            let anon = reader.read_memory().number(Memory::anon_bytes);
            most_anon = most_anon.max(anon.unwrap_or(0));
            // Where no file tells, the tasks show that it goes on.
            if most_tasks >= 2 && anon.is_none_or(|bytes| bytes >= 48 << 20) {
                fs::write(&seen, "").unwrap();
            }
            thread::sleep(Duration::from_millis(10));
        }
        // Nobody waits for ever where it was not seen.
        fs::write(&seen, "").unwrap();
    });
    assert!((2..=6).contains(&most_tasks), "{most_tasks}");
    let memory = reader.read_memory();
    println!("{memory:?}");
    if memory.number(Memory::current_bytes).is_some() {
        let peak = memory.number(Memory::peak_bytes).unwrap();
        assert!((48 << 20..512 << 20).contains(&peak), "{peak}");
        assert!(most_anon >= 48 << 20, "{most_anon}");
    }
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
    let gone = reader.read_memory();
    assert_eq!(gone.number(Memory::current_bytes), None, "unknown is not zero");
    assert_eq!(gone.number(Memory::io_some_stall_ns), None);
}

/// Its tasks are listed by the kernel, in no hierarchy counted.
#[test]
fn cgroups_that_go_and_come_again_are_read_as_they_are_now() {
    let cgroup = create("again");
    let listed =
        |place: &&Place| place.number != 0 && !place.controllers.iter().any(|c| c == "pids");
    let place = cgroup.places().own().find(listed).or(cgroup.places().v2()).unwrap().clone();
    let directory = place.directory.clone();
    let list = if place.number == 0 { "cgroup.threads" } else { "tasks" };
    assert!(directory.join(list).exists(), "{place:?}");
    // As its controllers are, or another that counts tasks would be asked first.
    let mut reader = CgroupReader::new(&Places(vec![Place { controllers: [].into(), ..place }]));
    let tasks = |reader: &mut CgroupReader| reader.read_cpu().number(Cpu::tasks);
    assert_eq!((tasks(&mut reader), tasks(&mut reader)), (Some(0), Some(0)));
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    // Where the kernel counts its time on a CPU.
    for directory in directories(&cgroup) {
        fs::write(directory.join("cgroup.procs"), sleeper.id().to_string()).unwrap();
    }
    let join = |below: &str| {
        let procs = directory.join(below).join("cgroup.procs");
        fs::write(procs, sleeper.id().to_string()).unwrap();
    };
    fs::create_dir(directory.join("a")).unwrap();
    assert_eq!(tasks(&mut reader), Some(1));
    join("a");
    assert_eq!(tasks(&mut reader), Some(1));
    // As many as before are below it, and it is another.
    join("");
    fs::remove_dir(directory.join("a")).unwrap();
    fs::create_dir(directory.join("b")).unwrap();
    join("b");
    assert_eq!(tasks(&mut reader), Some(1));
    join("");
    fs::remove_dir(directory.join("b")).unwrap();
    assert_eq!(tasks(&mut reader), Some(1));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    // All of it, and what came in its place.
    let mut part = PartFiles::of(cgroup.places());
    let on_cpu_ns = |part: &mut PartFiles| part.read(None).on_cpu_ns;
    assert!(on_cpu_ns(&mut part).is_some_and(|ns| ns > 0), "the sleeper came and went");
    let all = directories(&cgroup);
    all.iter().for_each(|directory| fs::remove_dir(directory).unwrap());
    assert_eq!((tasks(&mut reader), on_cpu_ns(&mut part)), (None, None), "unknown is not zero");
    all.iter().for_each(|directory| fs::create_dir(directory).unwrap());
    assert_eq!((tasks(&mut reader), on_cpu_ns(&mut part)), (Some(0), Some(0)));
    assert_eq!(cgroup.remove().unwrap(), Removal::Done);
}
