//! What `jobtrace usage` adds up is what `jobtrace jobs` lists: of jobs whose ids come again, whose parts lie in several
//! days, that left cores or GPUs idle.

use std::path::Path;

use jobtrace::record::head::Head;
use serde_json::Value;

use super::lists::{BEGIN, DAY, HOUR, job, list, write};

/// Five jobs of two ids, one that begins on one node and is counted on another days later, and one whose use is
/// not known.
fn filled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let hours = |hours: u64| Some(hours * HOUR);
    // Two nodes at once; months later the scheduler begins anew.
    job(path, 7, "ada", "n1", BEGIN, 2);
    job(path, 7, "ada", "n2", BEGIN + 3_000_000_000, 2);
    job(path, 7, "ada", "n1", BEGIN + 90 * DAY, 1);
    job(path, 7, "bob", "n2", BEGIN + 90 * DAY, 1);
    // Requeued after an hour.
    job(path, 8, "ada", "n1", BEGIN + DAY, 1);
    let again = job(path, 8, "ada", "n1", BEGIN + DAY + 2 * HOUR, 3);
    write(path, &Head { gpu_held_ns: hours(12), gpu_busy_ns: hours(3), ..again });
    let late = job(path, 9, "bob", "n1", BEGIN + 2 * DAY, 1);
    job(path, 9, "bob", "n2", BEGIN + 5 * DAY, 1);
    let late = Head { end: None, ..late };
    write(path, &late);
    write(path, &Head { start: late.start, ..job(path, 9, "bob", "n2", BEGIN + 5 * DAY, 1) });
    // More than it held: it takes nothing from what others left.
    let over = job(path, 10, "ada", "n1", BEGIN + 7 * DAY, 1);
    write(path, &Head { core_held_ns: hours(1), on_cpu_ns: hours(2), ..over });
    dir
}

