//! `jobtrace jobs` and `jobtrace usage` on heads of many days.

use std::{fs, path::Path};

use jobtrace::record::{head::Head, name};
use serde_json::Value;

use super::program::{Ended, end, jobtrace};

/// Whose folder it is.
pub const OWNER: &str = "1000";
pub const HOUR: u64 = 3_600_000_000_000;
pub const DAY: u64 = 24 * HOUR;
/// 2025-11-20.
pub const BEGIN: u64 = 1_763_596_800_000_000_000;

/// Writes the head of a job of `hours` on `cores` cores, a quarter of them busy.
pub fn job(dir: &Path, id: u64, user: &str, host: &str, begin_ns: u64, hours: u64) -> Head {
    let job = id.to_string();
    let head = Head {
        file: Some(format!("slurm-{job}-{begin_ns}@{host}.json.gz")),
        host: Some(host.into()),
        job: Some(job),
        manager: Some("slurm".into()),
        user: Some(user.into()),
        name: Some("md".into()),
        start: Some(begin_ns),
        begin: Some(begin_ns),
        end: Some(begin_ns + hours * HOUR),
        seen: Some(begin_ns + hours * HOUR),
        elapsed_ns: Some(hours * HOUR),
        core_held_ns: Some(4 * hours * HOUR),
        on_cpu_ns: Some(hours * HOUR),
        ..Head::default()
    };
    write(dir, &head);
    head
}

pub fn write(dir: &Path, head: &Head) {
    let folder = dir.join(OWNER).join(name::day(head.begin.unwrap()));
    fs::create_dir_all(&folder).unwrap();
    let heads = folder.join(name::heads(head.host.as_ref().unwrap()));
    let text = fs::read_to_string(&heads).unwrap_or_default() + &head.line();
    fs::write(heads, text).unwrap();
}

pub fn list(command: &str, dir: &Path, arguments: &[&str]) -> Ended {
    end(jobtrace().arg(command).args(arguments).arg("--from").arg(dir))
}

/// The first column of the CSV.
fn keys(ended: &Ended) -> Vec<String> {
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    ended.stdout.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned()).collect()
}

fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for id in 0..40 {
        let user = if id % 4 == 0 { "bob" } else { "ada" };
        job(dir.path(), 100 + id, user, "n1", BEGIN + id * HOUR, 1 + id % 3);
    }
    // One that begins on the first day on one node and is counted on another on the last.
    job(dir.path(), 999, "eve", "n1", BEGIN, 90);
    let mut late = job(dir.path(), 1, "x", "n2", BEGIN + 5 * DAY, 1);
    late.job = Some("999".into());
    late.user = Some("eve".into());
    late.start = Some(BEGIN);
    late.begin = Some(BEGIN + 3 * DAY);
    late.seen = Some(BEGIN + 90 * HOUR);
    write(dir.path(), &late);
    dir
}

#[test]
fn the_newest_come_first_and_a_job_is_whole_wherever_its_parts_lie() {
    let dir = filled();
    let three = keys(&list("jobs", dir.path(), &["-n", "3", "--csv"]));
    assert_eq!(three, ["1", "139", "138"], "by their start");
    let all = list("jobs", dir.path(), &["--all", "--csv"]);
    assert_eq!(keys(&all).len(), 42);
    let eve = list("jobs", dir.path(), &["-n", "1", "--user", "eve", "--json"]);
    let eve: Value = serde_json::from_str(&eve.stdout).unwrap();
    assert_eq!((&eve["nodes"], &eve["start"]), (&2.into(), &BEGIN.into()));
    assert_eq!(eve["core_held_ns"], 4 * 91 * HOUR);
    assert_eq!(eve["files"].as_array().unwrap().len(), 2);
}

#[test]
fn a_page_says_that_there_is_more_and_what_programs_read_is_whole() {
    let dir = filled();
    let page = list("jobs", dir.path(), &[]);
    assert_eq!((page.status, page.stdout.lines().count()), (0, 31));
    assert_eq!(page.stderr, "jobtrace: there are more jobs: --all lists them, -n N so many\n");
    for (words, lines) in [(&["--csv"][..], 43), (&["--json"], 42), (&["-n", "5", "--csv"], 6)] {
        let ended = list("jobs", dir.path(), words);
        assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (lines, ""), "{words:?}");
    }
    for words in [&["-n", "42"][..], &["--all"], &["--user", "bob"]] {
        assert_eq!(list("jobs", dir.path(), words).stderr, "", "{words:?}");
    }
    let none = list("jobs", dir.path(), &["--manager", "SLURM"]);
    assert_eq!((none.status, none.stdout.lines().count()), (0, 1));
    assert!(none.stderr.starts_with("jobtrace: there is no such job: "), "{}", none.stderr);
}

