//! The last interval of a life, and the first of the next one.

use std::{thread::sleep, time::Duration};

use jobtrace_tests::{
    daemon::{PATIENCE, Setup, files, site::Site},
    rig::{full_disk::SmallDisk, wait_for},
};

use super::signals::QUICK;

#[test]
fn a_restart_within_an_interval_overwrites_nothing() {
    let (setup, site) = (Setup::new("").unwrap(), Site::new().unwrap());
    // The last interval of a life ends between two points of the grid; the next life's first one too.
    for forks in [11, 23, 31] {
        let mut agent = setup.start().unwrap();
        site.fork(0, forks).unwrap();
        // However long its start took, a point of the grid comes in each life.
        let written = || files::list(&setup.outbox()).unwrap().len();
        let before = written();
        wait_for("an interval", PATIENCE, || (written() > before).then_some(())).unwrap();
        agent.end_well().unwrap();
    }
    let points = files::points(&setup.outbox()).unwrap();
    let found = files::intervals(&points);
    assert_eq!(found.len(), files::list(&setup.outbox()).unwrap().len(), "{found:?}");
    assert!(found.len() >= 5, "{found:?}");
    assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 65);
}

#[test]
fn a_full_disk_does_not_keep_it_and_it_tells_what_is_lost() {
    let disk = SmallDisk::new(1 << 20).unwrap();
    let setup = Setup::with_spool(&disk.path().join("spool"), "").unwrap();
    let mut agent = setup.start().unwrap();
    disk.fill().unwrap();
    agent.wait_for_words("cannot write to the spool", 1).unwrap();
    let (status, took) = agent.end_by(libc::SIGTERM).unwrap();
    assert_eq!(status.code(), Some(1), "{}", agent.words());
    assert!(took < QUICK, "{took:?}");
    assert_eq!(agent.said("could not be written and are lost"), 1, "{}", agent.words());
}

#[test]
fn what_waits_is_written_at_the_end_though_attempts_have_become_rare() {
    let (disk, site) = (SmallDisk::new(1 << 20).unwrap(), Site::new().unwrap());
    let setup = Setup::with_spool(&disk.path().join("spool"), "").unwrap();
    let mut agent = setup.start().unwrap();
    disk.fill().unwrap();
    site.fork(0, 23).unwrap();
    sleep(Duration::from_millis(4300));
    disk.empty().unwrap();
    agent.end_well().unwrap();
    let points = files::points(&setup.outbox()).unwrap();
    assert_eq!(files::sum(&points, "job_sched", &site.job(0), "forks"), 23);
}

#[test]
fn another_interval_counts_at_once() {
    let setup = Setup::new("interval = \"1h\"").unwrap();
    let mut agent = setup.start().unwrap();
    setup.configure("interval = \"1s\"").unwrap();
    agent.signal(libc::SIGHUP);
    agent.wait_for_words("configuration reloaded: changed: interval", 1).unwrap();
    wait_for("two files", PATIENCE, || {
        (files::list(&setup.outbox()).unwrap().len() >= 2).then_some(())
    })
    .unwrap();
    agent.end_well().unwrap();
}
