//! A disk on which writing takes seconds.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use jobtrace_tests::{
    agent::anonymous_bytes,
    daemon::{
        Setup,
        files::{self, sum},
        site::Site,
    },
    rig::{share::Share, wait_for},
    stalls::Stalls,
};

use super::{are_saved, forks, longest_s};

const JOBS: u32 = 40;
/// What the records of these jobs take at least on a disk of [`BYTES_PER_SECOND`].
const LEAST: Duration = Duration::from_secs(5);
const BYTES_PER_SECOND: u32 = 3_000;
const MOST: Duration = Duration::from_secs(180);
/// Of the agent's memory, for these jobs and their records.
const MORE_BYTES: u64 = 16 << 20;

#[test]
fn a_slow_disk_of_records_delays_no_interval_and_loses_no_record() {
    let (disk, site) = (Share::slow(BYTES_PER_SECOND).unwrap(), Site::new().unwrap());
    let setup = Setup::with(None, Some(&disk.path().join("records")), "").unwrap();
    let (stalls, mut agent) = (Stalls::watch(), setup.start().unwrap());
    let before = anonymous_bytes(agent.pid());
    let (jobs, begin) = (Vec::from_iter(0..JOBS), Instant::now());
    for job in &jobs {
        site.fork(*job, job + 1).unwrap();
        site.end(*job).unwrap();
    }
    let mut most = 0;
    let dir = disk.behind().join("records");
    wait_for("a record of each job", MOST, || {
        most = most.max(anonymous_bytes(agent.pid()));
        are_saved(&dir, &site, &jobs)
    })
    .unwrap_or_else(|error| panic!("{error}: {}", agent.words()));
    let took = begin.elapsed();
    assert!(took >= LEAST, "the disk is not slow: {took:?}");
    let (status, _) = agent.end_by(libc::SIGTERM).unwrap();
    // What else runs on this machine has a record too, which the disk may be too slow for.
    let is_late = agent.said("the disk takes too long: the last records are not saved") > 0;
    assert_eq!(status.code(), Some(i32::from(is_late)), "{}", agent.words());

    let points = files::points(&setup.outbox()).unwrap();
    let (longest, grown) = (longest_s(&points, &stalls), most.saturating_sub(before));
    let late = sum(&points, "jobtrace_self", "_system", "late_intervals");
    eprintln!(
        "{took:?} for {JOBS} records; longest interval {longest:.2} s, {late} late, {grown} bytes more"
    );
    // Of one second. A busy machine is late as well, but not by as much as a record takes.
    assert!(longest < 3.0, "{longest} s: {}", agent.words());
    assert!(grown < MORE_BYTES, "{grown} bytes more");
    assert_eq!(sum(&points, "jobtrace_self", "_system", "dropped_records"), 0);
    let forks = forks(Path::new(&dir));
    for job in jobs {
        let name = site.job(job);
        let expected = u64::from(job) + 1;
        assert_eq!(forks.get(&name), Some(&expected), "the record of {name}");
        assert_eq!(sum(&points, "job_sched", &name, "forks"), expected, "the lines of {name}");
    }
}
