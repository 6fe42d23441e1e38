//! Disks that refuse and collectors that do not come: measuring goes on, and what was measured comes out.

use std::{fs, ops::RangeInclusive, thread::sleep, time::Duration};

use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        files::{self, Points},
        site::Site,
    },
    rig::{full_disk::SmallDisk, read_only::ReadOnly, share::Share, wait_for},
};

/// All that was forked is there, and the intervals fill the life.
fn assert_whole(points: &Points, site: &Site, forks: u64, life_ns: RangeInclusive<u64>) {
    let found = files::intervals(points);
    let spans: u64 = found.iter().map(|(_, span)| span).sum();
    assert!(life_ns.contains(&spans), "{spans} of {life_ns:?} ns: {found:?}");
    assert_eq!(files::sum(points, "job_sched", &site.job(0), "forks"), forks);
    eprintln!("{} intervals in {:.1} s", found.len(), spans as f64 / 1e9);
}

#[test]
fn a_full_disk_costs_nothing_once_there_is_room_again() {
    let (disk, site) = (SmallDisk::new(1 << 20).unwrap(), Site::new().unwrap());
    let setup = Setup::with_spool(&disk.path().join("spool"), "").unwrap();
    let mut agent = setup.start().unwrap();
    site.fork(0, 11).unwrap();
    wait_for("a file", PATIENCE, || {
        (!files::list(&setup.outbox()).unwrap().is_empty()).then_some(())
    })
    .unwrap();
    disk.fill().unwrap();
    site.fork(0, 23).unwrap();
    // What was being written found room, or not.
    agent.wait_for_words("cannot write to the spool", 1).unwrap();
    let before = files::list(&setup.outbox()).unwrap().len();
    sleep(Duration::from_millis(3500));
    assert_eq!(files::list(&setup.outbox()).unwrap().len(), before);
    disk.empty().unwrap();
    site.fork(0, 31).unwrap();
    // Attempts have become rare.
    agent.wait_for_words("the spool can be written again", 1).unwrap();
    agent.end_well().unwrap();
    let points = files::points(&setup.outbox()).unwrap();
    assert_whole(&points, &site, 65, agent.life_ns());
    assert_eq!(agent.said("cannot write to the spool"), 1, "{}", agent.words());
    assert_eq!(agent.said("the spool can be written again"), 1, "{}", agent.words());
    for field in ["dropped_intervals", "merged_intervals"] {
        assert_eq!(files::sum(&points, "jobtrace_self", "_system", field), 0, "{field}");
    }
}

#[test]
fn a_slow_disk_makes_intervals_late_which_is_told_and_loses_nothing() {
    // An interval's file takes seconds.
    let (disk, site) = (Share::slow(2500).unwrap(), Site::new().unwrap());
    let setup = Setup::with_spool(&disk.path().join("spool"), "").unwrap();
    let mut agent = setup.start().unwrap();
    for job in 0..5 {
        site.fork(0, 13).unwrap();
        // Others come and go while the agent waits.
        site.fork(1 + job, 7).unwrap();
        site.end(1 + job).unwrap();
        sleep(Duration::from_millis(1500));
    }
    agent.wait_for_words("s late, this interval is", 1).unwrap();
    let (status, took) = agent.end_by(libc::SIGTERM).unwrap();
    assert!(status.success(), "{status}: {}", agent.words());
    let points = files::points(&disk.behind().join("spool/outbox")).unwrap();
    assert_whole(&points, &site, 65, agent.life_ns());
    for job in 1..=5 {
        assert_eq!(files::sum(&points, "job_sched", &site.job(job), "forks"), 7, "{job}");
    }
    let sum = |field| files::sum(&points, "jobtrace_self", "_system", field);
    let late = sum("late_intervals");
    eprintln!("{late} late intervals; it ended within {took:?}");
    assert!((1..=files::intervals(&points).len() as u64).contains(&late), "{late}");
    for field in ["dropped_intervals", "merged_intervals", "dropped_cgroup_event", "dropped_slot"] {
        assert_eq!(sum(field), 0, "{field}");
    }
}

