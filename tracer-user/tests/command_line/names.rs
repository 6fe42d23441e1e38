//! What a word on the command line of `report` names: a job or a file. Jobs' ids may have slashes.

use std::{fs, path::Path};

use jobtrace::record::{Record, file, head::Head, name};

use super::{
    program::{Ended, end, jobtrace},
    report::{files, saved},
};

/// Saves `record` in `dir`, as an agent does.
pub fn save(dir: &Path, record: &Record) {
    let place = name::place(record);
    let folder = dir.join(&place.owner).join(&place.day);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&place.file), file::encode(record).unwrap()).unwrap();
    let heads = folder.join(name::heads(&record.hosts[0]));
    let text = fs::read_to_string(&heads).unwrap_or_default() + &Head::from(record).line();
    fs::write(heads, text).unwrap();
}

/// The record of one of the recordings.
pub fn a_record() -> Record {
    let dir = saved();
    let all = files(dir.path());
    let first = all.iter().find(|file| file.to_str().unwrap().contains("run-6142-")).unwrap();
    file::decode(&fs::read(first).unwrap()).unwrap()
}

/// Of `words`, from within `dir`.
fn report(dir: &Path, words: &[&str]) -> Ended {
    end(jobtrace().current_dir(dir).arg("report").args(words).args(["--from", "records"]))
}

#[test]
fn an_id_with_a_slash_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = a_record();
    record.totals.stats.job.job = "ns/web-1".into();
    save(&dir.path().join("records"), &record);
    let found = report(dir.path(), &["ns/web-1"]);
    assert_eq!((found.status, found.stderr.as_str()), (0, ""));
    assert!(found.stdout.contains("run job ns/web-1 of root"), "{}", found.stdout);
    let none = report(dir.path(), &["ns/web-2"]);
    assert_eq!((none.status, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("no record of job ns/web-2 in records"), "{}", none.stderr);
    assert!(none.stderr.contains("; there is no file ns/web-2 either"), "{}", none.stderr);
    let folder = report(dir.path(), &["./records"]);
    assert_eq!(folder.status, 2);
    let cure = "; ./records is a folder: name it with --from, and a job that is in it";
    assert!(folder.stderr.contains(cure), "{}", folder.stderr);
    let file = format!("records/{}", name::place(&record));
    assert_eq!(report(dir.path(), &[&file]).stdout, found.stdout);
}

#[test]
fn an_array_and_a_step_are_told_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    for id in ["300_0", "300_1", "3001", "400"] {
        let mut record = a_record();
        record.totals.stats.job.job = id.into();
        save(&dir.path().join("records"), &record);
    }
    for (name, told) in [
        ("300", "of its array there are 2, such as 300_0: name one of them"),
        ("400.0", "its steps are in the report of job 400"),
        ("500.0", "there are 4, such as 400"),
    ] {
        let none = report(dir.path(), &[name]);
        assert_eq!((none.status, none.stdout.as_str()), (2, ""));
        assert!(none.stderr.contains(told), "{name}: {}", none.stderr);
    }
}

#[test]
fn jobs_of_one_id_are_told_apart_by_their_owners() {
    let dir = tempfile::tempdir().unwrap();
    let records = dir.path().join("records");
    for (user, manager, host) in [("ada", "slurm", "n1"), ("bob", "slurm", "n2")] {
        let mut record = a_record();
        let job = &mut record.totals.stats.job;
        (job.job, job.manager, job.user) = ("700".into(), manager.into(), user.into());
        record.hosts = vec![host.into()];
        save(&records, &record);
    }
    let found = report(dir.path(), &["700", "--no-sched"]);
    assert_eq!(found.status, 0);
    let told = "jobtrace: 700 is more than one job: slurm of ada on testbed, slurm of bob on testbed; this is the \
                one that began last: `jobtrace jobs --json` lists their files, which can be named instead\n";
    assert_eq!(found.stderr, told);
}

#[test]
fn who_meant_a_job_and_named_a_file_is_told_why() {
    let dir = tempfile::tempdir().unwrap();
    save(&dir.path().join("records"), &a_record());
    assert_eq!(report(dir.path(), &["sh"]).status, 0);
    fs::write(dir.path().join("sh"), "#!/bin/sh\n").unwrap();
    for words in [&["sh"][..], &["./sh"]] {
        let taken = report(dir.path(), words);
        assert_eq!((taken.status, taken.stdout.as_str()), (2, ""));
        let why = format!("{} was taken for a file, as there is one of that name", words[0]);
        assert!(taken.stderr.contains(&why), "{}", taken.stderr);
    }
    let absent = report(dir.path(), &["x.json.gz"]);
    assert_eq!(absent.status, 2);
    let why = "x.json.gz was taken for a file, as it ends in .json.gz";
    assert!(absent.stderr.contains(why), "{}", absent.stderr);
}
