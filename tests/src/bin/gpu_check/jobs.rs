//! Several jobs on one GPU: two that share it, twenty that are killed, one that crashes, one through MPS.

use std::{
    io::Write,
    process::{Command, Stdio},
    thread::sleep,
};

use jobtrace::model::{group::Group, hist::Hist, tables::Gpu};

use crate::{
    check::{Check, HELD_MIB, Running},
    values::as_smi_says,
};

const CONTEXTS: usize = 20;
const MPS_CONTROL: &str = "nvidia-cuda-mps-control";
/// Where its server and its clients meet, and where they log.
const MPS_FOLDERS: [&str; 2] = ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"];
/// The error of an address that nobody has, and how older devices call it.
const XIDS: [u64; 2] = [31, 13];

/// Each is told that it shares the GPU, and their work adds up.
pub fn two(check: &mut Check) {
    let both = [check.spin(30, 100, 30, HELD_MIB), check.spin(30, 100, 30, HELD_MIB)];
    both.iter().for_each(|of| _ = check.is_seen(of.job()));
    as_smi_says(check, &[&both[0], &both[1]]);
    let jobs = [both[0].job(), both[1].job()];
    both.into_iter().for_each(Running::finish);
    let groups = jobs.map(|job| check.group(job));
    let told = groups.iter().flatten().filter(|of| of.number(Gpu::readings_shared) > Some(0));
    let told = told.count() as f64;
    check.row("two jobs on the GPU that are told so", Some(told), "", 2.0..=2.0);
    let percent = |group: &Option<Group>| {
        Some(group.as_ref()?.hist(Gpu::utilization_ratio).and_then(Hist::mean)? / 1e4)
    };
    let sum = groups.iter().map(percent).sum::<Option<f64>>();
    check.row("what they kept busy together", sum, "%", 20.0..=70.0);
}

/// Contexts of processes that are killed go with them.
pub fn killed(check: &mut Check) {
    let all: Vec<_> = (0..CONTEXTS).map(|_| check.spin(600, 100, 10, 16)).collect();
    let jobs: Vec<u32> = all.iter().map(Running::job).collect();
    let has = |check: &Check, job| check.number(job, Gpu::processes).is_some_and(|of| of > 0);
    let on_it = |check: &Check| jobs.iter().filter(|job| has(check, **job)).count();
    check.comes(|| on_it(check) == CONTEXTS);
    let expected = CONTEXTS as f64;
    check.row("contexts at once", Some(on_it(check) as f64), "", expected..=expected);
    all.into_iter().for_each(Running::kill);
    sleep(check.seconds(4));
    check.next_reading();
    check.row("contexts after they were killed", Some(on_it(check) as f64), "", 0.0..=0.0);
}

/// The error is told by its code, and what follows from it apart.
pub fn crashed(check: &mut Check) {
    // A job that lasts: what crashes is gone before a reading.
    let lasts = check.spin(600, 100, 10, 16);
    let job = lasts.job();
    if check.is_seen(job) && check.number(job, Gpu::xid_errors).is_none() {
        lasts.kill();
        return check.left_out("XID of a crash", "the driver does not report errors here");
    }
    check.start(&[], &["crash"], Some(&lasts)).finish();
    check.comes(|| check.number(job, Gpu::xid_errors).is_some_and(|count| count > 0));
    let first = check.number(job, Gpu::xid_first);
    let cleanups = check.number(job, Gpu::xid_cleanups).unwrap_or(0);
    lasts.kill();
    let expected = first.filter(|code| XIDS.contains(code)).unwrap_or(XIDS[0]) as f64;
    check.row("XID of a crash", first.map(|code| code as f64), "", expected..=expected);
    println!("      followed by {cleanups} of code 45");
}

/// A client of MPS is in a list of its own, and the server is nobody.
pub fn through_mps(check: &mut Check) {
    let folder = tempfile::tempdir().expect("a folder for the server's pipes");
    let control = |stdin| {
        let mut command = Command::new(MPS_CONTROL);
        command.env(MPS_FOLDERS[0], folder.path()).env(MPS_FOLDERS[1], folder.path());
        command.stdin(stdin);
        command
    };
    if !control(Stdio::null()).arg("-d").status().is_ok_and(|status| status.success()) {
        return check.left_out("MPS", &format!("{MPS_CONTROL} does not start"));
    }
    let pipes = format!("{}={}", MPS_FOLDERS[0], folder.path().display());
    let running = check.spin_by(&["env", &pipes], 600, 100, 50, HELD_MIB);
    check.seen_rows("through MPS", running.job());
    running.kill();
    let mut end = control(Stdio::piped()).spawn().expect("it started before");
    let mut input = end.stdin.take().expect("it is a pipe");
    input.write_all(b"quit\n").expect("it listens");
    drop(input);
    end.wait().expect("it can be waited for");
}
