//! An agent that ends between any two steps of writing, and the one after it.

use std::fs;

use jobtrace::lines::spool::{Recovered, Resume};

use crate::folder::{Folder, SECOND, names, point, prepare, write};

#[test]
fn a_set_appears_when_it_is_published_and_not_before() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let prepared = prepare(&mut spool, 7);
    let name = "cn-1-3fd2a9b1-000000007000000000-7000000000";
    assert_eq!(prepared.name(), name);
    assert!(names(&folder.outbox()).is_empty());
    spool.publish(prepared).unwrap();
    assert_eq!(names(&folder.outbox()), [format!("{name}.lp.gz")].into());
    assert_eq!(folder.numbers(), [7]);
    assert!(names(&folder.tmp()).is_empty());
}

#[test]
fn what_is_committed_is_published_and_the_rest_is_measured_again() {
    let folder = Folder::new();
    let mut spool = folder.open();
    // Killed before the commit: the next agent measures it again.
    let committed = prepare(&mut spool, 1).name().to_owned();
    let uncommitted = prepare(&mut spool, 2);
    assert_ne!(committed, uncommitted.name());
    drop((spool, uncommitted));
    let mut spool = folder.open();
    let done = spool.recover(Resume::Continued(Some(&committed))).unwrap();
    assert_eq!(done, Recovered { published: 1, uncommitted: 1, ..Recovered::default() });
    assert_eq!(folder.numbers(), [1]);
    assert!(names(&folder.tmp()).is_empty());
    // Committed and published before: nothing is left to do.
    let done = spool.recover(Resume::Continued(Some(&committed))).unwrap();
    assert_eq!(done, Recovered::default());
    // Killed before the very first commit.
    drop(prepare(&mut spool, 3));
    let done = folder.open().recover(Resume::Continued(None)).unwrap();
    assert_eq!(done, Recovered { uncommitted: 1, ..Recovered::default() });
    assert_eq!(folder.numbers(), [1]);
}

#[test]
fn without_a_state_the_files_are_all_there_is() {
    let folder = Folder::new();
    let mut spool = folder.open();
    drop([prepare(&mut spool, 1), prepare(&mut spool, 2)]);
    let done = folder.open().recover(Resume::Anew).unwrap();
    assert_eq!(done, Recovered { published: 2, ..Recovered::default() });
    assert_eq!(folder.numbers(), [1, 2]);
}

#[test]
fn after_another_boot_whole_files_are_published_and_torn_ones_removed() {
    for length in 0.. {
        let mut folder = Folder::new();
        let mut spool = folder.open();
        write(&mut spool, 1);
        let whole = prepare(&mut spool, 2).name().to_owned();
        let torn = spool.prepare(&[point(3)], Some("#[End]\n"), 3, 3 * SECOND).unwrap();
        let path = folder.tmp().join(format!("{}.lp.gz", torn.name()));
        let content = fs::read(&path).unwrap();
        if length >= content.len() {
            assert!(length > 50, "the file was tried at each of its lengths");
            break;
        }
        fs::write(&path, &content[..length]).unwrap();
        folder.boot = 0xffff_ffff;
        // A committed name of another boot is no state of this one.
        let done = folder.open().recover(Resume::Continued(Some(&whole))).unwrap();
        assert_eq!(done, Recovered { published: 2, torn: 1, ..Recovered::default() }, "{length}");
        assert_eq!(folder.numbers(), [1, 2]);
        assert!(names(&folder.outbox()).contains(&format!("{}.hlog", torn.name())));
        assert!(names(&folder.tmp()).is_empty());
    }
}

#[test]
fn an_interval_log_without_its_end_is_torn() {
    let mut folder = Folder::new();
    let mut spool = folder.open();
    drop(spool.prepare(&[point(1)], Some("#[StartTime: 1]\n"), 1, 1).unwrap());
    folder.boot = 7;
    let done = folder.open().recover(Resume::Anew).unwrap();
    assert_eq!(done, Recovered { published: 1, torn: 1, ..Recovered::default() });
    assert_eq!(folder.numbers(), [1]);
}

#[test]
fn a_file_that_a_power_cut_put_back_is_not_doubled() {
    let mut folder = Folder::new();
    let mut spool = folder.open();
    write(&mut spool, 1);
    let name = names(&folder.outbox()).pop_first().unwrap();
    fs::copy(folder.outbox().join(&name), folder.tmp().join(&name)).unwrap();
    folder.boot = 7;
    let done = folder.open().recover(Resume::Anew).unwrap();
    assert_eq!(done, Recovered { doubled: 1, ..Recovered::default() });
    assert_eq!(folder.numbers(), [1]);
    assert!(names(&folder.tmp()).is_empty());
}

#[test]
fn a_set_half_published_is_completed() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let set = spool.prepare(&[point(1)], Some("#[End]\n"), 1, 1).unwrap();
    let first = format!("{}.lp.gz", set.name());
    fs::rename(folder.tmp().join(&first), folder.outbox().join(&first)).unwrap();
    let done = folder.open().recover(Resume::Continued(Some(set.name()))).unwrap();
    assert_eq!(done, Recovered { published: 1, ..Recovered::default() });
    assert_eq!(names(&folder.outbox()), [first, format!("{}.hlog", set.name())].into());
}

#[test]
fn lives_of_one_boot_never_share_a_name() {
    let folder = Folder::new();
    let mut seen = std::collections::BTreeSet::new();
    // Each begins at the same wall time, and the collector has taken everything.
    for life in 0..5 {
        let mut spool = folder.open();
        for tick in 0..3 {
            let monotonic_ns = (life * 10 + tick) * SECOND;
            let set = spool.prepare(&[point(1)], None, 0, monotonic_ns).unwrap();
            assert!(seen.insert(set.name().to_owned()), "{}", set.name());
            spool.publish(set).unwrap();
        }
        fs::remove_dir_all(folder.outbox()).unwrap();
    }
    // A clock that stands still gives new names all the same.
    let mut spool = folder.open();
    for _ in 0..3 {
        let set = spool.prepare(&[point(1)], None, 0, 99 * SECOND).unwrap();
        assert!(seen.insert(set.name().to_owned()));
        spool.publish(set).unwrap();
    }
    assert_eq!(names(&folder.outbox()).len(), 3);
}

#[test]
fn what_others_left_in_tmp_stays() {
    let folder = Folder::new();
    drop(folder.open());
    let others = ["cn-2-3fd2a9b1-000000000000000001-1.lp.gz", "notes", "cn-1-x.lp.gz"];
    others.iter().for_each(|name| fs::write(folder.tmp().join(name), "x").unwrap());
    for resume in [Resume::Continued(None), Resume::Anew] {
        assert_eq!(folder.open().recover(resume).unwrap(), Recovered::default());
    }
    assert_eq!(names(&folder.tmp()), others.map(str::to_owned).into());
}
