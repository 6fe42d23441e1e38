//! Live ring: the same question to the agent's records and to a real InfluxDB with its lines has the same answer.

mod software;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
    time::{SystemTime, UNIX_EPOCH},
};

use jobtrace_tests::{
    daemon::{
        PATIENCE, Setup,
        files::{self, Value},
        site::Site,
    },
    rig::{influx::Influx, wait_for},
    traced::program,
};
use serde_json::Value as Json;

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(program().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command.args(words).output().unwrap()
}

/// What a command prints that must end well.
fn printed(words: &[&str], place: &[&str]) -> String {
    let output = run(&[words, place].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?} {place:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn push(outbox: &Path, url: &str) {
    let spool = outbox.parent().unwrap().to_str().unwrap();
    let output = run(&["push", "--spool", spool, "--url", url]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether all of `jobs` have been told of as ended so often.
fn have_ended(setup: &Setup, jobs: &[String], times: usize) -> bool {
    let points = files::points(&setup.outbox()).unwrap();
    let ends = |job: &String| {
        let of_job = points.iter().filter(|((_, tags, _), _)| tags.get("job") == Some(job));
        of_job.filter(|(_, fields)| matches!(fields.get("end"), Some(Value::Integer(_)))).count()
    };
    jobs.iter().all(|job| ends(job) >= times)
}

/// Lines of CSV with its head, those of `jobs` alone, in their order.
fn of_jobs(csv: &str, jobs: &[String]) -> Vec<String> {
    let is_own = |line: &&str| jobs.iter().any(|job| line.starts_with(&format!("{job},")));
    let mut lines: Vec<_> = csv.lines().skip(1).filter(is_own).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The cells of the rows of CSV that begin with `key`, by the names of the columns.
fn cells(csv: &str, key: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let rows = lines.filter(|line| line.split(',').next() == Some(key));
    let cells = |line: &str| {
        let cells = line.split(',').map(str::to_owned);
        names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    };
    rows.map(cells).collect()
}

/// Counters and sums of histograms of two records, which must be the same; gives how many are not zero.
fn assert_same_totals(one: &Json, other: &Json, path: &str) -> usize {
    match (one, other) {
        (Json::Object(of_one), Json::Object(_)) if of_one.contains_key("buckets") => {
            for part in ["count", "sum", "max"] {
                assert_eq!(one[part], other[part], "{path} {part}");
            }
            // Percentiles of lines are upper bounds.
            for part in ["p50", "p99"] {
                let bound = |of: &Json| of[part].as_u64().unwrap_or(0);
                assert!(bound(other) >= bound(one), "{path} {part}: {one} {other}");
            }
            1
        }
        (Json::Object(of_one), Json::Object(_)) => {
            let parts = of_one.iter().map(|(key, value)| {
                assert_same_totals(value, &other[key], &format!("{path} {key}"))
            });
            parts.sum()
        }
        (Json::Array(of_one), _) => {
            // What did nothing all the time has no line.
            let none = Vec::new();
            let of_other = other.as_array().unwrap_or(&none);
            let both = |list: &[Json]| -> Vec<_> {
                list.iter().filter(|of| is_some(of)).cloned().collect()
            };
            let (of_one, of_other) = (both(of_one), both(of_other));
            assert_eq!(of_one.len(), of_other.len(), "{path}: {of_one:?} {of_other:?}");
            let both = of_one.iter().zip(&of_other);
            both.map(|(one, other)| assert_same_totals(one, other, path)).sum()
        }
        (Json::Object(_), Json::Null) => {
            assert!(!is_some(one), "{path}: {one}");
            0
        }
        _ => {
            assert_eq!(one, other, "{path}");
            usize::from(one.as_f64().is_some_and(|number| number > 0.0))
        }
    }
}

/// Whether any number in it is more than nothing.
fn is_some(value: &Json) -> bool {
    match value {
        Json::Object(parts) => parts.values().any(is_some),
        Json::Array(parts) => parts.iter().any(is_some),
        value => value.as_f64().is_some_and(|number| number > 0.0),
    }
}

#[test]
fn jobs_usage_and_report_are_the_same_of_records_and_of_lines() {
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    let url = influx.url();
    let (setup, site) = (Setup::new("cluster = \"it's\"\n").unwrap(), Site::new().unwrap());
    let mut agent = setup.start().unwrap();
    let account = format!("physics{}", site.job(0));
    for (number, name, words) in [
        (0, "spin", &["crowd", "2", "1500"][..]),
        (1, "test_job", &["forks", "300"]),
        (2, "spin", &["crowd", "1", "2500"]),
    ] {
        let mut command = site.command(number, name, words).unwrap();
        command.env("SLURM_JOB_ACCOUNT", &account).env("SLURM_JOB_NAME", "it's \"this\", a\\b");
        assert!(command.status().unwrap().success());
    }
    let jobs: Vec<_> = (0..3).map(|number| site.job(number)).collect();
    (0..3).for_each(|number| site.end(number).unwrap());
    wait_for("the jobs' ends are told", PATIENCE, || have_ended(&setup, &jobs, 1).then_some(()))
        .unwrap();
    agent.end_well().unwrap();
    push(&setup.outbox(), &url);
    let records = setup.records();
    let (folders, database) = (["--from", records.to_str().unwrap()], ["--influx", &url]);

    let both = |words: &[&str]| (printed(words, &folders), printed(words, &database));
    for words in [&["jobs", "--all", "--csv"][..], &["jobs", "--csv", "--since", "1h"]] {
        let (of_records, of_lines) = both(words);
        let (of_records, of_lines) = (of_jobs(&of_records, &jobs), of_jobs(&of_lines, &jobs));
        assert_eq!((of_records.len(), &of_records), (3, &of_lines));
    }
    let (of_records, of_lines) = both(&["jobs", "--account", &account]);
    assert_eq!(of_records, of_lines);
    assert_eq!(of_lines.lines().count(), 4, "{of_lines}");
    for by in ["account", "node", "hour"] {
        let (of_records, of_lines) = both(&["usage", "--by", by, "--csv"]);
        if by == "account" {
            let [of_records, of_lines] =
                [&of_records, &of_lines].map(|csv| cells(csv, &account).pop().unwrap());
            assert_eq!(of_records, of_lines);
            assert_eq!(of_lines["jobs"], "3", "{of_lines:?}");
        }
        assert_eq!(of_lines.lines().count(), of_records.lines().count(), "{by}: {of_lines}");
    }
    for job in &jobs {
        let (of_records, of_lines) = both(&["report", job, "--json"]);
        let [of_records, of_lines]: [Json; 2] =
            [of_records, of_lines].map(|text| serde_json::from_str(&text).unwrap());
        let (one, other) = (&of_records["record"], &of_lines["record"]);
        let mut some = 0;
        for key in ["sched", "fault", "block", "wait", "net", "memory", "cpu", "elapsed_ns", "job"]
        {
            some += assert_same_totals(&one[key], &other[key], key);
        }
        assert!(some > 20, "{some}");
        let on_cpu = |record: &Json| -> u64 {
            let course = record["timeline"]["on_cpu_ns"].as_array().unwrap();
            course.iter().filter_map(Json::as_u64).sum()
        };
        assert_eq!(on_cpu(one), on_cpu(other));
        let shares = |report: &Json| -> Vec<_> {
            let bars = report["used"].as_array().unwrap().iter();
            bars.map(|bar| (bar["name"].clone(), bar["share"].clone())).collect()
        };
        assert_eq!(shares(&of_records), shares(&of_lines));
        assert_eq!(of_records["time"], of_lines["time"]);
        let said = of_lines["unseen"].to_string();
        assert!(said.contains("percentiles are upper bounds"), "{said}");
    }
    // By name, which is a field: the last one of three.
    let found = printed(&["report", "it's \"this\", a\\b", "--json"], &database);
    assert_eq!(serde_json::from_str::<Json>(&found).unwrap()["who"]["job"], jobs[2].as_str());
}

#[test]
fn a_job_that_runs_and_one_that_an_agent_before_counted_are_whole() {
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    // The second agent begins in the interval in which the first one ended.
    let (setup, site) = (Setup::new("interval = \"5s\"").unwrap(), Site::new().unwrap());
    let folder = setup.records();
    let (folders, url) = (["--from", folder.to_str().unwrap()], influx.url());
    let database = ["--influx", &url];
    let job = |number| site.job(number);
    let mut agent = setup.start().unwrap();
    let told = |number: u32| {
        let points = files::points(&setup.outbox()).unwrap();
        files::jobs(&points, "job_sched").contains(&job(number)).then_some(())
    };
    // Over two agents; and one that nobody saw end.
    let mut long = site.spawn(1, "spin", &["crowd", "1", "60000"]).unwrap();
    let mut runs = site.spawn(2, "spin", &["crowd", "1", "60000"]).unwrap();
    site.fork(3, 30).unwrap();
    site.end(3).unwrap();
    wait_for("both jobs are counted", PATIENCE, || told(1).and(told(2))).unwrap();
    wait_for("an end is told", PATIENCE, || have_ended(&setup, &[job(3)], 1).then_some(()))
        .unwrap();
    agent.end_well().unwrap();
    let mut agent = setup.start().unwrap();
    // The id is used again.
    site.fork(3, 200).unwrap();
    site.end(3).unwrap();
    let counted_anew = || {
        let points = files::points(&setup.outbox()).unwrap();
        let is_it = |((_, tags, _), fields): (&files::Series, &BTreeMap<String, Value>)| {
            tags.get("job") == Some(&job(1)) && fields.contains_key("counted_from")
        };
        points.iter().any(is_it).then_some(())
    };
    wait_for("the next agent counts the job", PATIENCE, counted_anew).unwrap();
    site.end(1).unwrap();
    long.wait().unwrap();
    let ended = || have_ended(&setup, &[job(1)], 1) && have_ended(&setup, &[job(3)], 2);
    wait_for("the ends are told", PATIENCE, || ended().then_some(())).unwrap();
    agent.end_well().unwrap();
    runs.kill().unwrap();
    runs.wait().unwrap();
    push(&setup.outbox(), &url);

    let [of_records, of_lines] =
        [&folders, &database].map(|place| printed(&["jobs", "--all", "--csv"], &place[..]));
    for (number, state) in [(1, "ended"), (2, "running"), (3, "ended")] {
        let shown = |csv: &str| -> Vec<_> {
            let columns = ["job", "state", "nodes", "on_cpu_ns", "core_held_ns", "net_bytes"];
            let rows = cells(csv, &job(number)).into_iter();
            rows.map(|row| columns.map(|name| row[name].clone())).collect()
        };
        let (of_records, of_lines) = (shown(&of_records), shown(&of_lines));
        assert_eq!(of_records, of_lines, "job {number}");
        assert_eq!(of_lines.len(), 1);
        assert!(of_lines.iter().all(|row| row[1] == state), "{of_lines:?}");
    }
    for number in [1, 2] {
        let [one, other] = [&folders, &database].map(|place| {
            let text = printed(&["report", &job(number), "--json"], &place[..]);
            serde_json::from_str::<Json>(&text).unwrap()["record"]["sched"].clone()
        });
        assert!(assert_same_totals(&one, &other, "sched") > 10);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_cure() {
    let mut influx = Influx::start_as(|folder, port, rpc| {
        let text = jobtrace_tests::rig::influx::configuration(folder, port, rpc);
        text.replace("[http]\n", "[http]\n  auth-enabled = true\n")
    })
    .unwrap();
    influx.log_in("root", "secret").unwrap();
    influx.create_db("jobtrace").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [right, wrong] = ["secret", "guess"].map(|password| {
        let file = folder.path().join(password);
        fs::write(&file, password).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let url = influx.url();
    let tls = url.replace("http://", "https://");
    let user =
        |file: &str| ["--influx-user", "root", "--influx-password-file", file].map(str::to_owned);
    let none = || -> [String; 0] { [] };
    let refused = |url: &str, more: &[String], parts: &[&str]| {
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        for words in [&["jobs"][..], &["usage"], &["report", "7"]] {
            let output = run(&[words, &["--influx", url], &more[..]].concat());
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            for part in parts {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    };
    refused(&url, &none(), &["answers 401", "--influx-token-file"]);
    refused(&url, &user(&wrong), &["answers 401", "--influx-password-file"]);
    let mut elsewhere = user(&right).to_vec();
    elsewhere.extend(["--influx-database", "nowhere"].map(str::to_owned));
    refused(&url, &elsewhere, &["database not found: nowhere", "--influx-database"]);
    refused(&tls, &none(), &["no TLS connection"]);
    refused("http://127.0.0.1:9", &none(), &["cannot ask http://127.0.0.1:9"]);
    refused(&format!("{url}/query"), &none(), &["includes the path"]);
    let mut hurried = user(&right).to_vec();
    hurried.extend(["--influx-timeout", "1ns"].map(str::to_owned));
    refused(&url, &hurried, &["--influx-timeout"]);

    // An empty database has no jobs, which is no error; of one job that is asked for it is.
    let place: Vec<_> = user(&right).into_iter().collect();
    let place: Vec<_> =
        ["--influx", &url].into_iter().chain(place.iter().map(String::as_str)).collect();
    assert_eq!(printed(&["jobs", "--csv"], &place).lines().count(), 1);
    let output = run(&[&["report", "7"], &place[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no line of job 7"), "{said}");
}

/// No slot was free for it, or no agent counted yet: its line tells when it ran, and nothing else.
#[test]
fn a_job_that_nobody_counted_is_listed() {
    let influx = Influx::start().unwrap();
    influx.create_db("jobtrace").unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let (start, end) = (now - 9_000_000_000, now - 4_000_000_000);
    let line = format!(
        "job_info,host=node1,job=8080,manager=slurm name=\"short\",start={start}i,end={end}i,elapsed_ns=0i {end}\n"
    );
    influx.write_lp("jobtrace", line.as_bytes(), false).unwrap();
    let url = influx.url();
    let csv = printed(&["jobs", "--all", "--csv"], &["--influx", &url]);
    let rows = cells(&csv, "8080");
    assert_eq!(rows.len(), 1, "{csv}");
    assert_eq!((&*rows[0]["state"], &*rows[0]["on_cpu_ns"]), ("ended", ""), "{csv}");
    assert!(printed(&["report", "8080"], &["--influx", &url]).contains("short"));
}
