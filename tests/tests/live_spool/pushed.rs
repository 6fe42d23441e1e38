//! `jobtrace push` into a real InfluxDB: an agent's spool and a run's folder, refusals included.

use std::{fs, path::Path, process::Command};

use jobtrace_tests::{
    daemon::files::{self, Points, Value},
    rig::influx::Influx,
    traced::{Traced, program},
};
use serde_json::Value as Json;
use tempfile::TempDir;

use super::influx::assert_stored;

/// A program that has ended: its status and its words.
fn push(spool: &Path, options: &[&str]) -> (i32, String) {
    let mut command = Command::new(program().unwrap());
    command.arg("push").arg("--spool").arg(spool).args(options);
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A copy of a folder's files, to be sent.
fn copy(outbox: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in files::list(outbox).unwrap() {
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    copy
}

/// Sends a copy of all files, which must all be taken.
pub fn push_copy(outbox: &Path, options: &[&str]) {
    let copy = copy(outbox);
    let (status, words) = push(copy.path(), options);
    assert_eq!(status, 0, "{words}");
    assert_eq!(files::list(copy.path()).unwrap().len(), 0, "{words}");
}

/// Sum over all points of an integer field of `measurement`, as InfluxDB adds it up.
fn sum(influx: &Influx, measurement: &str, field: &str) -> Option<u64> {
    let rows = influx.query("jobtrace", &format!("SELECT sum(\"{field}\") FROM \"{measurement}\""));
    rows.unwrap().first()?["sum"].as_u64()
}

/// The numbers of a JSON object that InfluxDB must add up to, as fields: counters, and of histograms
/// count and sum.
fn sums(group: &Json, additive: &[&str]) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for (name, value) in group.as_object().unwrap() {
        match value {
            Json::Number(number) if additive.contains(&name.as_str()) => {
                found.push((name.clone(), number.as_u64().unwrap()));
            }
            Json::Object(hist) => {
                for part in ["count", "sum"] {
                    found.push((format!("{name}_{part}"), hist[part].as_u64().unwrap()));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_sums_in_influxdb_are_those_of_the_runs_json() {
    let influx = Influx::start().unwrap();
    let out = tempfile::tempdir().unwrap();
    let test_job = env!("CARGO_BIN_EXE_test_job");
    let options = ["--out", out.path().to_str().unwrap(), "--interval", "200ms"];
    let run = Traced::run(&options, &[test_job, "crowd", "3", "1500"]);
    let points = files::points(out.path()).unwrap();
    let kept = copy(out.path());
    // Nobody has made the database yet.
    let url = influx.url();
    let (status, words) = push(out.path(), &["--url", &url]);
    assert_eq!(status, 2, "{words}");
    for part in ["404", "database not found", "CREATE DATABASE", "all files stay"] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(files::points(out.path()).unwrap(), points);
    influx.create_db("jobtrace").unwrap();
    for (times, spool) in [out.path(), kept.path()].into_iter().enumerate() {
        let (status, words) = push(spool, &["--url", &url, "--max-body", "64KiB"]);
        assert_eq!(status, 0, "{words}");
        assert_stored(&influx, "jobtrace", &points, "by push");
        let sched = [
            "on_cpu_ns",
            "switches_voluntary",
            "switches_involuntary",
            "migrations",
            "forks",
            "execs",
        ];
        let mut seen = 0;
        for (measurement, additive) in
            [("sched", &sched[..]), ("fault", &["minor", "major", "oom_kills", "minor_sampled"])]
        {
            for (field, total) in sums(&run.json[measurement], additive) {
                let stored = sum(&influx, &format!("job_{measurement}"), &field);
                // What never happened has no line.
                assert_eq!(
                    stored.unwrap_or(0),
                    total,
                    "{measurement} {field}, sent {times} times more"
                );
                seen += usize::from(total > 0);
            }
        }
        assert!(seen > 10, "{seen} sums that are not zero");
        // The buckets too.
        let hist = run.json["sched"]["on_cpu_slice_ns"]["count"].as_u64();
        let of_metric = "SELECT sum(n) FROM job_hist WHERE metric = 'sched.on_cpu_slice_ns'";
        let rows = influx.query("jobtrace", of_metric).unwrap();
        assert_eq!(rows[0]["sum"].as_u64(), hist);
    }
    let block = run.json["block"].as_array().map_or(0, Vec::len);
    eprintln!("{} points of a run, {block} rows of block I/O", points.len());
}

#[test]
fn what_a_real_server_refuses_is_kept_with_its_words() {
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    // Somebody had a float there.
    let other = b"job_sched,host=x forks=1.5 1700000000000000000\n";
    assert_eq!(influx.write_lp("jobtrace", other, false).unwrap().status, 204);
    let spool = tempfile::tempdir().unwrap();
    let time = 1_700_000_000_000_000_000_u64;
    let good = format!("job_cpu,host=x tasks=1i {time}\n");
    fs::write(spool.path().join("bad.lp"), format!("{good}job_sched,host=x forks=1i {time}\n"))
        .unwrap();
    fs::write(spool.path().join("good.lp"), good.replace("tasks=1i", "throttled_ns=2i")).unwrap();
    fs::write(spool.path().join("no.lp"), format!("this is no line\njob_cpu n=3i {time}\n"))
        .unwrap();
    let (status, words) = push(spool.path(), &["--url", &influx.url()]);
    assert_eq!(status, 1, "{words}");
    let failed = spool.path().join("failed");
    for (name, why) in [("bad.lp", "field type conflict"), ("no.lp", "unable to parse")] {
        assert!(failed.join(name).exists(), "{name}: {words}");
        let reason = fs::read_to_string(failed.join(format!("{name}.reason"))).unwrap();
        assert!(reason.contains(why) && words.contains(why), "{reason}");
    }
    assert!(!spool.path().join("good.lp").exists());
    let row = &influx.query("jobtrace", "SELECT tasks, throttled_ns, n FROM job_cpu").unwrap();
    let has = |field: &str, value: u64| row.iter().any(|row| row[field].as_u64() == Some(value));
    assert!(
        has("tasks", 1) && has("throttled_ns", 2) && has("n", 3),
        "good lines are stored: {row:?}"
    );
}

#[test]
fn a_retention_policy_that_nobody_made_costs_no_file() {
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    let spool = tempfile::tempdir().unwrap();
    fs::write(spool.path().join("a.lp"), "job_cpu tasks=1i 1700000000000000000\n").unwrap();
    let options = ["--url", &influx.url(), "--retention-policy", "nobodys", "--retries", "1"];
    let (status, words) = push(spool.path(), &options);
    assert!(words.contains("retention policy not found"), "{words}");
    assert_eq!((status, spool.path().join("a.lp").exists()), (1, true), "{words}");
}

/// Only what comes back as a number, for a database that stores no words.
pub fn numbers(points: &Points) -> Vec<(&files::Series, &str, f64)> {
    let mut found = Vec::new();
    for (series, fields) in points {
        for (name, value) in fields {
            match value {
                Value::Integer(number) => found.push((series, name.as_str(), *number as f64)),
                Value::Float(number) => found.push((series, name.as_str(), *number)),
                Value::Text(_) => {}
            }
        }
    }
    found
}
