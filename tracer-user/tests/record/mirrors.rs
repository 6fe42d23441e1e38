//! Copies of records in a folder that nodes share.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use jobtrace::record::{
    name,
    store::{Access, Copied, Mirror, Store, read_heads},
};

use super::*;

/// 2026-11-22.
const TODAY: u64 = 1_795_305_600 * SECOND;

fn named(host: &str, job: u64) -> Record {
    let mut record = begun(host, TODAY + job);
    record.totals.stats.job.job = job.to_string();
    record.add(SECOND, &groups()[..4], &[]);
    record
}

fn copied(mirror: &mut Mirror) -> (u64, u64) {
    let Copied { records, removed, .. } = mirror.round(|| true).unwrap();
    (records, removed)
}

fn jobs(dir: &Path) -> Vec<String> {
    let found = read_heads(dir, |_| true).unwrap();
    assert_eq!((found.damaged.len(), found.closed), (0, 0), "{found:?}");
    for (folder, head) in &found.heads {
        jobtrace::record::store::read_of(folder, head).unwrap();
    }
    found.heads.into_iter().filter_map(|(_, head)| head.job).collect()
}

#[test]
fn each_node_copies_its_own_and_only_what_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let shared = dir.path().join("shared");
    let [one, two] = ["n1", "n2"].map(|host| {
        let own = dir.path().join(host);
        (Store::open_for_users(&own, host).unwrap(), Mirror::new(&own, &shared, Access::Users))
    });
    let ((store, mut mirror), (other, mut others)) = (one, two);
    let mut records: Vec<_> = (1..=5).map(|job| named("n1", job)).collect();
    records.iter().for_each(|record| drop(store.save(record).unwrap()));
    other.save(&named("n2", 6)).unwrap();
    assert!(mirror.round(|| true).is_err(), "a mount that is missing is not filled");
    assert!(!shared.exists());
    fs::create_dir(&shared).unwrap();
    assert_eq!((copied(&mut mirror), copied(&mut others)), ((5, 0), (1, 0)));
    assert_eq!((copied(&mut mirror), copied(&mut others)), ((0, 0), (0, 0)));
    assert_eq!(jobs(&shared), ["1", "2", "3", "4", "5", "6"]);
    records[2].add(SECOND, &groups()[..4], &[]);
    store.save(&records[2]).unwrap();
    // Clocks of files are coarse: one that was written in the same moment as the heads may come once more.
    let (again, removed) = copied(&mut mirror);
    assert!((1..=2).contains(&again) && removed == 0, "{again} of one that has changed");
    // After a restart nothing is copied again, after a fault what lacks is.
    let anew = || Mirror::new(&dir.path().join("n1"), &shared, Access::Users);
    assert_eq!(copied(&mut anew()), (0, 0));
    let place = |record: &Record| shared.join(name::place(record).to_string());
    fs::remove_file(place(&records[0])).unwrap();
    fs::remove_file(place(&records[0]).with_file_name(name::heads("n1"))).unwrap();
    assert_eq!(copied(&mut anew()), (1, 0));
    assert_eq!(jobs(&shared).len(), 6);
    // What goes here goes there, and nothing of another node's.
    store.remove(&name::place(&records[1])).unwrap();
    assert_eq!(copied(&mut mirror).1, 1);
    assert_eq!(jobs(&shared), ["1", "3", "4", "5", "6"]);
    for record in &records {
        store.remove(&name::place(record)).unwrap();
    }
    assert_eq!(copied(&mut mirror), (0, 4));
    assert_eq!(jobs(&shared), ["6"]);
    assert_eq!(fs::read_dir(shared.join("1000/tmp")).unwrap().count(), 0);
}

#[test]
fn who_may_read_copies_is_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    let store = Store::open_for_users(&own, "n1").unwrap();
    let record = named("n1", 1);
    store.save(&record).unwrap();
    let place = name::place(&record);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (access, folder, file) in [(Access::Users, 0o750, 0o640), (Access::Open, 0o755, 0o644)] {
        let shared = dir.path().join(format!("{access:?}"));
        fs::create_dir(&shared).unwrap();
        assert_eq!(copied(&mut Mirror::new(&own, &shared, access)), (1, 0));
        let path = shared.join(place.to_string());
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (folder, file), "{access:?}");
        assert_eq!(mode(&path.with_file_name(name::heads("n1"))), file);
        assert_eq!(mode(&shared.join("1000")), folder);
    }
    // Only into folders that are there.
    let shared = dir.path().join("prepared");
    fs::create_dir(&shared).unwrap();
    let mut mirror = Mirror::new(&own, &shared, Access::Prepared);
    for _ in 0..2 {
        let copied = mirror.round(|| true).unwrap();
        assert_eq!((copied.records, Vec::from_iter(copied.unprepared)), (0, vec!["1000".into()]));
    }
    fs::create_dir(shared.join("1000")).unwrap();
    fs::set_permissions(shared.join("1000"), fs::Permissions::from_mode(0o2750)).unwrap();
    assert_eq!(copied(&mut mirror), (1, 0));
    assert_eq!(jobs(&shared), ["1"]);
    let day = shared.join("1000/2026-11-22");
    let set_group = fs::metadata(day).unwrap().permissions().mode() & 0o2000;
    assert_eq!(set_group, 0o2000, "its files have the group of the folder");
}
