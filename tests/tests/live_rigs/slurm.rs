//! Slurm on both kinds of cgroups: steps, arrays, cancelled, killed for memory, another user's.

use std::{fs, path::Path};

use jobtrace::cgroup::hierarchies::Hierarchies;
use jobtrace_tests::rig::{
    slurm::{JobId, Mode, Slurm, Task},
    wait_for,
    workload::{self, Amounts},
};

use super::{MOMENT, path};

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

    // The first step's 100 ms, whose own directory is gone.
    assert!(slurm.usage_ns(steps).unwrap() >= 100_000_000);

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
