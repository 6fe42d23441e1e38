//! Records of jobs: whole, on the disk when a job has ended, and the sum of its lines to the unit.

use std::time::Duration;

use jobtrace::{
    model::{group::Value, info::Facts, tables::fact},
    record::{Record, head::Head, running},
};
use jobtrace_tests::{
    agent::{Agent, Points},
    agree::Agreement,
    rig::wait_for,
};
use tracer_ebpf::table::Kind;

use super::{life::quiet, shaped::Shaped};

const MIXED: &str = env!("CARGO_BIN_EXE_mixed");
const TEST_JOB: &str = env!("CARGO_BIN_EXE_test_job");

fn of<'a>(records: &'a [Record], job: &str) -> &'a Record {
    let found: Vec<_> = records.iter().filter(|record| record.job().job == job).collect();
    assert_eq!(found.len(), 1, "records of {job}: {found:?}");
    found[0]
}

/// Every counter and every sum of a histogram of the record's against the lines. Gives how many are not zero.
fn agrees(agree: &mut Agreement, points: &Points, record: &Record) -> usize {
    let (job, mut some) = (record.job().job.clone(), 0);
    for group in &record.totals.stats.groups {
        let tags: Vec<_> = group.own_tags().collect();
        let series = points.only(|point| tags.iter().all(|(key, value)| point.tag(key) == value));
        for (field, value) in group.fields() {
            let (name, total) = match (field.kind, value) {
                (Kind::Counter, Some(Value::Number(total))) => (field.name.to_owned(), *total),
                (_, Some(Value::Histogram(hist))) => (format!("{}_sum", field.name), hist.sum),
                _ => continue,
            };
            if field.unit.per_public() > 1 {
                continue;
            }
            let lines = series.sum(&job, group.measurement.name, &name);
            agree.exact(&format!("{job} {} {tags:?} {name}", group.measurement.name), lines, total);
            some += usize::from(total > 0);
        }
    }
    some
}

#[test]
fn a_record_is_the_sum_of_the_jobs_lines() {
    let (hierarchy, controller) = quiet();
    let shaped = Shaped::make(&[controller]);
    let disk = jobtrace_tests::disk::RamDisk::new(8 << 20);
    let pages = disk.path();
    let agent = Agent::start(&format!("hierarchy = {hierarchy:?}")).unwrap();
    let [mixed, forks, runs] = [9_401, 9_402, 9_403].map(|job| shaped.job(0, job, "step_0"));
    let mut sleeper = runs.command("sleep").arg("600").spawn().unwrap();
    mixed.run(&[MIXED, "2", &pages, &pages]);
    forks.run(&[TEST_JOB, "forks", "41"]);
    [9_401, 9_402].into_iter().for_each(|job| shaped.remove_job(0, job));
    // Without the agent's end: a job's own is enough.
    let heads =
        || agent.heads().ok().filter(|heads| heads.contains("9401") && heads.contains("9402"));
    wait_for("the records of two jobs", Duration::from_secs(20), heads).unwrap();
    assert!(
        !agent.heads().unwrap().contains("9403"),
        "it runs, for less than a quarter of an hour"
    );
    let seen = running::heads(&agent.socket()).unwrap();
    let seen: Vec<_> = seen.iter().filter(|head| head.job.as_deref() == Some("9403")).collect();
    assert!(seen.len() == 1 && seen[0].end.is_none(), "{seen:?}");
    let now = running::records(&agent.socket(), "9403").unwrap();
    assert_eq!(Head::from(&now[0]).file, seen[0].file);
    assert!(running::records(&agent.socket(), "9401").unwrap().is_empty(), "it has ended");
    let (points, records) = agent.stop_with_records().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    let mut agree = Agreement::new();
    let [mixed, forks, runs] = ["9401", "9402", "9403"].map(|job| of(&records, job));
    assert!(agrees(&mut agree, &points, mixed) > 10);
    assert!(agrees(&mut agree, &points, forks) > 5);
    agrees(&mut agree, &points, runs);
    agree.end();
    let facts = |record: &Record| -> Facts { record.facts.clone() };
    let end = const { fact("end") };
    assert!(facts(mixed).has(end) && facts(forks).has(end) && !facts(runs).has(end));
    let on_cpu: u64 = mixed.timeline.columns().filter_map(|column| column[0]).sum();
    assert_eq!(on_cpu, points.sum("9401", "job_sched", "on_cpu_ns"));
    let elapsed_s = mixed.totals.elapsed_ns as f64 / 1e9;
    assert!((1.9..6.0).contains(&elapsed_s), "{elapsed_s} s of 2 and a little");
    let told = |record: &Record| record.facts.number(const { fact("start") });
    assert_eq!(told(mixed), points.fact("9401", "start").and_then(|start| start.parse().ok()));
    assert!(records.iter().all(|record| record.job().job != "_system"));
}