#[test]
fn jobs_are_filtered_and_sorted() {
    let dir = filled();
    let of = |arguments: &[&str]| {
        let mut ended = list("jobs", dir.path(), &[arguments, &["--csv"]].concat());
        if ended.stdout.lines().count() == 1 {
            ended.stderr.clear();
        }
        keys(&ended)
    };
    assert_eq!(of(&["--user", "bob", "--all"]).len(), 10);
    assert_eq!(of(&["--sort", "waste", "-n", "1"]), ["999"]);
    assert_eq!(of(&["--state", "running", "--all"]).len(), 0);
    assert_eq!(of(&["--manager", "pbs"]).len(), 0);
    assert_eq!(of(&["--since", "1h", "--all"]).len(), 0, "all are long gone");
}

#[test]
fn usage_is_the_sum_of_the_jobs() {
    let dir = filled();
    let json = |by: &str| -> Vec<Value> {
        let ended = list("usage", dir.path(), &["--by", by, "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let jobs = list("jobs", dir.path(), &["--all", "--json"]);
    let held = jobs
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["core_held_ns"].as_u64().unwrap());
    let held = held.sum::<u64>() as f64 / HOUR as f64;
    for by in ["user", "account", "partition", "node", "hour", "weekday"] {
        let rows = json(by);
        let sum: f64 = rows.iter().map(|row| row["core_hours_held"].as_f64().unwrap()).sum();
        assert!((sum - held).abs() < 1e-6, "{by}: {sum} of {held}");
        assert!(rows.iter().all(|row| row["cpu_only_core_hours"] == 0.0), "{by}");
    }
    let users = json("user");
    assert_eq!(users.len(), 4);
    assert_eq!((&users[0]["key"], &users[0]["jobs"]), (&"eve".into(), &1.into()));
    let text = list("usage", dir.path(), &["--by", "user"]);
    assert!(text.stdout.starts_with("USER  JOBS  CORE H  USED  IDLE CORE H"), "{}", text.stdout);
}

/// The agent with `steps = true`: what was held is in the job's record, what was computed in those of its steps.
#[test]
fn steps_hold_nothing_of_their_own_and_take_no_longer_than_their_job() {
    const GIB: u64 = 1 << 30;
    let dir = tempfile::tempdir().unwrap();
    let write_job = |host: &str| {
        let whole = Head {
            on_cpu_ns: Some(0),
            memory_limit_bytes: Some(8 * GIB),
            memory_used_peak_bytes: Some(2 * GIB),
            ..job(dir.path(), 5, "ada", host, BEGIN, 2)
        };
        write(dir.path(), &whole);
        for (step, begin_h) in [("batch", 0), ("0", 0), ("1", 1)] {
            let begin_ns = BEGIN + begin_h * HOUR;
            let hours = if step == "batch" { 2 } else { 1 };
            let head = Head {
                file: Some(format!("slurm-5.{step}-{begin_ns}@{host}.json.gz")),
                step: Some(step.into()),
                start: Some(begin_ns),
                begin: Some(begin_ns),
                end: Some(begin_ns + hours * HOUR),
                seen: Some(begin_ns + hours * HOUR),
                elapsed_ns: Some(hours * HOUR),
                core_held_ns: None,
                on_cpu_ns: Some(if step == "batch" { 0 } else { 2 * HOUR }),
                memory_used_peak_bytes: Some(GIB),
                ..whole.clone()
            };
            write(dir.path(), &head);
        }
    };
    write_job("n1");
    write_job("n2");
    let row = list("jobs", dir.path(), &["--json"]);
    assert_eq!(row.stderr, "");
    let row: Value = serde_json::from_str(&row.stdout).unwrap();
    let known = ["elapsed_ns", "core_held_ns", "on_cpu_ns", "idle_core_ns"].map(|key| &row[key]);
    assert_eq!(known, [2 * HOUR, 16 * HOUR, 8 * HOUR, 8 * HOUR].map(Value::from).each_ref());
    assert_eq!(row["memory_used_peak_bytes"], 2 * GIB);
    // A job that nobody knows the cores of leaves none idle, and its steps take nothing from what others leave.
    let unknown = Head { core_held_ns: None, ..job(dir.path(), 6, "ada", "n1", BEGIN, 2) };
    write(dir.path(), &unknown);
    for (by, rows) in [("user", 1), ("node", 2), ("hour", 2)] {
        let ended = list("usage", dir.path(), &["--by", by, "--json"]);
        let found: Vec<Value> =
            ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.len(), rows, "{}", ended.stdout);
        for (key, expected) in [
            ("core_hours_held", 16.0),
            ("core_hours_used", 8.0),
            ("idle_core_hours", 8.0),
            ("memory_gib_hours_held", 32.0),
            ("memory_gib_hours_used", 8.0),
        ] {
            let sum: f64 = found.iter().map(|row| row[key].as_f64().unwrap()).sum();
            assert!((sum - expected).abs() < 1e-6, "by {by}, {key}: {sum}");
        }
        let unknown = found.iter().map(|row| row["unknown"].as_u64().unwrap()).max();
        assert_eq!(unknown, Some(1), "by {by}");
    }
    // Where the job's own record is lost, its steps tell when it ran.
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (step, begin_h) in [("0", 0), ("1", 1), ("2", 1)] {
        let mut head = job(elsewhere.path(), 7, "ada", "n1", BEGIN + begin_h * HOUR, 1);
        (head.step, head.core_held_ns) = (Some(step.into()), None);
        head.start = Some(BEGIN);
        head.file = Some(format!("slurm-7.{step}-{}@n1.json.gz", head.begin.unwrap()));
        write(dir.path(), &head);
    }
    let row = list("jobs", dir.path(), &["--json"]);
    let row: Value = serde_json::from_str(row.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&row["elapsed_ns"], &row["idle_core_ns"]), (&(2 * HOUR).into(), &0.into()));
    let usage = list("usage", dir.path(), &["--json"]);
    let usage: Value = serde_json::from_str(&usage.stdout).unwrap();
    assert_eq!((&usage["unknown"], &usage["core_hours_used"]), (&3.into(), &Value::Null));
}

