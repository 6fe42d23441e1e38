//! Names of directories that no scheduler would choose.

use std::{
    ffi::OsStr,
    os::unix::{ffi::OsStrExt, fs::chown, process::CommandExt},
    path::PathBuf,
    process::Command,
};

use jobtrace_tests::agent::Agent;

use super::{
    life::{forks, quiet},
    shaped::{Directories, Running, Shaped},
};

const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

#[test]
fn names_that_no_scheduler_gives() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let long = [b'x'; 255];
    let path =
        |parts: &[&[u8]]| parts.iter().map(|part| OsStr::from_bytes(part)).collect::<PathBuf>();
    // Jobs in odd places.
    let odd: [&[u8]; 4] = [b"\xff\xfe", b"a\x1b[31m,b=c d", b"tab\tbell\x07", &long];
    for (number, above) in (9_501..).zip(odd) {
        let job = path(&[above, b"slurm", b"uid_0", format!("job_{number}").as_bytes()]);
        let job = shaped.directory(job);
        job.run(&[TEST_JOB, "forks", "11"]);
        job.remove();
    }
    // What is like a job's name, and is none.
    let false_names: [&[u8]; 4] = [b"job_95\x1b[1m", b"job_95\xff", b"job_", b"job_95 6"];
    for name in false_names {
        let directory = shaped.directory(path(&[b"slurm", b"uid_0", name]));
        directory.run(&[TEST_JOB, "forks", "13"]);
        directory.remove();
    }
    // A path that the kernel cuts off in the middle of the job's number.
    let top = shaped.directory("").0[0].clone();
    let above = [&long[..], &long, &long];
    let deep = path(&above);
    let mount_bytes = top.parent().unwrap().as_os_str().len();
    let so_far = top.as_os_str().len() - mount_bytes + 1 + deep.as_os_str().len();
    let rest = 1023 - so_far - "/x/slurm/uid_0/job_9600".len() + 1;
    let filler = vec![b'y'; rest];
    let number = "960077";
    let job = deep.join(path(&[&filler, b"slurm", b"uid_0", format!("job_{number}").as_bytes()]));
    let job = shaped.directory(job);
    job.run(&[TEST_JOB, "forks", "17"]);
    agent.settle().unwrap();
    job.run(&[TEST_JOB, "forks", "17"]);
    job.remove();

    let points = agent.stop().unwrap();
    for number in 9_501..9_505 {
        let job = number.to_string();
        assert_eq!(forks(&points, &job), 11, "{job}");
        assert!(points.fact(&job, "end").is_some(), "{job} has ended");
    }
    assert_eq!(forks(&points, number), 34, "{:?}", points.jobs());
    let clean = |text: &str| !text.chars().any(char::is_control);
    for point in &points.0 {
        assert!(point.tags.values().all(|value| clean(value)), "{point:?}");
    }
    let ours: Vec<&str> = points
        .jobs()
        .into_iter()
        .filter(|job| job.starts_with("95") || job.starts_with("96"))
        .collect();
    assert_eq!(ours, ["9501", "9502", "9503", "9504", "960077"]);
}

/// Nobody, who is given a directory to make others in.
const USER: u32 = 65_534;

/// What `script` does as that user, who may write to `theirs` alone, with its directory as `$1`.
fn as_user(theirs: &Directories, script: &str) {
    let mut command = Command::new("sh");
    command.args(["-ec", script, "sh"]).arg(&theirs.0[0]).uid(USER).gid(USER);
    let status = command.status().unwrap();
    assert!(status.success(), "{script}: {status}");
}

#[test]
fn a_user_who_may_make_cgroups_adds_to_no_job_of_another() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let theirs = shaped.directory("theirs");
    chown(&theirs.0[0], Some(USER), Some(USER)).unwrap();
    let container = format!("docker-{}.scope", "5ca1ab1e".repeat(8));
    let make = |job: u32| format!("mkdir -p $1/slurm/uid_0/job_{job}/step_0");
    // One was there before the agent, with what a user made to look like it.
    let old = shaped.job(0, 9_611, "step_0");
    as_user(&theirs, &make(9_611));
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let real = shaped.job(0, 9_610, "step_0");
    let docker = shaped.directory(&container);
    for job in [&old, &real, &docker] {
        job.run(&[TEST_JOB, "forks", "11"]);
    }
    agent.settle().unwrap();
    // Root moves the processes in, as a user's own systemd would: the directories are the user's.
    as_user(&theirs, &format!("{}; mkdir $1/{container}", make(9_610)));
    let forged = |path: &str| shaped.directory(format!("theirs/{path}"));
    for path in ["slurm/uid_0/job_9610/step_0", "slurm/uid_0/job_9611/step_0", &container] {
        forged(path).run(&[TEST_JOB, "forks", "100"]);
    }
    // Gone before anybody looks.
    agent.signal(libc::SIGSTOP);
    as_user(&theirs, "mkdir -p $1/brief/slurm/uid_0/job_9610");
    forged("brief/slurm/uid_0/job_9610").run(&[TEST_JOB, "forks", "100"]);
    forged("brief").remove();
    // With it what the user was given.
    let lent = shaped.directory("lent");
    chown(&lent.0[0], Some(USER), Some(USER)).unwrap();
    as_user(&lent, "mkdir -p $1/slurm/uid_0/job_9610");
    shaped.directory("lent/slurm/uid_0/job_9610").run(&[TEST_JOB, "forks", "100"]);
    lent.remove();
    agent.signal(libc::SIGCONT);
    // Another user's session.
    let session = "user.slice/user-0.slice/session-c9612.scope";
    as_user(&theirs, &format!("mkdir -p $1/{session}"));
    forged(session).run(&[TEST_JOB, "forks", "100"]);
    // A container of the user's own is still one.
    let own = format!("libpod-{}.scope", "0ddba11a".repeat(8));
    as_user(&theirs, &format!("mkdir $1/{own}"));
    forged(&own).run(&[TEST_JOB, "forks", "17"]);
    let sleeper = Running(real.command("sleep").arg("607").spawn().unwrap());
    agent.settle().unwrap();
    drop(sleeper);
    let points = agent.stop().unwrap();
    for job in ["9610", "9611", &"5ca1ab1e".repeat(2)[..12]] {
        assert_eq!(forks(&points, job), 11, "{job}");
    }
    assert_eq!(forks(&points, &"0ddba11a".repeat(2)[..12]), 17);
    assert_eq!(forks(&points, "c9612"), 0);
    assert!(forks(&points, "_system") >= 600, "what was forged is the rest of the node's");
}
