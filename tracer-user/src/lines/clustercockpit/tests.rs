use std::collections::BTreeSet;

use super::*;
use crate::model::{
    job::{Job, JobStats},
    tables::{BLOCK, Block, FAULT, Fault, GPU, Gpu, MEMORY, Memory, Own, SCHED, SELF, Sched},
};

const SECOND: u64 = 1_000_000_000;

fn job(name: &str, groups: Vec<Group>) -> JobStats {
    JobStats { job: Job { job: name.into(), manager: "slurm".into(), ..Job::default() }, groups }
}

fn pending(jobs: Vec<JobStats>) -> Pending {
    Pending { stamp_ns: 1_700_000_010 * SECOND, span_ns: 10 * SECOND, jobs, facts: Vec::new() }
}

fn origin() -> Origin {
    Origin { cluster: "c1".into(), host: "n1".into() }
}

/// Metric, type and id, value.
fn told(pending: &Pending) -> Vec<(String, String, f64)> {
    let value = |point: &Point| match point.fields.as_slice() {
        [(key, FieldValue::Float(value))] if key == "value" => *value,
        other => panic!("{other:?}"),
    };
    let tag = |point: &Point, key: &str| {
        point.tags.iter().find(|(own, _)| own == key).map(|(_, value)| value.clone()).unwrap()
    };
    points(&origin(), pending)
        .iter()
        .map(|point| {
            assert_eq!((tag(point, "cluster"), tag(point, "hostname")), ("c1".into(), "n1".into()));
            let place = format!("{} {}", tag(point, "type"), tag(point, "type-id"));
            (point.measurement.to_string(), place, value(point))
        })
        .collect()
}

fn one(told: &[(String, String, f64)], name: &str) -> Option<f64> {
    let found: Vec<_> = told.iter().filter(|(own, ..)| own == name).collect();
    assert!(found.len() <= 1, "{found:?}");
    found.first().map(|(_, place, value)| {
        assert_eq!(place, "node ");
        *value
    })
}

fn sched(on_cpu_s: u64, waits: &[u64]) -> Group {
    let mut group = Group::unknown(&SCHED, vec![]);
    group.set(Sched::on_cpu_ns, on_cpu_s * SECOND);
    group.set(Sched::switches_voluntary, 300);
    group.set(Sched::switches_involuntary, 20);
    group.set(Sched::forks, 5);
    let mut hist = Hist::default();
    waits.iter().for_each(|wait| hist.record(*wait));
    group.set_hist(Sched::run_queue_wait_ns, hist);
    group
}

#[test]
fn a_nodes_metrics_are_the_sums_of_its_jobs_over_the_interval() {
    let memory = |bytes: u64| {
        let mut group = Group::unknown(&MEMORY, vec![]);
        group.set(Memory::current_bytes, bytes);
        group
    };
    let block = |device: &str, op: &str, ops: u64| {
        let mut group = Group::unknown(&BLOCK, vec![device.into(), op.into()]);
        group.set(Block::ops, ops);
        group.set(Block::bytes, ops * 4096);
        group.set_hist(Block::device_latency_ns, Hist::from_buckets(ops * 1000, 2000, [(16, ops)]));
        group
    };
    let mut fault = Group::unknown(&FAULT, vec![]);
    fault.set(Fault::minor, 70);
    let mut own = Group::unknown(&SELF, vec![]);
    own.set(Own::jobs, 2);
    own.set(Own::overhead_ratio, 2500);
    let told = told(&pending(vec![
        job(
            "1",
            vec![sched(15, &[SECOND, 2 * SECOND]), memory(3 << 30), block("sda", "read", 100)],
        ),
        job("2", vec![sched(4, &[]), memory(1 << 30), block("sdb", "read", 30), fault.clone()]),
        job("_system", vec![sched(1, &[SECOND]), block("sda", "write", 7), own]),
    ]));
    for (name, value) in [
        ("jobtrace_cpu_used", 2.0),
        ("jobtrace_cpu_wait", 0.4),
        ("jobtrace_context_switches", 96.0),
        ("jobtrace_forks", 1.5),
        ("jobtrace_minor_faults", 7.0),
        ("jobtrace_mem_jobs", f64::from(1 << 30) * 4.0),
        ("jobtrace_disk_read_ops", 13.0),
        ("jobtrace_disk_read", 13.0 * 4096.0),
        ("jobtrace_disk_write_ops", 0.7),
        ("jobtrace_jobs", 2.0),
        ("jobtrace_overhead", 0.25),
    ] {
        let found = one(&told, name).unwrap_or_else(|| panic!("no {name}"));
        assert!((found - value).abs() < 1e-9 * value.max(1.0), "{name}: {found}, not {value}");
    }
    let p99 = one(&told, "jobtrace_cpu_wait_p99").unwrap();
    assert!((2.0..2.5).contains(&p99), "{p99}");
    let p99 = one(&told, "jobtrace_disk_latency_p99").unwrap();
    assert!((1e-6..2.1e-6).contains(&p99), "{p99}");
}

