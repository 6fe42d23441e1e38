//! Folders of records: names, states, limits, damage.

use std::{fs, path::Path};

use jobtrace::record::{
    head::{FIELDS, Head},
    name,
    store::{Dropped, Limits, Store, read, read_heads, read_of, records_of},
};

use super::*;

const DAY: u64 = 86_400 * SECOND;
/// 2026-11-22.
const TODAY: u64 = 1_795_305_600 * SECOND;

fn files(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let in_folder = |dir: &Path| -> Vec<_> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    for path in
        in_folder(dir).iter().flat_map(|owner| in_folder(owner)).flat_map(|day| in_folder(&day))
    {
        files.push(path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned());
    }
    files.sort();
    files
}

fn named(job: &str, begin_ns: u64) -> Record {
    let mut record = begun("n1", begin_ns);
    record.totals.stats.job.job = job.into();
    record.add(SECOND, &groups()[..4], &[]);
    record
}

#[test]
fn a_record_is_replaced_by_its_later_state_and_heads_tell_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("a/records"), "n1").unwrap();
    let dir = dir.path().join("a/records");
    // Over midnight: a job stays in the day of its begin.
    let mut record = named("4711", TODAY - SECOND / 2);
    let path = store.save(&record).unwrap();
    assert_eq!(read(&path).unwrap(), record);
    record.add(3 * DAY, &groups()[..4], &[]);
    record.facts.set(const { fact("end") }, TODAY + 3 * DAY);
    assert_eq!(store.save(&record).unwrap(), path);
    assert_eq!(read(&path).unwrap(), record);
    // The same id again, on the same node.
    let again = store.save(&named("4711", TODAY)).unwrap();
    assert_eq!(
        files(&dir),
        [
            "1000/2026-11-21/heads@n1.jsonl",
            "1000/2026-11-21/slurm-4711-1795305599500000000@n1.json.gz",
            "1000/2026-11-22/heads@n1.jsonl",
            "1000/2026-11-22/slurm-4711-1795305600000000000@n1.json.gz",
        ]
    );
    let found = read_heads(&dir, |_| true).unwrap();
    assert_eq!(found.damaged, Vec::<String>::new());
    let [(first_day, first), (_, second)] = &found.heads[..] else { panic!("{found:?}") };
    assert_eq!(first, &Head::from(&record));
    assert_eq!(first_day.join(first.file.as_ref().unwrap()), path);
    assert_eq!(second.file.as_deref(), again.file_name().unwrap().to_str());
    assert_eq!((first.end, second.end), (Some(TODAY + 3 * DAY), None));
    assert_eq!(read_heads(&dir, |day| day > "2026-11-21").unwrap().heads.len(), 1);
}

#[test]
fn what_is_there_already_is_written_again_only_as_far_as_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "n1").unwrap();
    let record = named("1", TODAY);
    let path = store.save(&record).unwrap();
    let heads = path.with_file_name(name::heads("n1"));
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let (before, whole) = (inode(&path), fs::read(&heads).unwrap());
    store.save(&record).unwrap();
    assert_eq!((inode(&path), fs::read(&heads).unwrap()), (before, whole.clone()));
    // Killed between the two files, or before both.
    fs::remove_file(&heads).unwrap();
    store.save(&record).unwrap();
    assert_eq!((inode(&path), fs::read(&heads).unwrap()), (before, whole));
    fs::remove_file(&path).unwrap();
    store.save(&record).unwrap();
    assert_eq!(read(&path).unwrap(), record);
    assert_eq!(read_heads(dir.path(), |_| true).unwrap().heads.len(), 1);
}

#[test]
fn hostile_ids_stay_in_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("records");
    let store = Store::open(&root, "n1").unwrap();
    for job in ["../../../etc/cron.d/x", "..", "", ".", "a\nb\0", "@heads", &"/".repeat(4096)] {
        let mut record = named(job, TODAY);
        record.totals.stats.job.manager = "../m\n".into();
        let path = store.save(&record).unwrap();
        assert_eq!(path.parent(), Some(root.join("1000/2026-11-22").as_path()), "{job:?}");
        assert!(path.file_name().unwrap().len() <= 255);
        assert_eq!(read(&path).unwrap().job().job, job);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing beside the store");
    let found = read_heads(&root, |_| true).unwrap();
    assert!(found.damaged.is_empty() && found.heads.len() == 7, "{found:?}");
}

