//! What is recorded about waits by `waits = "off" | "calls" | "files"`: what is left out is absent, not zero, and
//! the rest as long as ever. The work is reading from a file system that answers late.

use std::path::Path;

use jobtrace::{cgroup::hierarchies::Hierarchies, probes::CAUSES};
use jobtrace_tests::{
    account::Report,
    agent::{Agent, Points},
    agree::{Agreement, MS, tried_again},
    causes::Causes,
    rig::{
        fuse::{FILE, Request},
        shaped::{Directories, Shaped},
        workload,
    },
    work::Pages,
};

use crate::{COUNT, TIME_MS, WAIT, blocked::slow, traced};

/// The setting, whether causes are told by it, and whether file systems are.
const MODES: [(&str, bool, bool); 3] =
    [("off", false, false), ("calls", true, false), ("files", true, true)];

/// The whole time blocked is the workload's own, and hardly more.
fn is_whole(agree: &mut Agreement, mode: &str, blocked_ns: u64, report: &Report) {
    let (off, apart) = (report.fact("off_cpu_ns"), report.fact("apart_ns"));
    let what = format!("{mode}: blocked_ns");
    agree.near(&what, blocked_ns, off..=off + apart, 2, 20 * MS);
}

#[test]
fn of_a_command() {
    for (mode, has_causes, has_files) in MODES {
        tried_again(|| {
            let both = slow(Request::Read);
            let files = both.each_ref().map(|fuse| fuse.file(FILE));
            let paths = files.each_ref().map(String::as_str);
            let (job, report) = traced(&["--waits", mode], "read", COUNT, TIME_MS, paths);
            let mut agree = Agreement::new();
            is_whole(&mut agree, mode, job.hist("sched", "blocked_ns").1, &report);
            let sched = job.json["sched"].as_object().unwrap();
            let there = CAUSES.into_iter().filter(|name| sched.contains_key(*name)).count();
            let expected = if has_causes { CAUSES.len() } else { 0 };
            agree.exact(&format!("{mode}: causes"), there as u64, expected as u64);
            assert_eq!(job.json.get("wait").is_some(), has_files, "{mode}: {}", job.json["wait"]);
            if has_causes {
                let (read, off) =
                    (Causes::of(&job).of_cause("blocked_read"), report.fact("off_cpu_ns"));
                agree.near(&format!("{mode}: blocked_read_ns"), read.ns, off..=off, 2, 2 * MS);
            }
            agree.end();
        });
    }
}

#[test]
fn of_the_agents_jobs() {
    let hierarchy = if Hierarchies::read().unwrap().v2.is_some() { "" } else { "freezer" };
    for (mode, has_causes, has_files) in MODES {
        tried_again(|| of_jobs(hierarchy, mode, has_causes, has_files));
    }
}

/// One job reads; another sleeps, and waits for no file system.
fn of_jobs(hierarchy: &'static str, mode: &str, has_causes: bool, has_files: bool) {
    let _held = Pages::held_file(Path::new(WAIT));
    let [fuse, _] = slow(Request::Read);
    let name = if hierarchy.is_empty() { "v2" } else { hierarchy };
    let agent = Agent::start(&format!("hierarchy = {name:?}\nwaits = {mode:?}")).unwrap();
    let place = Shaped::make(&[hierarchy]);
    let (count, ms) = (COUNT.to_string(), TIME_MS.to_string());
    let run = |job: &Directories, cause, path: &str| {
        let words = [WAIT, cause, &count, &ms, path];
        workload::report(&job.run(&words)).unwrap()
    };
    let [one, two] = [71, 72].map(|job| place.job(0, job, "step_0"));
    // Until it is known whose these are they have slots of their own, and a wait in which that ends is in no cell.
    agent.settle().unwrap();
    let (reads, sleeps) = (run(&one, "read", &fuse.file(FILE)), run(&two, "timer", ""));
    let points = agent.stop().unwrap();

    let sched = |job: &str, field: &str| points.sum(job, "job_sched", field);
    let mut agree = Agreement::new();
    is_whole(&mut agree, mode, sched("71", "blocked_ns_sum"), &reads);
    let (slept, off) = (sched("72", "sleep_ns_sum"), sleeps.fact("off_cpu_ns"));
    agree.near(&format!("{mode}: sleep_ns"), slept, off..=off, 2, 20 * MS);
    assert_eq!(causes(&points), if has_causes { CAUSES.len() } else { 0 }, "{mode}");
    assert_eq!(points.0.iter().any(|point| point.measurement == "job_wait"), has_files, "{mode}");
    let read = if has_causes { sched("71", "blocked_read_ns") } else { 0 };
    let path = fuse.path().to_str().unwrap();
    let of_mount = points.only(|point| point.tag("mount") == path && point.tag("fs") == "fuse");
    let expected = if has_files { read } else { 0 };
    let found = of_mount.sum("71", "job_wait", "blocked_ns_sum");
    agree.between(&format!("{mode}: job_wait"), found, expected / 100 * 98..=expected);
    agree.exact(
        &format!("{mode}: job_wait of the other"),
        of_mount.sum("72", "job_wait", "blocked_ns_sum"),
        0,
    );
    agree.end();
}

/// How many of the causes' fields are in some point.
fn causes(points: &Points) -> usize {
    let is_told = |name: &&str| points.0.iter().any(|point| point.fields.contains_key(*name));
    CAUSES.into_iter().filter(is_told).count()
}
