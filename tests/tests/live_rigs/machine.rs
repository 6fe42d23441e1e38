//! The machine: crowds of cgroups, disks that fill or become read only, the clock, known amounts.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::rig::{
    cgroups,
    churn::Churn,
    clock::{WallClock, wall_less_monotonic_ns},
    full_disk::SmallDisk,
    read_only::ReadOnly,
    wait_for,
    workload::{self, Amounts},
};

use super::MOMENT;

const STEP_CLOCK: &str = env!("CARGO_BIN_EXE_step_clock");

#[test]
fn churn_makes_exactly_so_many() {
    let found = Hierarchies::read().unwrap();
    let controllers: Vec<&str> =
        if found.v1("memory").is_some() { vec!["", "memory"] } else { vec![""] };
    for controller in controllers {
        let churn = Churn {
            controller,
            below: "slurm/uid_0",
            count: 500,
            at_once: 4,
            with_task: true,
            ..Churn::default()
        };
        let done = churn.run().unwrap();
        assert_eq!((done.made, done.removed, done.tasks), (500, 500, 500), "{done:?}");
        eprintln!("churn in {controller:?}: {:.0} a second", 500.0 / done.took.as_secs_f64());
    }
    let slow = Churn { count: 20, per_second: Some(100), ..Churn::default() };
    let done = slow.run().unwrap();
    assert_eq!((done.made, done.tasks), (20, 0));
    assert!(done.took >= Duration::from_millis(190), "{done:?}");
    for mount in cgroups::mounts().unwrap() {
        let own = format!("jobtrace-churn-{}-", std::process::id());
        let left = fs::read_dir(mount).unwrap().flatten();
        assert_eq!(left.filter(|e| e.file_name().to_string_lossy().starts_with(&own)).count(), 0);
    }
}

#[test]
fn a_disk_fills_and_empties() {
    let disk = SmallDisk::new(1 << 20).unwrap();
    let (path, file) = (disk.path().to_owned(), disk.path().join("file"));
    assert!((900 << 10..=1 << 20).contains(&disk.fill().unwrap()));
    let refused = fs::write(&file, [1; 4096]).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC));
    disk.empty().unwrap();
    fs::write(&file, [1; 4096]).unwrap();
    drop(disk);
    assert!(!path.exists());
}

#[test]
fn a_disk_becomes_read_only_and_recovers() {
    let disk = ReadOnly::new().unwrap();
    let file = disk.path().join("file");
    fs::write(&file, "1").unwrap();
    disk.set(true).unwrap();
    assert_eq!(fs::write(&file, "2").unwrap_err().raw_os_error(), Some(libc::EROFS));
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    disk.set(false).unwrap();
    fs::write(&file, "2").unwrap();
}

#[test]
fn the_clock_is_stepped_and_put_back() {
    const STEP_NS: i64 = -50_000_000;
    /// Slewing by NTP meanwhile, and the readings' own time.
    const CLOSE_NS: i64 = 1_000_000;
    let (before, begin) = (wall_less_monotonic_ns(), Instant::now());
    let clock = WallClock::hold().unwrap();
    clock.step(STEP_NS).unwrap();
    clock.step(2 * STEP_NS).unwrap();
    let stepped = wall_less_monotonic_ns() - before;
    drop(clock);
    let left = wall_less_monotonic_ns() - before;
    assert!((stepped - 3 * STEP_NS).abs() < CLOSE_NS, "stepped by {stepped} ns");
    assert!(left.abs() < CLOSE_NS, "{left} ns stay after {:?}", begin.elapsed());

    // Who holds it is killed.
    let mut holder =
        Command::new(STEP_CLOCK).arg(STEP_NS.to_string()).stdout(Stdio::piped()).spawn();
    let holder = holder.as_mut().unwrap();
    let said = holder.stdout.take().unwrap().read(&mut [0; 16]).unwrap();
    let stepped = wall_less_monotonic_ns() - before;
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(said > 0 && (stepped - STEP_NS).abs() < CLOSE_NS, "stepped by {stepped} ns");
    let back = || ((wall_less_monotonic_ns() - before).abs() < CLOSE_NS).then_some(());
    wait_for("the clock's return", MOMENT, back).unwrap();
}

#[test]
fn direct_reads_are_of_the_amount_asked() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("data");
    workload::file_of(&file, 4).unwrap();
    let words = Amounts { read_mib: 4, cpu_ms: 10, pages: 100 }.words(&file).unwrap();
    let output = Command::new(&words[0]).args(&words[1..]).output().unwrap();
    let report = workload::report(&String::from_utf8_lossy(&output.stdout)).unwrap();
    assert_eq!(report.fact("read_bytes"), 4 << 20);
    assert!((10_000_000..100_000_000).contains(&report.children.on_cpu_ns), "{report:?}");
    assert!((100..2000).contains(&(report.end.minor - report.begin.minor)), "{report:?}");
}