#[test]
fn what_is_damaged_is_named_and_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "n1").unwrap();
    let path = store.save(&named("1", TODAY)).unwrap();
    let heads = dir.path().join("1000/2026-11-22").join(name::heads("n1"));
    let whole = fs::read_to_string(&heads).unwrap();
    // A node died in a line; those of others, and what nobody wrote.
    fs::write(&heads, format!("{whole}no json\n{{\"job\":\"x\"}}\n{}", &whole[..40])).unwrap();
    store.save(&named("2", TODAY)).unwrap();
    let found = read_heads(dir.path(), |_| true).unwrap();
    let jobs: Vec<_> = found.heads.iter().filter_map(|(_, head)| head.job.clone()).collect();
    assert_eq!(jobs, ["1", "2"]);
    let at = heads.display();
    assert_eq!(found.damaged, [2, 3, 4].map(|line| format!("{at}: line {line} is damaged")));
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = format!("{:#}", read(&path).unwrap_err());
    assert!(error.starts_with(&format!("{}: the record is damaged: ", path.display())), "{error}");
}

#[test]
fn age_and_size_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_for_users(dir.path(), "n1").unwrap();
    for day in 0..5 {
        for job in 0..3u64 {
            store.save(&named(&format!("{day}-{job}"), TODAY - day * DAY + job)).unwrap();
        }
    }
    let other = Store::open(dir.path(), "n2").unwrap();
    let mut of_other = begun("n2", TODAY - 4 * DAY);
    of_other.add(SECOND, &[], &[]);
    other.save(&of_other).unwrap();
    // A job that began then and was seen yesterday.
    let mut long = named("long", TODAY - 4 * DAY);
    long.add(3 * DAY, &groups()[..4], &[]);
    store.save(&long).unwrap();
    let limits = Limits { age_ns: 2 * DAY, bytes: u64::MAX };
    let enforce = |limits, wall_ns| store.enforce(&limits, wall_ns).finish(&store).unwrap();
    let dropped = enforce(limits, TODAY + DAY / 2);
    assert_eq!((dropped.old, dropped.beyond), (9, 0), "three of each of three days");
    let mut left = files(dir.path());
    left.retain(|file| file.ends_with("n2.json.gz") || file.contains("n1"));
    assert_eq!(left.len(), 2 * 4 + 2 + 1, "another node's stays: {left:?}");
    assert!(
        !dir.path().join("1000/2026-11-20").exists() && dir.path().join("1000/2026-11-18").exists()
    );
    // Its heads go with a record.
    let jobs = |dir: &Path| -> Vec<_> {
        let found = read_heads(dir, |_| true).unwrap();
        found.heads.into_iter().filter_map(|(_, head)| head.job).collect()
    };
    assert_eq!(jobs(dir.path()).len(), 3 + 3 + 1 + 1);
    // Now only the newest record fits beside the heads.
    let size = |file: &str| fs::metadata(dir.path().join(file)).unwrap().len();
    let own: u64 = left.iter().filter(|file| file.contains("n1")).map(|file| size(file)).sum();
    let newest =
        left.iter().rfind(|file| file.starts_with("1000/2026-11-22/slurm")).unwrap().clone();
    let heads: u64 =
        left.iter().filter(|file| file.contains("heads@n1")).map(|file| size(file)).sum();
    let limits = Limits { bytes: heads + size(&newest), ..limits };
    let expected = Dropped { old: 0, beyond: 6, bytes: own - heads - size(&newest) };
    assert_eq!(enforce(limits, TODAY), expected);
    assert!(dir.path().join(newest).exists());
    assert_eq!(enforce(limits, TODAY), Dropped::default());
    assert_eq!(jobs(dir.path()), ["4711", "0-2"]);
    assert_eq!(fs::read_dir(dir.path().join("1000")).unwrap().count(), 2 + 1, "two days, and tmp");
}

