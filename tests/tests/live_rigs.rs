//! Live ring: the surroundings themselves (`src/rig`). What other tests build on is what it says it
//! is: Slurm's cgroups have Slurm's shapes, InfluxDB stores and refuses, and nothing stays behind.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::rig::{
    cgroups::{self, Place},
    churn::Churn,
    clock::{WallClock, wall_less_monotonic_ns},
    container::{Container, Kind},
    full_disk::SmallDisk,
    influx::Influx,
    read_only::ReadOnly,
    slurm::{JobId, Mode, Slurm, Task},
    systemd::Systemd,
    wait_for,
    workload::{self, Amounts},
};
use std::io::Write;

const MOMENT: Duration = Duration::from_secs(20);

/// Where `processes` are, in the hierarchy of `controller` or in v2 where that is empty.
fn path(places: &[Place], controller: &str) -> String {
    let is_meant = |place: &&Place| place.controllers.split(',').any(|name| name == controller);
    places.iter().find(is_meant).map(|place| place.path.clone()).unwrap_or_default()
}

/// The task of a job whose command line, its folder aside, begins so, once it is there.
fn task_of(slurm: &Slurm, job: JobId, command: &str) -> Task {
    let is_it = |task: &Task| {
        let line = task.program.strip_prefix("/usr").unwrap_or(&task.program);
        line.strip_prefix("/bin/").unwrap_or(line).starts_with(command)
    };
    let found = wait_for(&format!("{command} of job {job}"), MOMENT, || {
        slurm.tasks(job).into_iter().find(is_it)
    });
    found.unwrap_or_else(|error| {
        panic!("{error}: {:?} {:?}: {:?}", slurm.jobs(job), slurm.output(job), slurm.tasks(job))
    })
}

/// Two steps, an array, a cancelled job, a job of another user, all at once.
fn slurm_works(slurm: &Slurm) {
    let (program, file) = (workload::workload("amounts").unwrap(), slurm.folder().join("data"));
    let amounts = Amounts { read_mib: 0, cpu_ms: 100, pages: 1000 };
    let words = amounts.words(&file).unwrap().join(" ");
    assert!(words.starts_with(&program.display().to_string()));
    // The second step stays until it has been looked at.
    let steps = slurm
        .sbatch(&format!("srun --overlap {words}\nsrun --overlap sleep 600 || true"), &[])
        .unwrap();
    let array = slurm.sbatch("echo task $SLURM_ARRAY_TASK_ID", &["--array=0-2"]).unwrap();
    let cancelled = slurm.sbatch("exec sleep 601", &["--uid=65534"]).unwrap();

    let step = task_of(slurm, steps, "sleep 600");
    let foreign = task_of(slurm, cancelled, "sleep 601");
    let node = slurm.node();
    match slurm.mode() {
        Mode::V1 => {
            let step_path = format!("/slurm_{node}/uid_0/job_{steps}/step_1");
            assert_eq!(path(&step.places, "freezer"), step_path);
            assert_eq!(path(&step.places, "memory"), format!("{step_path}/task_0"));
            assert_eq!(path(&step.places, "cpuacct"), format!("{step_path}/task_0"));
            assert_eq!(path(&step.places, ""), "/");
            let batch = format!("/slurm_{node}/uid_65534/job_{cancelled}/step_batch");
            assert_eq!(path(&foreign.places, "freezer"), batch);
        }
        Mode::V2 => {
            let scope = format!("/system.slice/{node}_slurmstepd.scope");
            let step_path = format!("{scope}/job_{steps}/step_1/user/task_0");
            assert_eq!(path(&step.places, ""), step_path);
            let batch = format!("{scope}/job_{cancelled}/step_batch/user/task_0");
            assert_eq!(path(&foreign.places, ""), batch);
            let daemon = task_of(slurm, steps, "slurmstepd: ");
            let place = path(&daemon.places, "");
            assert!(place.starts_with(&scope) && place.ends_with("/slurm"), "{daemon:?}");
        }
    }
    // batch, extern, 1; in 22.05 a step that has ended is forgotten.
    let mut known: Vec<String> =
        slurm.sstat(steps).unwrap().into_iter().map(|used| used.step).collect();
    known.sort();
    assert_eq!(known, ["1", "batch", "extern"].map(|step| format!("{steps}.{step}")));

    // SAFETY: no pointers; a process in a cgroup of the rig's.
    assert_eq!(unsafe { libc::kill(step.pid, libc::SIGTERM) }, 0);
    slurm.scancel(cancelled).unwrap();
    let ended = slurm.wait(steps).unwrap();
    assert_eq!((ended[0].state.as_str(), ended[0].exit), ("COMPLETED", (0, 0)), "{ended:?}");
    let report = workload::report(&slurm.output(steps).unwrap()).unwrap();
    assert_eq!(report.fact("pages"), 1000);
    assert!(report.children.on_cpu_ns >= 100_000_000, "{report:?}");
    assert_eq!(slurm.wait(cancelled).unwrap()[0].state, "CANCELLED");
    assert_eq!(slurm.job_state(cancelled).unwrap().all["UserId"], "nobody(65534)");

    let tasks = slurm.wait(array).unwrap();
    assert_eq!(tasks.len(), 3, "{tasks:?}");
    for task in tasks {
        assert_eq!((task.state.as_str(), task.all["ArrayJobId"].parse()), ("COMPLETED", Ok(array)));
        let printed = slurm.output(task.id).unwrap();
        assert_eq!(printed, format!("task {}\n", task.all["ArrayTaskId"]));
    }
    for job in [steps, array, cancelled] {
        wait_for("a job's last directory", MOMENT, || {
            slurm.job_cgroups(job).is_empty().then_some(())
        })
        .unwrap();
    }
}

