//! Live ring: why a GPU was idle, against what the workload measured of itself.

use std::process::Command;

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace_tests::{
    account::Report,
    agree::tried_again,
    disk::RamDisk,
    sibling::Sibling,
    traced::{Traced, program},
};
use serde_json::Value;

const ALTERNATE: &str = env!("CARGO_BIN_EXE_alternate");
const TRANSFER: &str = env!("CARGO_BIN_EXE_transfer");
const MIB: u64 = 1 << 20;
/// What may lie between the workload's own figures and ours, of the whole time.
const NEAR: f64 = 0.05;

fn gpu(uuid: &str) -> Gpu {
    Gpu { uuid: uuid.into(), name: "NVIDIA H100 80GB HBM3".into(), ..Gpu::default() }
}

fn number(report: &Report, name: &str) -> f64 {
    report.facts[name] as f64
}

/// Nanoseconds of a part of the only GPU.
fn part(gpu: &Value, field: &str) -> f64 {
    gpu[field].as_u64().unwrap_or_else(|| panic!("no {field} in {gpu}")) as f64
}

/// Whether what jobtrace says of the GPU is what the workload says of it.
fn agrees(gpu: &Value, report: &Report, how: &str) {
    let (busy, idle) = (part(gpu, "busy_ns"), part(gpu, "idle_ns"));
    let (told_busy, told_idle) = (number(report, "busy_ns"), number(report, "idle_ns"));
    // All but the first and the last second or so.
    let (known, whole) = (busy + idle, told_busy + told_idle);
    assert!(known <= whole * 1.05 && known >= whole - 3e9, "{known} of {whole} ns: {gpu}");
    let near = |what: &str, ours: f64, truth: f64| {
        let (ours, truth) = (ours / known, truth / whole);
        println!("{what}: {ours:.4} of the time, the workload says {truth:.4}");
        assert!((ours - truth).abs() <= NEAR, "{what}: {ours} for {truth}: {gpu}");
    };
    near("idle", idle, told_idle);
    let off_cpu = number(report, "blocked_ns");
    let [blocked, network] = if how == "messages" { [0.0, off_cpu] } else { [off_cpu, 0.0] };
    near("idle while blocked", part(gpu, "idle_while_blocked_ns"), blocked);
    near("idle while reading", part(gpu, "idle_while_reading_ns"), blocked);
    let told = part(gpu, "idle_while_network_ns");
    if how == "messages" {
        // Sleep comes last: what cannot be told from a helper's, or lies in another second, is other.
        near("idle asleep", told + part(gpu, "idle_other_ns"), network);
        println!("for the network: {:.4} of the time", told / known);
        assert!(told / known >= network / whole * 0.75, "{told} of {network} ns: {gpu}");
    } else {
        near("idle for the network", told, 0.0);
    }
    let names = ["blocked", "run_queue", "faulting", "on_cpu", "network"];
    let parts = names.map(|name| part(gpu, &format!("idle_while_{name}_ns")));
    let other = part(gpu, "idle_other_ns");
    assert_eq!(parts.iter().sum::<f64>() + other, idle, "{gpu}");
    if how == "spin" {
        // It sleeps at no time. One that sleeps beside the busy GPU is taken to spin, and what it does not do
        // later goes for it: the rest is told apart no further.
        near("other", other, 0.0);
    }
}

#[test]
fn the_idle_time_is_split_as_the_workload_spent_it() {
    for (percent, how) in [("30", "spin"), ("60", "sleep"), ("40", "messages")] {
        tried_again(|| {
            let (disk, other) = (RamDisk::new(64 * MIB), RamDisk::new(64 * MIB));
            let (disk, other) = (disk.path(), other.path());
            let fake = Fake::new(&Scenario {
                gpus: vec![gpu("GPU-other"), gpu("GPU-own")],
                ..Scenario::default()
            });
            let mut start = Command::new(program().unwrap());
            start.env("LD_LIBRARY_PATH", fake.folder());
            let folder = fake.folder().to_str().unwrap();
            // Reads like the job's, none of which is the job's.
            let sibling = Sibling::start(&[TRANSFER, "read", &other, "200", "262144"]);
            let words = [ALTERNATE, folder, "1", &disk, "20", percent, how];
            let traced = Traced::run_by(start, &[], &words);
            sibling.end();
            let report = traced.read_report(&words);
            let gpus = traced.json["gpu"].as_array().cloned().unwrap_or_default();
            let [gpu] = &gpus[..] else { panic!("not one gpu: {}", traced.json) };
            assert_eq!(gpu["uuid"], "GPU-own");
            assert_eq!(gpu["held_ns"], gpu["used_ns"], "nobody gave it: it is held while used");
            agrees(gpu, &report, how);
        });
    }
}