#[test]
fn many_records_are_saved_together_and_each_has_its_own_fate() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), "n1").unwrap();
    let mut records: Vec<_> = (0..600).map(|job| named(&job.to_string(), TODAY + job)).collect();
    // Two states of one, and one that finds a folder in its place.
    let mut later = records[7].clone();
    later.add(SECOND, &groups()[..4], &[]);
    records.push(later.clone());
    let third = dir.path().join(name::place(&records[3]).to_string());
    fs::create_dir_all(&third).unwrap();
    let all: Vec<_> = records.iter().collect();
    let failed = |results: Vec<anyhow::Result<()>>| -> Vec<_> {
        results.iter().enumerate().filter(|(_, result)| result.is_err()).map(|(at, _)| at).collect()
    };
    assert_eq!(failed(store.save_all(&all)), [3]);
    let found = read_heads(dir.path(), |_| true).unwrap();
    assert_eq!((found.heads.len(), found.damaged.len()), (599, 0));
    assert_eq!(files(dir.path()).iter().filter(|file| file.contains("/tmp/")).count(), 0);
    assert_eq!(read(&dir.path().join(name::place(&later).to_string())).unwrap(), later);
    fs::remove_dir(third).unwrap();
    assert_eq!(failed(store.save_all(&all[3..4])), [0usize; 0]);
    assert_eq!(read_heads(dir.path(), |_| true).unwrap().heads.len(), 600);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_with_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "kept").unwrap();
    let error = format!("{:#}", Store::open(&file, "n1").unwrap_err());
    assert!(error.contains("remove the file that is in the way or name another folder"), "{error}");
    let error = format!("{:#}", read_heads(&dir.path().join("1000"), |_| true).unwrap_err());
    assert!(error.starts_with("cannot read the records in "), "{error}");
}

#[test]
fn what_a_killed_writer_left_is_removed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_for_users(dir.path(), "n1").unwrap();
    store.save(&named("1", TODAY)).unwrap();
    let tmp = dir.path().join("1000/tmp");
    for name in ["slurm-1-5@n1.json.gz", "heads@n1.jsonl", "slurm-1-5@n2.json.gz", "mine.txt"] {
        fs::write(tmp.join(name), "half").unwrap();
    }
    Store::open_for_users(dir.path(), "n1").unwrap();
    let mut left = files(dir.path());
    left.retain(|file| file.contains("/tmp/"));
    assert_eq!(left, ["1000/tmp/mine.txt", "1000/tmp/slurm-1-5@n2.json.gz"]);
}

#[test]
fn each_owner_has_a_folder_and_a_record_moves_when_he_comes_to_light() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_for_users(dir.path(), "n1").unwrap();
    let mut record = named("7", TODAY);
    record.facts.set(const { fact("uid") }, None);
    store.save(&record).unwrap();
    let before = name::place(&record);
    record.facts.set(const { fact("uid") }, 1000_u64);
    record.totals.stats.job.job = "7_1".into();
    let path = store.save(&record).unwrap();
    store.remove(&before).unwrap();
    store.remove(&before).unwrap();
    assert_eq!(path, dir.path().join("1000/2026-11-22/slurm-7_1-1795305600000000000@n1.json.gz"));
    assert_eq!(name::Place::parse(&before.to_string()), Some(before));
    assert_eq!(files(dir.path()).len(), 2, "the record and its head: {:?}", files(dir.path()));
    assert!(!dir.path().join("none").exists());
    for none in [
        "none/2026-11-22",
        "/etc/passwd",
        "1/2026-11-22/../x@n1.json.gz",
        "../2026-11-22/a@b.json.gz",
    ] {
        assert_eq!(name::Place::parse(none), None);
    }
}

#[test]
fn heads_do_not_grow_with_each_state_of_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_for_users(dir.path(), "n1").unwrap();
    let heads = dir.path().join("1000/2026-11-22").join(name::heads("n1"));
    let mut records: Vec<_> = (0..40).map(|job| named(&job.to_string(), TODAY + job)).collect();
    let mut most = 0;
    for _ in 0..20 {
        records.iter_mut().for_each(|record| record.add(SECOND, &groups()[..4], &[]));
        let all: Vec<_> = records.iter().collect();
        assert!(store.save_all(&all).iter().all(Result::is_ok));
        most = most.max(fs::read_to_string(&heads).unwrap().lines().count());
    }
    assert!((40..=2 * 40).contains(&most), "{most} lines of 40 records");
    let found = read_heads(dir.path(), |_| true).unwrap();
    let expected: Vec<_> = records.iter().map(Head::from).collect();
    let mut heads: Vec<_> = found.heads.into_iter().map(|(_, head)| head).collect();
    heads.sort_by_key(|head| head.begin);
    assert_eq!(heads, expected);
}

