//! Several jobs on one GPU: two that share it, twenty that are killed, one that crashes, one through MPS.

use std::{
    io::Write,
    process::{Command, Stdio},
    thread::sleep,
};

use jobtrace::model::{
    group::Group,
    tables::{Gpu, XID, Xid},
};

use crate::{
    check::{Check, HELD_MIB, Running, Work, percent_busy},
    values::as_smi_says,
};

const CONTEXTS: usize = 20;
const MPS_CONTROL: &str = "nvidia-cuda-mps-control";
/// Where its server and its clients meet, and where they log.
const MPS_FOLDERS: [&str; 2] = ["CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"];
/// The error of an address that nobody has, and how older devices call it.
const XIDS: [u64; 2] = [31, 13];

/// Each is told that it shares the GPU, and what it did itself: their work is side by side, and adds up.
pub fn two(check: &mut Check) {
    let work = |from, percent| Work { period_ms: 2000, from, percent, mib: HELD_MIB };
    let works = [work(0, 20), work(50, 40)];
    let running = works.map(|work| check.spin(40, work));
    running.iter().for_each(|of| _ = check.is_seen(of.job()));
    as_smi_says(check, &[&running[0], &running[1]]);
    let jobs = running.map(|of| {
        let job = of.job();
        of.finish();
        job
    });
    let groups = jobs.map(|job| check.group(job));
    let shared = groups.iter().map(|of| percent_shared(of.as_ref()?));
    let least = shared.reduce(|one, other| Some(one?.min(other?))).flatten();
    check.row("two jobs on the GPU: readings in which both are told so", least, "%", 85.0..=100.0);
    for (place, group) in ["one", "the other"].into_iter().zip(&groups) {
        let own = group.as_ref().and_then(|group| group.hist(Gpu::utilization_ratio)?.mean());
        let percent = f64::from(works[usize::from(place != "one")].percent);
        let what = format!("two jobs on the GPU: what {place} kept busy");
        check.row(&what, own.map(|ppm| ppm / 1e4), "%", percent - 5.0..=percent + 5.0);
    }
    let both = groups[0].as_ref().and_then(percent_busy);
    check.row("two jobs on the GPU: what they kept busy together", both, "%", 55.0..=65.0);
}

/// Share of a job's readings in which it is told that others are on the GPU.
fn percent_shared(group: &Group) -> Option<f64> {
    let readings = group.hist(Gpu::power_watts)?.count();
    Some(group.number(Gpu::readings_shared)? as f64 / readings as f64 * 100.0)
}

/// Contexts of processes that are killed go with them.
pub fn killed(check: &mut Check) {
    let all: Vec<_> = (0..CONTEXTS).map(|_| check.spin(600, Work::LITTLE)).collect();
    let jobs: Vec<u32> = all.iter().map(Running::job).collect();
    let has = |check: &Check, job| check.number(job, Gpu::processes).is_some_and(|of| of > 0);
    let on_it = |check: &Check| jobs.iter().filter(|job| has(check, **job)).count();
    check.comes(|| on_it(check) == CONTEXTS);
    let expected = CONTEXTS as f64;
    check.row("contexts at once", Some(on_it(check) as f64), "", expected..=expected);
    all.into_iter().for_each(Running::kill);
    sleep(check.seconds(4));
    let left = check.next_reading().then(|| on_it(check) as f64);
    check.row("contexts after they were killed", left, "", 0.0..=0.0);
}

/// The error is told by its code, and what follows from it apart.
pub fn crashed(check: &mut Check) {
    // A job that lasts: what crashes is gone before a reading.
    let lasts = check.spin(600, Work { percent: 30, ..Work::LITTLE });
    let job = lasts.job();
    if check.is_seen(job) && check.number(job, Gpu::xid_errors).is_none() {
        lasts.kill();
        return check.left_out("XID of a crash", "the driver does not report errors here");
    }
    check.start(&[], &["crash"], Some(&lasts)).finish();
    check.comes(|| check.number(job, Gpu::xid_errors).is_some_and(|count| count > 0));
    let first = check.number(job, Gpu::xid_first);
    let by_code = check.groups(job);
    lasts.kill();
    let expected = first.filter(|code| XIDS.contains(code)).unwrap_or(XIDS[0]) as f64;
    check.row("XID of a crash", first.map(|code| code as f64), "", expected..=expected);
    for group in by_code.iter().filter(|group| group.is(&XID)) {
        let [_, _, code] = &group.tags[..] else { continue };
        println!("      code {code}: {} of them", group.number(Xid::errors).unwrap_or(0));
    }
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
    let running = check.spin_by(&["env", &pipes], 600, Work::HALF);
    check.seen_rows("through MPS", running.job());
    running.kill();
    let mut end = control(Stdio::piped()).spawn().expect("it started before");
    let mut input = end.stdin.take().expect("it is a pipe");
    input.write_all(b"quit\n").expect("it listens");
    drop(input);
    end.wait().expect("it can be waited for");
}
