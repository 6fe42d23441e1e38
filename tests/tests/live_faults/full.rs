//! A disk that is full, or a quota that is used up, under spool and records: each is said once, and what waited is
//! written once there is room.

use std::{path::Path, thread::sleep, time::Duration};

use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        files::{self, sum},
        site::Site,
    },
    rig::{full_disk::SmallDisk, quota::Quota, wait_for},
};

use super::{are_saved, forks};

/// How long attempts may have become rare for.
const RARE: Duration = Duration::from_secs(90);

/// Runs an agent on the disk at `path`, before it does `refuse` writes, meanwhile, and after it does `accept` them again.
/// The agent's words have to end in `cure`.
fn outlasts(path: &Path, refuse: impl Fn(), accept: impl Fn(), cure: &str) {
    let site = Site::new().unwrap();
    let [spool, dir] = ["spool", "records"].map(|name| path.join(name));
    let setup = Setup::with(Some(&spool), Some(&dir), "").unwrap();
    let mut agent = setup.start().unwrap();
    let run = |job: u32| {
        site.fork(job, 11 * (job + 1)).unwrap();
        site.end(job).unwrap();
    };
    let saved =
        |jobs: &[u32], patience| wait_for("records", patience, || are_saved(&dir, &site, jobs));
    run(0);
    saved(&[0], PATIENCE).unwrap();
    refuse();
    run(1);
    agent.wait_for_words("cannot write to the spool", 1).unwrap();
    agent.wait_for_words("cannot save a record in", 1).unwrap();
    // Several attempts, and a job more.
    run(2);
    sleep(Duration::from_millis(4500));
    assert!(are_saved(&dir, &site, &[1]).is_none(), "the disk takes it");
    accept();
    saved(&[0, 1, 2], RARE).unwrap_or_else(|error| panic!("{error}: {}", agent.words()));
    agent.wait_for_words("the spool can be written again", 1).unwrap();
    agent.wait_for_words("records can be saved again", 1).unwrap();
    agent.end_well().unwrap();

    let words = agent.words();
    for (said, dir) in [("cannot write to the spool", &spool), ("cannot save a record in", &dir)] {
        assert!(words.contains(&format!("{said} {}: {cure}", dir.display())), "{words}");
    }
    for once in [
        "cannot write to the spool",
        "measuring continues, intervals wait in memory",
        "the spool can be written again",
        "cannot save a record in",
        "jobs wait for their record in memory",
        "records can be saved again",
    ] {
        assert_eq!(agent.said(once), 1, "{once}: {words}");
    }
    let points = files::points(&setup.outbox()).unwrap();
    let forks = forks(&dir);
    for job in 0..3 {
        let (name, expected) = (site.job(job), 11 * (u64::from(job) + 1));
        assert_eq!(forks.get(&name), Some(&expected), "the record of {name}");
        assert_eq!(sum(&points, "job_sched", &name, "forks"), expected, "the lines of {name}");
    }
    let spans: u64 = files::intervals(&points).iter().map(|(_, span)| span).sum();
    assert!(agent.life_ns().contains(&spans), "{spans} of {:?} ns", agent.life_ns());
    for field in ["dropped_records", "dropped_intervals", "merged_intervals", "dropped_spool_files"]
    {
        assert_eq!(sum(&points, "jobtrace_self", "_system", field), 0, "{field}");
    }
}

#[test]
fn a_full_disk_is_said_once_and_costs_nothing() {
    let disk = SmallDisk::new(2 << 20).unwrap();
    let refuse = || assert!(disk.fill().unwrap() > 0);
    outlasts(disk.path(), refuse, || disk.empty().unwrap(), "free space there");
}

#[test]
fn a_quota_that_is_used_up_is_said_once_and_costs_nothing() {
    let disk = Quota::new(24 << 20).unwrap();
    let (refuse, accept) = (|| disk.fill().unwrap(), || disk.raise().unwrap());
    outlasts(disk.path(), refuse, accept, "raise the quota or free space there");
}