#[test]
fn nothing_read_leads_out_of_the_folder_and_what_is_too_large_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("records"), dir.path().join("outside"));
    let path = Store::open(&outside, "n1").unwrap().save(&named("1", TODAY)).unwrap();
    let store = Store::open(&inside, "n1").unwrap();
    store.save(&named("2", TODAY)).unwrap();
    let day = inside.join("1000/2026-11-22");
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at);
    link(&outside.join("1000"), &inside.join("2000")).unwrap();
    link(path.parent().unwrap(), &inside.join("1000/2026-11-21")).unwrap();
    link(&path, &day.join(path.file_name().unwrap())).unwrap();
    link(&path.with_file_name(name::heads("n1")), &day.join("heads@n3.jsonl")).unwrap();
    // A head that points elsewhere, and one of a file that is none.
    let mut head = Head { file: Some("../../../outside/x@n1.json.gz".into()), ..Head::default() };
    let far = head.line();
    head.file = Some("none-0@n1.json.gz".into());
    fs::write(day.join("heads@n2.jsonl"), format!("{far}{}", head.line())).unwrap();
    let found = read_heads(&inside, |_| true).unwrap();
    let jobs: Vec<_> = found.heads.iter().filter_map(|(_, head)| head.job.clone()).collect();
    assert_eq!(jobs, ["2"]);
    let damaged = found.damaged.join("\n");
    assert_eq!(found.damaged.len(), 4, "{damaged}");
    let links = ["2000", "1000/2026-11-21"].map(|name| inside.join(name).display().to_string());
    for link in links {
        assert!(damaged.contains(&format!("{link}: a link, or no folder at all")), "{damaged}");
    }
    assert!(damaged.contains("heads@n2.jsonl: line 1 is damaged"), "{damaged}");
    assert!(damaged.contains("heads@n3.jsonl: "), "{damaged}");
    assert!(read_of(&day, &head).is_err());
    let (records, skipped) = records_of(&[&inside], "1").unwrap();
    assert_eq!(
        (records.len(), skipped.damaged.len()),
        (0, 3),
        "a link is not followed: {skipped:?}"
    );
    assert_eq!(records_of(&[&inside, &outside], "1").unwrap().0.len(), 1);
    // Its like is read where it is named.
    assert_eq!(read(&day.join(path.file_name().unwrap())).unwrap().job().job, "1");
    let large = fs::File::create(day.join("slurm-2-9@n1.json.gz")).unwrap();
    large.set_len(1 << 40).unwrap();
    let (records, skipped) = records_of(&[&inside], "2").unwrap();
    assert_eq!(records.len(), 1);
    let is_told = skipped.damaged.iter().any(|damaged| damaged.contains("it is longer than"));
    assert!(is_told, "{skipped:?}");
}

#[test]
fn each_field_of_a_head_is_written_and_explained() {
    let mut record = full();
    record.totals.stats.job.step = "0".into();
    record.totals.gaps.add("sched", 1_000_000_000, 3_000_000_000);
    // It began long before it was counted.
    let start_ns = record.facts.number(const { tables::fact("start") }).unwrap_or(0);
    let end_ns = start_ns + 2 * record.totals.elapsed_ns;
    record.facts.set(const { tables::fact("end") }, end_ns);
    record.facts.set(const { tables::fact("counted_from") }, record.timeline.begin_ns());
    // What was charged for a moment nobody saw.
    let memory = record.totals.stats.groups.iter_mut().find(|group| group.is(&tables::MEMORY));
    memory.unwrap().set(tables::Memory::peak_bytes, 1 << 40);
    let line = Head::from(&record).line();
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    let text = docs::record();
    let (_, heads) = text.split_once("## Files").unwrap();
    for (field, ..) in FIELDS {
        assert!(!json[field].is_null(), "{field}");
        assert_eq!(heads.matches(&format!("\n| `{field}` |")).count(), 1, "{field}");
    }
    assert!(line.len() < 1500, "{} bytes: {line}", line.len());
}
