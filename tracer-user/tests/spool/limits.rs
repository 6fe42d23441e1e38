//! Caps: the oldest go first, and are counted; no file of others goes.

use std::fs;

use jobtrace::lines::spool::{Dropped, Limits};

use crate::folder::{Folder, SECOND, names, point, write};

const NONE: Limits = Limits { bytes: u64::MAX, files: usize::MAX, age_ns: u64::MAX };

#[test]
fn the_oldest_files_are_dropped_and_counted() {
    let folder = Folder::new();
    let mut spool = folder.open_with(Limits { files: 3, ..NONE });
    for n in 10..15 {
        write(&mut spool, n);
    }
    let size = |name: &String| fs::metadata(folder.outbox().join(name)).unwrap().len();
    let oldest: u64 = names(&folder.outbox()).iter().take(2).map(size).sum();
    assert_eq!(spool.enforce(0, 15 * SECOND).unwrap(), Dropped { files: 2, bytes: oldest });
    assert_eq!(folder.numbers(), [12, 13, 14]);
    assert_eq!(spool.enforce(0, 16 * SECOND).unwrap(), Dropped::default());
    write(&mut spool, 15);
    assert_eq!(spool.enforce(0, 16 * SECOND).unwrap().files, 1);
    assert_eq!(folder.numbers(), [13, 14, 15]);
    assert_eq!(spool.dropped().files, 3);
}

#[test]
fn a_full_outbox_makes_room_for_more_than_one() {
    let folder = Folder::new();
    drop(folder.open());
    for n in 0..131 {
        let name = format!("cn-1-3fd2a9b1-{n:018}-5.lp.gz");
        fs::write(folder.outbox().join(name), "x").unwrap();
    }
    let mut spool = folder.open_with(Limits { files: 130, ..NONE });
    let dropped = spool.enforce(0, 1).unwrap();
    assert_eq!(dropped, Dropped { files: 3, bytes: 3 }, "down to 130 less a 64th");
    assert_eq!(
        names(&folder.outbox()).first().unwrap(),
        "cn-1-3fd2a9b1-000000000000000003-5.lp.gz"
    );
}

#[test]
fn bytes_are_capped_at_the_start_too() {
    let folder = Folder::new();
    (10..20).for_each(|n| write(&mut folder.open(), n));
    let size = |name: String| fs::metadata(folder.outbox().join(name)).unwrap().len();
    let total: u64 = names(&folder.outbox()).into_iter().map(size).sum();
    let mut spool = folder.open_with(Limits { bytes: total / 2, ..NONE });
    let dropped = spool.enforce(0, 20 * SECOND).unwrap();
    assert!((5..=6).contains(&dropped.files), "{dropped:?}");
    assert!(total - dropped.bytes <= total / 2);
    assert_eq!(folder.numbers().last(), Some(&19));
    assert_eq!(folder.numbers().len() as u64, 10 - dropped.files);
}

#[test]
fn what_the_collector_took_is_not_counted_and_makes_room() {
    let folder = Folder::new();
    let mut spool = folder.open_with(Limits { files: 3, ..NONE });
    (10..13).for_each(|n| write(&mut spool, n));
    // It takes the newest, not the oldest.
    let newest = names(&folder.outbox()).pop_last().unwrap();
    fs::remove_file(folder.outbox().join(newest)).unwrap();
    write(&mut spool, 13);
    assert_eq!(spool.enforce(0, 14 * SECOND).unwrap(), Dropped::default());
    assert_eq!(folder.numbers(), [10, 11, 13]);
}

#[test]
fn old_files_go_by_age_whatever_the_wall_clock_says() {
    let folder = Folder::new();
    let mut spool = folder.open_with(Limits { age_ns: 100 * SECOND, ..NONE });
    for (n, wall_ns) in [(10, 0), (50, u64::MAX / 2), (60, 5)] {
        let set = spool.prepare(&[point(n)], None, wall_ns, n * SECOND).unwrap();
        spool.publish(set).unwrap();
    }
    assert_eq!(spool.enforce(u64::MAX / 3, 110 * SECOND).unwrap(), Dropped::default());
    assert_eq!(spool.enforce(0, 155 * SECOND).unwrap().files, 2);
    assert_eq!(folder.numbers(), [60]);
}

#[test]
fn files_of_others_stay_and_do_not_count() {
    let folder = Folder::new();
    let mut spool = folder.open_with(Limits { files: 1, ..NONE });
    let others = [
        "cn-2-3fd2a9b1-000000000000000001-1.lp.gz",
        "cn-1-3fd2a9b1-42.0-1.lp.gz",
        "a.lp.gz",
        "notes.txt",
    ];
    others.iter().for_each(|name| fs::write(folder.outbox().join(name), [0; 1000]).unwrap());
    fs::create_dir(folder.outbox().join("cn-1-3fd2a9b1-000000000000000002-1.lp.gz")).unwrap();
    (10..13).for_each(|n| write(&mut spool, n));
    assert_eq!(spool.enforce(0, 13 * SECOND).unwrap().files, 2);
    let left = names(&folder.outbox());
    assert!(others.iter().all(|name| left.contains(*name)), "{left:?}");
    assert_eq!(left.len(), others.len() + 2);
}

#[test]
fn a_long_set_is_several_files_of_one_name() {
    let folder = Folder::new();
    let mut spool = folder.open();
    let text = jobtrace::model::point::FieldValue::Text("x".repeat(16_000));
    let long =
        |n| jobtrace::model::point::Point { fields: vec![("t".into(), text.clone())], ..point(n) };
    let points: Vec<_> = (0..1200).map(long).collect();
    let set = spool.prepare(&points, None, 5, 5).unwrap();
    let name = set.name().to_owned();
    spool.publish(set).unwrap();
    let expected = ["lp.gz", "1.lp.gz", "2.lp.gz"].map(|end| format!("{name}.{end}"));
    assert_eq!(names(&folder.outbox()), expected.into());
    assert_eq!(folder.numbers(), (0..1200).collect::<Vec<_>>());
}
