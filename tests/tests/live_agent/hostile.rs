//! Names of directories that no scheduler would choose.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use jobtrace_tests::agent::Agent;

use super::{
    life::{forks, quiet},
    shaped::Shaped,
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
