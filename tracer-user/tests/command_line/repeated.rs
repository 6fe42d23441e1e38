//! Folders of records that are one, or of which one has what the other has: each record counts once.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, SystemTime},
};

use jobtrace::record::{head::Head, name};
use serde_json::Value;

use super::{
    lists::{BEGIN, DAY, HOUR, OWNER, job, write},
    program::{Ended, end, jobtrace},
    report::{files, saved},
};

/// Three jobs, one of them on two nodes and a day later.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    job(dir.path(), 1, "ada", "n1", BEGIN, 2);
    job(dir.path(), 1, "ada", "n2", BEGIN, 2);
    job(dir.path(), 2, "bob", "n1", BEGIN + 3 * HOUR, 1);
    job(dir.path(), 3, "bob", "n2", BEGIN + DAY, 4);
    dir
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let new = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &new),
            false => drop(fs::copy(entry.path(), new).unwrap()),
        }
    }
}

fn of(words: &[&str], folders: &[&Path]) -> Ended {
    let mut command = jobtrace();
    command.args(words);
    for folder in folders {
        command.arg("--from").arg(folder);
    }
    end(&mut command)
}

const LISTS: [&[&str]; 5] = [
    &["jobs", "--all", "--csv"],
    &["jobs", "-n", "2", "--csv"],
    &["usage", "--by", "user", "--csv"],
    &["usage", "--by", "node", "--csv"],
    &["usage", "--by", "hour", "--csv"],
];

#[test]
fn a_folder_that_is_named_twice_is_read_once() {
    let dir = filled();
    let link = dir.path().join("link");
    symlink(dir.path(), &link).unwrap();
    let dotted = dir.path().join(".").join("link").join(".");
    for words in LISTS {
        let once = of(words, &[dir.path()]);
        assert_eq!((once.status, once.stderr.as_str()), (0, ""));
        for folders in [[dir.path(), dir.path()], [dir.path(), &link], [&dotted, dir.path()]] {
            assert_eq!(of(words, &folders).stdout, once.stdout, "{words:?} {folders:?}");
            assert_eq!(of(words, &folders).stderr, "", "{words:?} {folders:?}");
        }
    }
}

#[test]
fn what_a_copy_has_as_well_counts_once_and_is_told() {
    let (dir, other) = (filled(), tempfile::tempdir().unwrap());
    copy(dir.path(), other.path());
    for words in LISTS {
        let once = of(words, &[dir.path()]);
        for folders in [[dir.path(), other.path()], [other.path(), dir.path()]] {
            let both = of(words, &folders);
            assert_eq!((both.status, &both.stdout), (0, &once.stdout), "{words:?}");
            let all = "jobtrace: 4 records are in more than one folder; each counts once\n";
            assert!(words.contains(&"2") || both.stderr == all, "{words:?}: {}", both.stderr);
        }
    }
    let bob = of(&["usage", "--since", "36500d", "--json"], &[dir.path(), other.path()]);
    let bob: Value = serde_json::from_str(bob.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&bob["jobs"], &bob["core_hours_held"]), (&2.into(), &20.0.into()));
    let ada = of(&["jobs", "--user", "ada", "--json"], &[other.path(), dir.path()]);
    let told = "jobtrace: 2 records are in more than one folder; each counts once\n";
    assert_eq!(ada.stderr, told, "of those that were asked for");
    let ada: Value = serde_json::from_str(&ada.stdout).unwrap();
    let files: Vec<_> = ada["files"].as_array().unwrap().iter().collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let first = other.path().to_str().unwrap();
    assert!(files.iter().all(|file| file.as_str().unwrap().starts_with(first)), "{files:?}");
}

#[test]
fn of_two_states_of_one_record_the_later_counts_and_what_only_one_has_counts_as_well() {
    let (dir, other) = (filled(), tempfile::tempdir().unwrap());
    let known = job(other.path(), 3, "bob", "n2", BEGIN + DAY, 4);
    // The copy is from when the job still ran.
    let early = Head {
        end: None,
        seen: Some(BEGIN + DAY + HOUR),
        core_held_ns: Some(4 * HOUR),
        on_cpu_ns: Some(HOUR),
        ..known
    };
    write(other.path(), &early);
    job(other.path(), 4, "eve", "n3", BEGIN, 1);
    for folders in [[dir.path(), other.path()], [other.path(), dir.path()]] {
        let both = of(&["jobs", "--all", "--json"], &folders);
        assert_eq!(both.stderr, "jobtrace: 1 record is in more than one folder; it counts once\n");
        let rows: Vec<Value> =
            both.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 4, "{}", both.stdout);
        let three = rows.iter().find(|row| row["job"] == "3").unwrap();
        assert_eq!(
            (&three["state"], &three["core_held_ns"]),
            (&"ended".into(), &(16 * HOUR).into())
        );
        assert_eq!(three["files"].as_array().unwrap().len(), 1);
    }
    // One that cannot be read there is still known from here.
    let heads = other.path().join(OWNER).join(name::day(BEGIN + DAY)).join(name::heads("n2"));
    fs::write(heads, "{\n").unwrap();
    let damaged = of(&["jobs", "--all", "--csv"], &[other.path(), dir.path()]);
    assert_eq!((damaged.status, damaged.stdout.lines().count()), (1, 5), "{damaged:?}");
}

