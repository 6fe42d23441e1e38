//! Copies of records in a folder that nodes share.

use std::{
    cell::Cell,
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use jobtrace::record::{
    name,
    store::{Access, Copied, Limits, Mirror, Store, read_heads},
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

const DAY: u64 = 86_400 * SECOND;
/// The share keeps copies for a year.
const MAX_AGE: Duration = Duration::from_secs(365 * 86_400);

fn mirror(from: &Path, to: &Path, access: Access) -> Mirror {
    Mirror::new(from, to, access, MAX_AGE)
}

/// Records copied and withdrawn in a round a day later.
fn copied(mirror: &mut Mirror) -> (u64, u64) {
    let Copied { records, removed, old, .. } = mirror.round(TODAY + DAY, || true).unwrap();
    assert_eq!(old, 0);
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
        (Store::open_for_users(&own, host).unwrap(), mirror(&own, &shared, Access::Users))
    });
    let ((store, mut copier), (other, mut others)) = (one, two);
    let mut records: Vec<_> = (1..=5).map(|job| named("n1", job)).collect();
    records.iter().for_each(|record| drop(store.save(record).unwrap()));
    other.save(&named("n2", 6)).unwrap();
    assert!(copier.round(TODAY, || true).is_err(), "a mount that is missing is not filled");
    assert!(!shared.exists());
    fs::create_dir(&shared).unwrap();
    assert_eq!((copied(&mut copier), copied(&mut others)), ((5, 0), (1, 0)));
    assert_eq!((copied(&mut copier), copied(&mut others)), ((0, 0), (0, 0)));
    assert_eq!(jobs(&shared), ["1", "2", "3", "4", "5", "6"]);
    records[2].add(SECOND, &groups()[..4], &[]);
    store.save(&records[2]).unwrap();
    // Clocks of files are coarse: one that was written in the same moment as the heads may come once more.
    let (again, removed) = copied(&mut copier);
    assert!((1..=2).contains(&again) && removed == 0, "{again} of one that has changed");
    // After a restart nothing is copied again, after a fault what lacks is.
    let anew = || mirror(&dir.path().join("n1"), &shared, Access::Users);
    assert_eq!(copied(&mut anew()), (0, 0));
    let place = |record: &Record| shared.join(name::place(record).to_string());
    fs::remove_file(place(&records[0])).unwrap();
    fs::remove_file(place(&records[0]).with_file_name(name::heads("n1"))).unwrap();
    assert_eq!(copied(&mut anew()), (1, 0));
    assert_eq!(jobs(&shared).len(), 6);
    // What is withdrawn here goes there, and nothing of another node's.
    store.remove(&name::place(&records[1])).unwrap();
    assert_eq!(copied(&mut copier).1, 1);
    assert_eq!(jobs(&shared), ["1", "3", "4", "5", "6"]);
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
        assert_eq!(copied(&mut mirror(&own, &shared, access)), (1, 0));
        let path = shared.join(place.to_string());
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (folder, file), "{access:?}");
        assert_eq!(mode(&path.with_file_name(name::heads("n1"))), file);
        assert_eq!(mode(&shared.join("1000")), folder);
    }
    // Only into folders that are there.
    let shared = dir.path().join("prepared");
    fs::create_dir(&shared).unwrap();
    let mut mirror = mirror(&own, &shared, Access::Prepared);
    for _ in 0..2 {
        let copied = mirror.round(TODAY, || true).unwrap();
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

/// A record of `n1` that was seen last so many days before today, of a job that began the second before.
fn aged(days: u64) -> Record {
    let mut record = begun("n1", TODAY - days * DAY - SECOND);
    record.totals.stats.job.job = format!("aged-{days}");
    record.add(SECOND, &groups()[..4], &[]);
    record
}

#[test]
fn copies_outlive_what_the_node_removes_for_its_age_until_they_are_too_old_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let (own, shared) = (dir.path().join("n1"), dir.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let store = Store::open_for_users(&own, "n1").unwrap();
    let other = Store::open_for_users(&shared, "n2").unwrap();
    other.save(&named("n2", 6)).unwrap();
    let ages = [360, 100, 99, 3];
    // Of the day of one that goes, one that stays: its job ran for long.
    let mut long = begun("n1", TODAY - 100 * DAY - 2 * SECOND);
    long.add(100 * DAY, &groups()[..4], &[]);
    long.totals.stats.job.job = "long".into();
    let records: Vec<_> = ages.map(aged).into_iter().chain([long]).collect();
    records.iter().for_each(|record| drop(store.save(record).unwrap()));
    let all = ["aged-360", "aged-100", "long", "aged-99", "aged-3", "6"];
    let mut copier = mirror(&own, &shared, Access::Users);
    assert_eq!(copied(&mut copier), (5, 0));
    assert_eq!(jobs(&shared), all);
    let limits = Limits { age_ns: 90 * DAY, bytes: u64::MAX };
    let dropped = store.enforce(&limits, TODAY).finish(&store).unwrap();
    assert_eq!((dropped.old, jobs(&own).len()), (3, 2));
    // While it runs, or while it was down: nothing is withdrawn. Clocks of files are coarse, as above.
    let anew = || mirror(&own, &shared, Access::Users);
    let (again, removed) = copied(&mut copier);
    assert!(again <= 1 && removed == 0, "{again} copied, {removed} removed");
    assert_eq!(copied(&mut anew()), (0, 0));
    assert_eq!(jobs(&shared), all);
    // Of a day of which a part is left here, all that is there has its head there.
    let mut long = records[4].clone();
    long.add(SECOND, &groups()[..4], &[]);
    store.save(&long).unwrap();
    assert_eq!((copied(&mut copier), copied(&mut anew())), ((1, 0), (0, 0)));
    assert_eq!(jobs(&shared), all);
    // A node that lost all its records, as one without a disk does at each boot, takes none away.
    fs::remove_dir_all(&own).unwrap();
    let store = Store::open_for_users(&own, "n1").unwrap();
    assert_eq!((copied(&mut copier), copied(&mut anew())), ((0, 0), (0, 0)));
    store.save(&aged(2)).unwrap();
    assert_eq!(copied(&mut anew()), (1, 0));
    // What is older than the share's own limit goes, with its head and its folder, and is not copied again.
    let old = |days: u64| {
        let copied = anew().round(TODAY + days * DAY, || true).unwrap();
        (copied.records, copied.removed, copied.old)
    };
    assert_eq!((old(5), old(6), old(6)), ((0, 0, 0), (0, 0, 1), (0, 0, 0)));
    let left = ["aged-100", "long", "aged-99", "aged-3", "aged-2", "6"];
    assert_eq!(jobs(&shared), left);
    assert!(!shared.join("1000").join(name::day(TODAY - 360 * DAY - SECOND)).exists());
    assert_eq!(old(266), (0, 0, 1));
    assert_eq!(
        jobs(&shared),
        ["long", "aged-99", "aged-3", "aged-2", "6"],
        "its day's other stays"
    );
    store.save(&aged(300)).unwrap();
    assert_eq!(old(266), (0, 0, 0), "too old to be copied");
}

#[test]
fn a_record_that_moved_while_nobody_copied_is_there_once() {
    let dir = tempfile::tempdir().unwrap();
    let (own, shared) = (dir.path().join("n1"), dir.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let store = Store::open_for_users(&own, "n1").unwrap();
    store.save(&aged(9)).unwrap();
    let known = named("n1", 1);
    let mut unknown = known.clone();
    unknown.facts = Default::default();
    assert_eq!(name::place(&unknown).owner, "none");
    store.save(&unknown).unwrap();
    let anew = || mirror(&own, &shared, Access::Users);
    assert_eq!(copied(&mut anew()), (2, 0));
    // Its owner comes to light: its day's folder vanishes.
    store.save(&known).unwrap();
    store.remove(&name::place(&unknown)).unwrap();
    assert!(!own.join("none").join(name::day(TODAY)).exists());
    assert_eq!(copied(&mut anew()), (1, 1));
    assert_eq!(jobs(&shared), ["aged-9", "1"]);
    assert!(!shared.join("none").join(name::day(TODAY)).exists());
}

#[test]
fn a_share_that_keeps_whole_seconds_alone_gets_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (own, shared) = (dir.path().join("n1"), dir.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let store = Store::open_for_users(&own, "n1").unwrap();
    let records: Vec<_> = (1..=3).map(|job| named("n1", job)).collect();
    records.iter().for_each(|record| drop(store.save(record).unwrap()));
    let anew = || mirror(&own, &shared, Access::Users);
    assert_eq!(copied(&mut anew()), (3, 0));
    let day = shared.join("1000").join(name::day(TODAY));
    for entry in fs::read_dir(&day).unwrap() {
        let file = fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        let whole = modified.duration_since(UNIX_EPOCH).unwrap().as_secs();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(whole)).unwrap();
    }
    assert_eq!(copied(&mut anew()), (0, 0));
    // Also where heads say that something has changed.
    fs::remove_file(day.join(name::heads("n1"))).unwrap();
    assert_eq!(copied(&mut anew()), (0, 0));
    assert_eq!(jobs(&shared), ["1", "2", "3"]);
}

#[test]
fn a_round_ends_between_two_files_when_it_is_asked_to() {
    let dir = tempfile::tempdir().unwrap();
    let (own, shared) = (dir.path().join("n1"), dir.path().join("shared"));
    fs::create_dir(&shared).unwrap();
    let store = Store::open_for_users(&own, "n1").unwrap();
    (1..=5).for_each(|job| drop(store.save(&named("n1", job)).unwrap()));
    let asked = Cell::new(0);
    let twice = || asked.replace(asked.get() + 1) < 3;
    let mut copier = mirror(&own, &shared, Access::Users);
    assert_eq!(copier.round(TODAY, twice).unwrap().records, 2);
    assert_eq!(copied(&mut copier), (3, 0));
    assert_eq!(jobs(&shared).len(), 5);
}
