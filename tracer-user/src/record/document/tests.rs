//! The shape of the document.

use serde_json::json;

use super::*;
use crate::model::{
    info::{Exit, JobInfo},
    job,
    point::Origin,
    tables::{BLOCK, Block, CPU, Cpu, FAULT, Fault, Own, SCHED, SELF, Sched},
};

fn record() -> Record {
    let job = job::Job {
        job: "r1".into(),
        manager: "run".into(),
        user: String::new(),
        ..job::Job::default()
    };
    let info = JobInfo { user: "ada".into(), start_wall_ns: 5, ..JobInfo::default() };
    let origin = Origin { host: "n1".into(), ..Origin::default() };
    Record::new(&origin, job, info, 5)
}

fn parsed(record: &Record) -> serde_json::Value {
    let text = document(record).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_run_of_which_nothing_is_known_has_no_measurement() {
    let mut run = record();
    run.totals.stats.groups.push(Group::unknown(&FAULT, vec![]));
    let expected = json!({
        "schema": 1,
        "hosts": ["n1"],
        "job": {"job": "r1", "manager": "run", "user": "ada", "uid": 0, "start": 5},
        "elapsed_ns": 0,
        "intervals": 0,
        "timeline": {"begin": 5, "end": 5, "width_ns": 1_000_000_000, "columns": 1},
    });
    assert_eq!(parsed(&run), expected);
}

#[test]
fn the_document_has_the_shape_of_the_design() {
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::on_cpu_ns, 7);
    sched.set(Sched::forks, 0);
    sched.set_hist(Sched::run_queue_wait_ns, Hist::from_buckets(130, 100, [(0, 3), (1, 1)]));
    sched.set_hist(Sched::sleep_ns, Hist::default());
    let mut block = Group::unknown(&BLOCK, vec!["nvme0n1".into(), "write".into()]);
    block.set(Block::ops, 2);
    let mut cpu = Group::unknown(&CPU, vec![]);
    cpu.set(Cpu::cores_held, 1500);
    let mut own = Group::unknown(&SELF, vec![]);
    own.set(Own::hooks_missing, 1);
    let mut run = record();
    run.add(9, &[sched, block, cpu], &[own]);
    // As if that had been one.
    run.totals.intervals = 1;
    run.totals.exit = Some(Exit { code: None, signal: Some(9) });
    run.totals.notes = vec!["a \"note\"".into()];
    let expected = json!({
        "schema": 1,
        "hosts": ["n1"],
        "job": {"job": "r1", "manager": "run", "user": "ada", "uid": 0, "start": 5},
        "elapsed_ns": 9,
        "exit": {"code": null, "signal": 9},
        "sched": {
            "on_cpu_ns": 7,
            "forks": 0,
            "run_queue_wait_ns": {
                "count": 4, "sum": 130, "min": 0, "max": 100,
                "p50": 63, "p90": 100, "p99": 100, "p999": 100,
                "buckets": [[63, 3], [100, 1]],
            },
            "sleep_ns": {"count": 0, "sum": 0, "buckets": []},
        },
        "block": [{"device": "nvme0n1", "op": "write", "ops": 2}],
        "cpu": {"cores_held": 1.5},
        "self": {"hooks_missing": 1},
        "intervals": 1,
        "peaks": {"cores": 0.0, "disk_bytes_per_s": 0},
        "timeline": {
            "begin": 5, "end": 14, "width_ns": 1_000_000_000, "columns": 1,
            "on_cpu_ns": [7], "run_queue_wait_ns": [130],
            "disk_read_bytes": [0],
        },
        "notes": ["a \"note\""],
    });
    assert_eq!(parsed(&run), expected);
}

/// As of a job that never had a slot.
#[test]
fn what_was_counted_at_no_time_has_no_peak() {
    let mut run = record();
    run.totals.stats.groups.retain(|group| group.is(&CPU));
    (run.totals.intervals, run.totals.elapsed_ns) = (1, 9);
    assert_eq!(parsed(&run)["peaks"], json!({}));
}

#[test]
fn the_order_is_the_tables() {
    let mut run = record();
    let mut fault = Group::unknown(&FAULT, vec![]);
    fault.set(Fault::major, 1);
    fault.set(Fault::minor, 2);
    let mut sched = Group::unknown(&SCHED, vec![]);
    sched.set(Sched::execs, 1);
    run.totals.stats.groups = vec![fault, sched];
    let text = document(&run).unwrap();
    let at = |key: &str| text.find(&format!("\"{key}\":")).unwrap();
    assert!(at("schema") < at("elapsed_ns") && at("sched") < at("fault"));
    assert!(at("minor") < at("major"));
}