#[test]
fn a_record_whose_owner_came_to_light_counts_once() {
    let dir = filled();
    let once: Vec<_> = LISTS.iter().map(|words| of(words, &[dir.path()]).stdout).collect();
    // The owner of all was not known at first; what was told then is still there.
    let (day, known) = (name::day(BEGIN), dir.path().join(OWNER));
    copy(&known, &dir.path().join(name::NO_OWNER));
    let of_day = known.join(&day);
    for entry in fs::read_dir(&of_day).unwrap().map(Result::unwrap) {
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            let head: Head = serde_json::from_str(line).unwrap();
            fs::write(of_day.join(head.file.unwrap()), "").unwrap();
        }
    }
    fs::remove_dir_all(dir.path().join(name::NO_OWNER).join(name::day(BEGIN + DAY))).unwrap();
    for (words, once) in LISTS.iter().zip(&once) {
        let all = of(words, &[dir.path()]);
        assert_eq!((all.status, &all.stdout, all.stderr.as_str()), (0, once, ""), "{words:?}");
    }
    // Where the later head is damaged, the earlier one is known still.
    fs::write(of_day.join(name::heads("n2")), "{\n").unwrap();
    let damaged = of(LISTS[0], &[dir.path()]);
    assert_eq!((damaged.status, &damaged.stdout), (1, &once[0]), "{}", damaged.stderr);
}

#[test]
fn of_two_copies_the_one_that_can_be_read_is_reported() {
    let (dir, other) = (saved(), tempfile::tempdir().unwrap());
    let words = ["report", "6142-1795250571", "--no-sched"];
    let once = of(&words, &[dir.path()]).stdout;
    copy(dir.path(), other.path());
    let damaged = files(other.path());
    let damaged = damaged.iter().find(|file| file.to_str().unwrap().contains("run-6142-")).unwrap();
    fs::write(damaged, "no record").unwrap();
    for folders in [[dir.path(), other.path()], [other.path(), dir.path()]] {
        let both = of(&words, &folders);
        assert_eq!(both.stdout, once, "{}", both.stderr);
        let is_told = both.stderr.contains("skipped ") && both.stderr.contains("run-6142-");
        assert_eq!((both.status == 1, is_told), (folders[0] == other.path(), both.status == 1));
        let findings = ["findings", "--since", "36500d", "--least", "0s"];
        let (found, alone) = (of(&findings, &folders), of(&findings, &[dir.path()]));
        assert!(alone.stdout.lines().count() > 0, "{alone:?}");
        assert_eq!(found.stdout, alone.stdout);
    }
    // The copy may lie where its owner was not known.
    let owner = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    copy(&owner, &dir.path().join(name::NO_OWNER));
    let here = damaged.strip_prefix(other.path()).unwrap();
    fs::write(dir.path().join(here), "no record").unwrap();
    let known = of(&words, &[dir.path()]);
    assert_eq!((known.status, known.stdout), (1, once), "{}", known.stderr);
}

#[test]
fn a_report_of_two_copies_is_that_of_one() {
    let (dir, other) = (saved(), tempfile::tempdir().unwrap());
    copy(dir.path(), other.path());
    let words = ["report", "6142-1795250571", "--no-sched"];
    let both = of(&words, &[dir.path(), other.path()]);
    assert_eq!((both.status, both.stdout), (0, of(&words, &[dir.path()]).stdout));
    assert_eq!(both.stderr, "jobtrace: 1 record is in more than one folder; it counts once\n");
}

#[test]
fn records_that_no_list_has_are_told_of() {
    let (dir, flat) = (saved(), tempfile::tempdir().unwrap());
    let (heads, records): (Vec<_>, Vec<_>) = files(dir.path())
        .into_iter()
        .partition(|file| name::is_heads(file.file_name().unwrap().to_str().unwrap()));
    heads.iter().for_each(|file| fs::remove_file(file).unwrap());
    // Records that are saved just now have their heads in a moment.
    for words in LISTS {
        let ended = of(words, &[dir.path()]);
        assert!(ended.status != 1 && !ended.stderr.contains("in no list"), "{words:?}: {ended:?}");
    }
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for day in heads.iter().map(|file| file.parent().unwrap()) {
        fs::File::open(day).unwrap().set_modified(hour_ago).unwrap();
    }
    for record in &records {
        fs::copy(record, flat.path().join(record.file_name().unwrap())).unwrap();
    }
    let of_all = |what: &str| format!("{} records {what}", records.len());
    let of_each = [(dir.path(), "are in no list, for heads@"), (flat.path(), "lie here, ")];
    for (folder, what) in of_each {
        for words in LISTS {
            let ended = of(words, &[folder]);
            assert_eq!(ended.status, 1, "{words:?}");
            assert!(ended.stderr.contains(&of_all(what)), "{words:?}: {}", ended.stderr);
        }
    }
}