fn rows(command: &str, dir: &Path, arguments: &[&str]) -> Vec<Value> {
    let ended = list(command, dir, &[arguments, &["--json"]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The sum of a column of the CSV that `jobtrace jobs --all --csv` writes.
fn column(csv: &str, name: &str) -> f64 {
    let mut lines = csv.lines();
    let at = lines.next().unwrap().split(',').position(|column| column == name).unwrap();
    let cells = lines.map(|line| line.split(',').nth(at).unwrap().parse::<f64>().unwrap_or(0.0));
    cells.sum()
}

#[test]
fn sums_are_those_over_the_list() {
    let dir = filled();
    let jobs = list("jobs", dir.path(), &["--all", "--csv"]);
    assert_eq!((jobs.status, jobs.stdout.lines().count()), (0, 8), "{}", jobs.stdout);
    for by in ["user", "account", "partition", "node", "hour", "weekday"] {
        let of_rows = rows("usage", dir.path(), &["--by", by]);
        let sum = |name: &str| of_rows.iter().filter_map(|row| row[name].as_f64()).sum::<f64>();
        for (hours, ns) in [
            ("core_hours_held", "core_held_ns"),
            ("core_hours_used", "on_cpu_ns"),
            ("idle_core_hours", "idle_core_ns"),
            ("gpu_hours_held", "gpu_held_ns"),
            ("gpu_hours_used", "gpu_busy_ns"),
            ("idle_gpu_hours", "idle_gpu_ns"),
        ] {
            let listed = column(&jobs.stdout, ns) / HOUR as f64;
            assert!((sum(hours) - listed).abs() < 1e-6, "{by} {hours}: {} {listed}", sum(hours));
            assert!(listed > 0.0, "{hours}");
        }
        if ["user", "account", "partition"].contains(&by) {
            assert_eq!(sum("jobs"), 7.0, "{by}");
        }
    }
}

#[test]
fn an_end_before_the_start_takes_nothing_from_the_sums() {
    let dir = tempfile::tempdir().unwrap();
    let known = job(dir.path(), 1, "ada", "n1", BEGIN, 2);
    write(dir.path(), &Head { end: Some(BEGIN - HOUR), ..known });
    let jobs = &rows("jobs", dir.path(), &[])[0];
    assert_eq!((&jobs["state"], &jobs["elapsed_ns"]), (&"ended".into(), &(2 * HOUR).into()));
    for by in ["user", "node", "hour", "weekday"] {
        let of_rows = rows("usage", dir.path(), &["--by", by]);
        let sum: f64 = of_rows.iter().map(|row| row["core_hours_held"].as_f64().unwrap()).sum();
        assert!((sum - 8.0).abs() < 1e-9, "{by}: {sum}");
        assert!(of_rows.len() <= 2, "{by}: {of_rows:?}");
    }
}

#[test]
fn what_is_not_known_is_empty_in_the_csv_and_null_in_json() {
    let dir = tempfile::tempdir().unwrap();
    job(dir.path(), 1, "ada", "n1", BEGIN, 2);
    let usage = list("usage", dir.path(), &["--csv"]);
    let expected = "key,jobs,core_hours_held,core_hours_used,gpu_hours_held,gpu_hours_used,\
                    memory_gib_hours_held,memory_gib_hours_used,cpu_only_core_hours,unknown,\
                    cpu_only_alone_core_hours,idle_core_hours,idle_gpu_hours,policies,\
                    not_counted_core_hours\n\
                    ada,1,8.000,2.000,,,,,,0,,6.000,,,\n";
    assert_eq!(usage.stdout, expected);
    let row = &rows("usage", dir.path(), &[])[0];
    assert_eq!((&row["core_hours_held"], &row["unknown"]), (&8.0.into(), &0.into()));
    for name in ["gpu_hours_held", "idle_gpu_hours", "memory_gib_hours_held"] {
        assert!(row[name].is_null() && row.get(name).is_some(), "{name}: {row}");
    }
}

#[test]
fn a_job_whose_node_is_gone_does_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let now = jobtrace::base::clock::wall_ns();
    for (id, ago) in [(1, 2 * HOUR), (2, 40 * DAY)] {
        let open = job(dir.path(), id, "ada", "n1", now - ago, 1);
        write(dir.path(), &Head { end: None, ..open });
    }
    let of = |state: &str| rows("jobs", dir.path(), &["--state", state]);
    let (running, lost) = (of("running"), of("lost"));
    assert_eq!((running.len(), &running[0]["job"]), (1, &"1".into()));
    assert_eq!((lost.len(), &lost[0]["job"], &lost[0]["state"]), (1, &"2".into(), &"lost".into()));
    assert!(lost[0]["end"].is_null() && lost[0]["seen"].is_u64(), "{lost:?}");
}

#[test]
fn an_id_that_is_used_again_is_another_job() {
    let dir = filled();
    let jobs = |by: &str| -> Vec<(String, u64)> {
        let of_rows = rows("usage", dir.path(), &["--by", by]);
        let mut jobs: Vec<_> = of_rows
            .iter()
            .map(|row| (row["key"].as_str().unwrap().to_owned(), row["jobs"].as_u64().unwrap()))
            .collect();
        jobs.sort();
        jobs
    };
    let expected = |rows: [(&str, u64); 2]| rows.map(|(key, jobs)| (key.to_owned(), jobs)).to_vec();
    assert_eq!(jobs("user"), expected([("ada", 5), ("bob", 2)]));
    // A job on two nodes is in both rows.
    assert_eq!(jobs("node"), expected([("n1", 6), ("n2", 3)]));
    // Those that began on 2025-11-20, a Thursday, and 90 days later, a Wednesday.
    let by_day = jobs("weekday");
    assert!(by_day.contains(&("Wed".to_owned(), 2)), "{by_day:?}");
}

#[test]
fn idle_gpus_are_in_a_column_of_their_own_and_weigh_in_the_order() {
    let dir = filled();
    let table = list("jobs", dir.path(), &["--sort", "waste", "-n", "2"]);
    let lines: Vec<_> = table.stdout.lines().collect();
    assert!(lines[0].contains("  IDLE CORE H  IDLE GPU H  NAME"), "{}", table.stdout);
    // 9 of its 12 core hours and 9 of its 12 GPU hours.
    assert!(lines[1].starts_with("8 "), "{}", table.stdout);
    assert!(lines[1].contains(" 9.00        9.00  md"), "{}", table.stdout);
    assert!(lines[2].starts_with("7 "), "{}", table.stdout);
    let first = &rows("usage", dir.path(), &["--by", "user"])[0];
    assert_eq!((&first["key"], &first["idle_gpu_hours"]), (&"ada".into(), &9.0.into()));
}

/// Its probes were detached for half of the time: what it did then is neither work nor idle.
#[test]
fn time_in_which_nothing_was_counted_is_not_idle() {
    let dir = tempfile::tempdir().unwrap();
    let known = job(dir.path(), 1, "ada", "n1", BEGIN, 2);
    write(dir.path(), &Head { uncounted_ns: Some(HOUR), ..known });
    let row = &rows("usage", dir.path(), &[])[0];
    let hours = ["core_hours_held", "core_hours_used", "idle_core_hours", "not_counted_core_hours"];
    assert_eq!(hours.map(|name| row[name].as_f64().unwrap()), [4.0, 2.0, 2.0, 4.0]);
    let table = list("usage", dir.path(), &[]).stdout;
    let said =
        "not in these sums: 4.00 core hours held while agents had detached what counts their use";
    assert!(table.contains(said) && table.contains("50 %"), "{table}");
    let row = &rows("jobs", dir.path(), &[])[0];
    assert_eq!(
        (&row["idle_core_ns"], &row["core_held_ns"]),
        (&(2 * HOUR).into(), &(8 * HOUR).into())
    );
    let table = list("jobs", dir.path(), &[]).stdout;
    assert!(table.contains("50 %"), "{table}");
}
