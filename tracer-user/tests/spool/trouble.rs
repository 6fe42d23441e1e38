//! Folders that go away, disks that refuse.

use std::fs;

use jobtrace::lines::{
    spool::{Limits, Spool},
    writer::Writer,
};

use crate::folder::{Folder, SECOND, names, point, prepare, write};

#[test]
fn folders_removed_between_ticks_are_made_again() {
    let folder = Folder::new();
    let mut spool = folder.open();
    write(&mut spool, 1);
    fs::remove_dir_all(folder.tmp()).unwrap();
    fs::remove_dir_all(folder.outbox()).unwrap();
    write(&mut spool, 2);
    fs::remove_dir_all(folder.dir()).unwrap();
    assert_eq!(spool.enforce(0, 2 * SECOND).unwrap().files, 0);
    let set = prepare(&mut spool, 3);
    assert!(!folder.outbox().exists());
    spool.publish(set).unwrap();
    assert_eq!(folder.numbers(), [3]);
}

#[test]
fn a_spool_that_cannot_be_made_is_refused_with_the_cure() {
    let folder = Folder::new();
    let file = folder.dir().join("file");
    fs::write(&file, "x").unwrap();
    let writer = Writer { host: "n".into(), boot_id: String::new(), pid: 1 };
    let error = Spool::open(&file, Limits::default(), &writer).unwrap_err();
    let expected = format!(
        "cannot open the spool {}: remove the file that is in the way or name another folder",
        file.display()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind_and_can_be_tried_again() {
    let folder = Folder::new();
    let mut spool = folder.open();
    fs::remove_dir(folder.tmp()).unwrap();
    fs::write(folder.tmp(), "a file in its place").unwrap();
    let error = spool.prepare(&[point(1)], None, 1, 1).unwrap_err();
    assert!(error.to_string().starts_with("cannot write to the spool"), "{error:#}");
    fs::remove_file(folder.tmp()).unwrap();
    write(&mut spool, 1);
    assert_eq!(folder.numbers(), [1]);
    assert!(names(&folder.tmp()).is_empty());
}

#[test]
fn a_set_that_cannot_be_published_waits_and_comes_first() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let set = prepare(&mut spool, 1);
    fs::remove_dir(folder.outbox()).unwrap();
    fs::write(folder.outbox(), "a file in its place").unwrap();
    let error = spool.publish(set).unwrap_err();
    assert!(error.to_string().contains("which stays in tmp"), "{error:#}");
    // As long as it waits there is no second one, whose name the agent's state would have to hold.
    assert!(spool.prepare(&[point(2)], None, 2, 2).is_err());
    assert_eq!(names(&folder.tmp()).len(), 1);
    fs::remove_file(folder.outbox()).unwrap();
    write(&mut spool, 2);
    assert_eq!(folder.numbers(), [1, 2]);
}

#[test]
fn files_taken_out_of_tmp_are_told_once() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let set = prepare(&mut spool, 1);
    fs::remove_dir_all(folder.tmp()).unwrap();
    let error = spool.publish(set).unwrap_err();
    assert!(error.to_string().starts_with("1 files were removed from"), "{error:#}");
    write(&mut spool, 2);
    assert_eq!(folder.numbers(), [2]);
}

#[test]
fn a_discarded_set_never_appears() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let set = spool.prepare(&[point(1)], Some("#[End]\n"), 1, 1).unwrap();
    spool.discard(set);
    assert!(names(&folder.tmp()).is_empty() && names(&folder.outbox()).is_empty());
    let set = spool.prepare::<jobtrace::model::point::Point>([], None, 1, 1).unwrap();
    spool.publish(set).unwrap();
    assert!(names(&folder.outbox()).is_empty(), "no points, no file");
}