/// What the rig had must be gone.
fn gone(slurm: Slurm) {
    let cgroups = slurm.own_cgroups().to_vec();
    let folder = slurm.folder();
    let node = slurm.node().to_owned();
    assert!(cgroups.iter().any(|cgroup| cgroup.is_dir()), "{cgroups:?}");
    drop(slurm);
    assert!(!cgroups.iter().any(|cgroup| cgroup.exists()), "{cgroups:?}");
    assert!(!folder.exists());
    assert_eq!(processes_that_name(&node), Vec::<String>::new());
}

/// The command lines that hold `text`.
fn processes_that_name(text: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    lines.filter(|line| line.contains(text)).collect()
}

/// Says which is not possible here rather than passing over it.
fn has_v1() -> bool {
    let found = Hierarchies::read().unwrap();
    let missing = ["freezer", "memory", "cpuset", "cpuacct"]
        .into_iter()
        .find(|&name| found.v1(name).is_none());
    if let Some(controller) = missing {
        eprintln!("this host has no v1 hierarchy of {controller}: Slurm on v1 cannot be had here");
    }
    missing.is_none()
}

#[test]
fn slurm_on_v1() {
    if !has_v1() {
        assert!(Slurm::start(Mode::V1).is_err());
        return;
    }
    let slurm = Slurm::start(Mode::V1).unwrap();
    // In a job that would end well otherwise; more than its memory in one process.
    let beyond = workload::workload("touch").unwrap();
    let script = format!("exec {} beyond {}", beyond.display(), 256 << 20);
    let greedy = slurm.sbatch(&script, &["--mem=64"]).unwrap();
    slurm_works(&slurm);
    let ended = slurm.wait(greedy).unwrap();
    assert_eq!(ended[0].state, "OUT_OF_MEMORY", "{ended:?}");
    gone(slurm);
}

#[test]
fn slurm_on_v2() {
    let slurm = Slurm::start(Mode::V2).unwrap();
    slurm_works(&slurm);
    gone(slurm);
}

#[test]
fn slurm_leaves_nothing_of_a_job_that_still_runs() {
    let mut slurm = Slurm::start(Mode::V2).unwrap();
    let job = slurm.sbatch("exec sleep 602", &[]).unwrap();
    let task = task_of(&slurm, job, "sleep 602");
    slurm.restart_slurmd().unwrap();
    assert_eq!(task_of(&slurm, job, "sleep 602").pid, task.pid, "the job outlives slurmd");
    gone(slurm);
    assert!(!Path::new(&format!("/proc/{}", task.pid)).exists());
}

#[test]
fn influx_stores_and_refuses() {
    let influx = Influx::start().unwrap();
    influx.create_db("db").unwrap();
    let lines = b"m,host=a n=1i,x=0.5 1000000001\nm,host=b n=2i 2000000002\n";
    for gzip in [false, true] {
        assert_eq!(influx.write_lp("db", lines, gzip).unwrap().status, 204);
    }
    let rows = influx.query("db", "SELECT n, x FROM m GROUP BY host").unwrap();
    let cells = |key: &str| rows.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(cells("host"), ["a", "b"]);
    assert_eq!(cells("time"), [1_000_000_001_u64, 2_000_000_002]);
    assert_eq!(cells("n"), [1, 2]);
    assert_eq!(cells("x")[0], 0.5);
    assert!(cells("x")[1].is_null());
    // One type per field, for ever; the good line of the same body is stored.
    let refused = influx.write_lp("db", b"m,host=a n=1.5 3\nm,host=c n=3i 4\n", false).unwrap();
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("field type conflict"), "{refused:?}");
    assert_eq!(influx.write_lp("db", b"no line protocol\n", false).unwrap().status, 400);
    assert_eq!(influx.query("db", "SELECT sum(n) FROM m").unwrap()[0]["sum"], 6);
    assert!(influx.query("db", "SELECT nonsense").is_err());

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.lp.gz");
    let mut packed = GzEncoder::new(fs::File::create(&file).unwrap(), Compression::fast());
    packed.write_all(b"# DML\n# CONTEXT-DATABASE: db\nimported n=7i 5000000005\n").unwrap();
    packed.finish().unwrap();
    let output = influx.import(&file, true).unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = influx.query("db", "SELECT n FROM imported").unwrap();
    assert_eq!((&rows[0]["n"], &rows[0]["time"]), (&7.into(), &5_000_000_005_u64.into()));
}