#[test]
fn names_reach_neither_the_terminal_nor_the_spreadsheet_as_commands() {
    let dir = tempfile::tempdir().unwrap();
    let mut head = job(dir.path(), 1, "ada", "n1", BEGIN, 1);
    head.name = Some("=cmd|' /C calc'!A0\x1b[31m".into());
    write(dir.path(), &head);
    let csv = list("jobs", dir.path(), &["--csv"]);
    assert!(csv.stdout.contains(",'=cmd|"), "{}", csv.stdout);
    let table = list("jobs", dir.path(), &[]);
    assert!(!table.stdout.contains('\x1b'), "{:?}", table.stdout);
}

#[test]
fn damaged_heads_are_told_and_the_rest_is_listed() {
    let dir = filled();
    let folder = dir.path().join(OWNER).join(name::day(BEGIN));
    fs::write(folder.join(name::heads("n9")), "no head\n").unwrap();
    let ended = list("jobs", dir.path(), &["--all", "--csv"]);
    assert_eq!(ended.status, 1);
    assert!(ended.stderr.contains("line 1 is damaged"), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 43);
    let nowhere = list("usage", &dir.path().join("x"), &[]);
    assert_eq!((nowhere.status, nowhere.stdout.as_str()), (2, ""));
    assert!(nowhere.stderr.contains("name their folder with --from"), "{}", nowhere.stderr);
}

#[test]
fn each_folder_is_named_by_an_option_of_its_own() {
    let (one, other) = (filled(), tempfile::tempdir().unwrap());
    job(other.path(), 7, "zoe", "n1", BEGIN, 1);
    let mut command = jobtrace();
    command.args(["jobs", "--all", "--csv", "--from"]).arg(one.path());
    assert_eq!(keys(&end(command.arg("--from").arg(other.path()))).len(), 43);
    let greedy = end(jobtrace().args(["usage", "--from"]).args([one.path(), other.path()]));
    assert_eq!((greedy.status, greedy.stdout.as_str()), (2, ""));
    assert!(greedy.stderr.contains("unexpected argument"), "{}", greedy.stderr);
}

#[test]
fn of_what_was_seen_lately_the_earlier_parts_are_shown_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let now = jobtrace::base::clock::wall_ns();
    let begin = now - 9 * DAY;
    // Counted for a day, then without an agent for a week; it still runs.
    let mut first = job(dir.path(), 7, "ada", "n1", begin, 24);
    first.end = None;
    write(dir.path(), &first);
    let mut second = job(dir.path(), 7, "ada", "n1", now - 2 * HOUR, 2);
    (second.start, second.end) = (Some(begin), None);
    write(dir.path(), &second);
    job(dir.path(), 8, "ada", "n1", begin, 1);
    // Nothing has changed there since.
    let old = dir.path().join(OWNER).join(name::day(begin));
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(begin + DAY);
    fs::File::open(&old).unwrap().set_modified(then).unwrap();
    let ended = list("jobs", dir.path(), &["--since", "3h", "--all", "--json"]);
    let rows: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [row] = &rows[..] else { panic!("{}", ended.stdout) };
    assert_eq!((&row["job"], &row["elapsed_ns"]), (&"7".into(), &(26 * HOUR).into()));
    let usage = list("usage", dir.path(), &["--since", "3h", "--json"]);
    let usage: Value = serde_json::from_str(&usage.stdout).unwrap();
    assert_eq!(usage["core_hours_held"], 8.0, "of what was seen since, and no more");
}