#[test]
fn what_is_unknown_writes_no_line_and_zero_is_written() {
    let told_of = told(&pending(vec![job("1", vec![sched(0, &[])])]));
    assert_eq!(one(&told_of, "jobtrace_cpu_used"), Some(0.0));
    assert_eq!(one(&told_of, "jobtrace_cpu_wait"), Some(0.0));
    for name in ["jobtrace_cpu_wait_p99", "jobtrace_blocked", "jobtrace_minor_faults", "acc_power"]
    {
        assert_eq!(one(&told_of, name), None, "{name}");
    }
    assert!(told(&pending(vec![])).is_empty());
    // An interval without a length has no rates.
    let none = Pending { span_ns: 0, ..pending(vec![job("1", vec![sched(1, &[])])]) };
    assert_eq!(one(&told(&none), "jobtrace_cpu_used"), None);
}

#[test]
fn each_gpu_has_its_own_metrics_whose_shares_add_up() {
    let gpu = |index: &str, ppm: u64, milliwatts: u64, bytes: u64| {
        let tags = [index, &format!("GPU-{index}"), "H", "nvidia", ""].map(str::to_owned);
        let mut group = Group::unknown(&GPU, tags.into());
        let hist = |value: u64| {
            let mut hist = Hist::default();
            (0..10).for_each(|_| hist.record(value));
            hist
        };
        group.set_hist(Gpu::utilization_ratio, hist(ppm));
        group.set_hist(Gpu::power_watts, hist(milliwatts));
        group.set(Gpu::memory_used_bytes, bytes);
        group
    };
    let told = told(&pending(vec![
        job("1", vec![gpu("0", 250_000, 400_000, 5), gpu("1", 1_000_000, 700_000, 9)]),
        job("2", vec![gpu("0", 500_000, 400_000, 6)]),
        job("3", vec![gpu("1", 200_000, 700_000, 1)]),
    ]));
    let near = |name: &str, place: &str, value: f64| {
        let found: Vec<_> = told.iter().filter(|(n, p, _)| n == name && p == place).collect();
        assert_eq!(found.len(), 1, "{name} {place}: {told:?}");
        assert!((found[0].2 - value).abs() < 1e-6, "{found:?}, not {value}");
    };
    near("acc_utilization", "accelerator 0", 75.0);
    near("acc_utilization", "accelerator 1", 100.0);
    near("acc_power", "accelerator 0", 400.0);
    near("acc_mem_used", "accelerator 0", 11.0);
    near("acc_mem_used", "accelerator 1", 10.0);
}

#[test]
fn names_are_unique_and_our_own_but_for_those_that_mean_the_same() {
    let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), METRICS.len());
    let well_known: Vec<_> =
        METRICS.iter().filter(|metric| !metric.name.starts_with("jobtrace_")).collect();
    assert!(well_known.iter().all(|metric| metric.is_accelerators()), "{well_known:?}");
}