#[test]
fn systemd_boots_and_makes_scopes() {
    let systemd = Systemd::start().unwrap();
    let cgroup = systemd.cgroup().to_owned();
    let version = systemd.run(&["systemctl", "--version"]).unwrap();
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("systemd 2"), "{version:?}");
    let init = fs::read_to_string(systemd.path("/proc/1/comm")).unwrap();
    assert_eq!(init, "systemd\n");

    let words = ["systemd-run", "--scope", "--quiet", "--unit=rig", "cat", "/proc/self/cgroup"];
    let output = systemd.run(&words).unwrap();
    let inside = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(inside.lines().any(|line| line == "0::/system.slice/rig.scope"), "{inside}");

    let unit = "[Service]\nExecStart=/usr/local/bin/rest\n";
    systemd.install("/usr/local/bin/rest", b"#!/bin/sh\nexec sleep 603\n", 0o755).unwrap();
    systemd.install("/etc/systemd/system/rest.service", unit.as_bytes(), 0o644).unwrap();
    systemd.run(&["systemctl", "daemon-reload"]).unwrap();
    systemd.run(&["systemctl", "start", "rest.service"]).unwrap();
    let name = format!("/{}/system.slice/rest.service", cgroup.file_name().unwrap().display());
    let found = wait_for("the service", MOMENT, || {
        let found = cgroups::processes(|path| path == name);
        (!found.is_empty()).then_some(found)
    });
    let pid = found.unwrap()[0].0;
    drop(systemd);
    assert!(!cgroup.exists());
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn containers_have_the_paths_of_their_engines() {
    for kind in [Kind::Docker, Kind::Podman, Kind::Kubernetes] {
        let container = Container::start(kind, &["sleep", "604"], &[]).unwrap();
        let places = cgroups::places_of(container.pid());
        assert_eq!(container.cgroup(), kind.path(container.id()));
        // v1 where it is, else v2; in both where both are.
        let found = Hierarchies::read().unwrap();
        for controller in [""].into_iter().chain(["memory", "freezer"]) {
            let mounted = if controller.is_empty() {
                found.v2.is_some()
            } else {
                found.v1(controller).is_some()
            };
            let expected = if mounted { container.cgroup() } else { "" };
            assert_eq!(path(&places, controller), expected, "{kind:?} {controller}: {places:?}");
        }
        let (pid, cgroup) = (container.pid(), container.cgroup().to_owned());
        drop(container);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
        for mount in cgroups::mounts().unwrap() {
            assert!(!mount.join(cgroup.trim_start_matches('/')).exists());
        }
    }
}

#[test]
fn a_workload_runs_in_a_container() {
    let program = workload::workload("amounts").unwrap();
    let folder = program.parent().unwrap();
    let words = Amounts { read_mib: 0, cpu_ms: 50, pages: 500 }.words(Path::new("/none")).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut container = Container::start(Kind::Docker, &words, &[folder]).unwrap();
    let report = workload::report(&container.wait(MOMENT).unwrap()).unwrap();
    assert!((50_000_000..1_000_000_000).contains(&report.children.on_cpu_ns), "{report:?}");
}

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
}

#[test]
fn direct_reads_are_of_the_amount_asked() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("data");
    workload::file_of(&file, 4).unwrap();
    let words = Amounts { read_mib: 4, cpu_ms: 10, pages: 100 }.words(&file).unwrap();
    let output = std::process::Command::new(&words[0]).args(&words[1..]).output().unwrap();
    let report = workload::report(&String::from_utf8_lossy(&output.stdout)).unwrap();
    assert_eq!(report.fact("read_bytes"), 4 << 20);
    assert!((10_000_000..100_000_000).contains(&report.children.on_cpu_ns), "{report:?}");
    assert!((100..2000).contains(&(report.end.minor - report.begin.minor)), "{report:?}");
}