#[test]
fn a_disk_that_becomes_read_only_and_a_folder_that_vanishes_cost_nothing() {
    let (disk, site) = (ReadOnly::new().unwrap(), Site::new().unwrap());
    let spool = disk.path().join("spool");
    let setup = Setup::with_spool(&spool, "").unwrap();
    disk.set(true).unwrap();
    let output = setup.command(&[]).unwrap().output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let said = format!(
        "cannot open the spool {}: mount it writable or name another folder",
        spool.display()
    );
    assert!(words.contains(&said), "{words}");
    disk.set(false).unwrap();

    let mut agent = setup.start().unwrap();
    site.fork(0, 11).unwrap();
    wait_for("a file", PATIENCE, || {
        (!files::list(&setup.outbox()).unwrap().is_empty()).then_some(())
    })
    .unwrap();
    // Refused while a file is being written.
    wait_for("read only", PATIENCE, || disk.set(true).ok()).unwrap();
    site.fork(0, 23).unwrap();
    agent.wait_for_words("mount it writable or name another folder", 1).unwrap();
    disk.set(false).unwrap();
    agent.wait_for_words("the spool can be written again", 1).unwrap();
    // As a collector takes them, then the whole folder goes.
    let taken = tempfile::tempdir().unwrap();
    let take = || {
        for file in files::list(&setup.outbox()).unwrap() {
            fs::copy(&file, taken.path().join(file.file_name().unwrap())).unwrap();
            fs::remove_file(&file).unwrap();
        }
    };
    take();
    wait_for("the folder's end", PATIENCE, || fs::remove_dir_all(&spool).ok()).unwrap();
    site.fork(0, 31).unwrap();
    wait_for("the folder's return", PATIENCE, || {
        files::list(&setup.outbox()).is_ok_and(|files| !files.is_empty()).then_some(())
    })
    .unwrap();
    agent.end_well().unwrap();
    take();
    assert_whole(&files::points(taken.path()).unwrap(), &site, 65, agent.life_ns());
}

#[test]
fn files_that_nobody_takes_are_dropped_the_oldest_first_and_counted() {
    let setup = Setup::new("spool.max_files = 4\nspool.max_age = \"1m\"").unwrap();
    let outbox = setup.outbox();
    fs::create_dir_all(&outbox).unwrap();
    // Of an earlier boot, an hour old by the stamp in its name; another node's is not ours to drop.
    let hour_ago = jobtrace::base::clock::wall_ns() - 3_600_000_000_000;
    let old = format!("node1-00000000-{:018}-{hour_ago}.lp.gz", 5);
    let foreign = format!("node2-00000000-{:018}-{hour_ago}.lp.gz", 5);
    for name in [&old, &foreign] {
        fs::write(outbox.join(name), "x").unwrap();
    }
    let mut agent = setup.start().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let ours = || -> Vec<_> {
        let files = files::list(&outbox).unwrap().into_iter();
        files.filter(|file| !file.ends_with(&foreign)).collect()
    };
    // The old one, as many as may stay, and some that must go for it.
    wait_for("files", PATIENCE + PATIENCE, || {
        seen.extend(ours());
        (seen.len() >= 8).then_some(())
    })
    .unwrap();
    agent.end_well().unwrap();
    seen.extend(ours());
    let left = ours();
    assert!(outbox.join(&foreign).exists());
    fs::remove_file(outbox.join(&foreign)).unwrap();
    assert!((3..=5).contains(&left.len()), "{left:?}");
    let newest: Vec<_> = seen.iter().rev().take(left.len()).rev().cloned().collect();
    assert_eq!(left, newest, "the oldest went");
    // A point tells what was dropped before it: what of it was dropped itself is not there to be summed.
    let points = files::points(&outbox).unwrap();
    let dropped = files::sum(&points, "jobtrace_self", "_system", "dropped_spool_files");
    assert!((left.len() as u64 - 1..=left.len() as u64).contains(&dropped), "{dropped}");
    assert!(files::sum(&points, "jobtrace_self", "_system", "dropped_spool_bytes") > dropped);
    assert_eq!(agent.said("the spool is not emptied in time"), 2, "{}", agent.words());
    eprintln!("{} files were there, {} are, {dropped} dropped", seen.len(), left.len());
}
