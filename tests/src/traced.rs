//! A command run under `jobtrace run`, and what jobtrace said of it.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use anyhow::{Context, Result};
use jobtrace::{
    model::{
        group::Group,
        snapshot::Snapshot,
        source::Source,
        tables::{SCHED, Sched},
    },
    replay::Replay,
};
use serde_json::Value;
use tempfile::TempDir;
use tracer_ebpf::handle::{Handle, Number};

use crate::account::Report;

/// The lease of the command in a recording; 0 is the rest of the node.
const LEASE: u32 = 1;

/// The program to test.
///
/// # Errors
/// When `JOBTRACE_BIN` does not name it.
pub fn program() -> Result<PathBuf> {
    let path = std::env::var_os("JOBTRACE_BIN");
    path.map(PathBuf::from).context("JOBTRACE_BIN is not set: run `cargo xtask test --live`")
}

/// A command that was traced to its end.
pub struct Traced {
    /// The `--json` document.
    pub json: Value,
    /// The exit status and what the command wrote.
    pub output: Output,
    /// The snapshots of the `--record` file, cumulative; the first is from before the command.
    pub snapshots: Vec<Snapshot>,
}

impl Traced {
    /// Runs `command` with `options` of jobtrace's besides those for its output. Fails the test with
    /// what jobtrace said where it wrote no numbers.
    pub fn run(options: &[&str], command: &[&str]) -> Self {
        Self::run_by(Command::new(program().unwrap()), options, command)
    }

    /// As [`Self::run`], through `start`: jobtrace, or something that becomes it.
    pub fn run_by(mut start: Command, options: &[&str], command: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let (json, record) = (directory.path().join("json"), directory.path().join("record"));
        start.arg("run").arg("--quiet").arg("--json").arg(&json).arg("--record").arg(&record);
        let output = start.args(options).arg("--").args(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        let json = serde_json::from_str(&text)
            .unwrap_or_else(|_| panic!("jobtrace wrote no numbers, {}: {said}", output.status));
        let mut recording = Replay::open(&record).unwrap();
        let mut snapshots = Vec::new();
        while let Some(snapshot) = recording.snapshot().unwrap() {
            snapshots.push(snapshot);
        }
        Self { json, output, snapshots }
    }

    /// As [`Self::run`] for a workload of ours that must end well, with its report.
    pub fn report(options: &[&str], command: &[&str]) -> (Self, Report) {
        let traced = Self::run(options, command);
        let report = traced.read_report(command);
        (traced, report)
    }

    /// The report of `command`, a workload of ours that must have ended well.
    pub fn read_report(&self, command: &[&str]) -> Report {
        assert!(self.output.status.success(), "{command:?} failed: {:?}", self.output);
        serde_json::from_slice(&self.output.stdout).expect("a workload ends with its report")
    }

    /// A number of the JSON document: `"sched", "on_cpu_ns"`.
    pub fn number(&self, measurement: &str, field: &str) -> u64 {
        let value = self.json[measurement][field].as_u64();
        value.unwrap_or_else(|| panic!("no {measurement}.{field} in {}", self.json))
    }

    /// Count and sum of a histogram.
    pub fn hist(&self, measurement: &str, field: &str) -> (u64, u64) {
        count_and_sum(&self.json[measurement][field])
    }

    /// The values of block I/O on `device` by `op`; null where there was none.
    pub fn block(&self, device: &str, op: &str) -> &Value {
        let all = self.json["block"].as_array().map_or(&[][..], Vec::as_slice);
        let found = all.iter().find(|group| group["device"] == device && group["op"] == op);
        found.unwrap_or(&Value::Null)
    }

    /// Bytes and operations of block I/O on `device` by `op`; zeros where there was none.
    pub fn block_amount(&self, device: &str, op: &str) -> (u64, u64) {
        let group = self.block(device, op);
        let number = |field: &str| group[field].as_u64().unwrap_or(0);
        (number("bytes"), number("ops"))
    }

    /// A number of the network by `family`; 0 where there was no such traffic.
    pub fn net(&self, family: &str, field: &str) -> u64 {
        let all = self.json["net"].as_array().map_or(&[][..], Vec::as_slice);
        let found = all.iter().find(|group| group["family"] == family);
        found.map_or(0, |group| group[field].as_u64().unwrap_or(0))
    }

    /// Growth of a number from the first snapshot to the last, summed over the job, the rest of the
    /// node, and the series that `chosen` picks.
    pub fn node_growth(&self, field: Handle<Number>, chosen: impl Fn(&Group) -> bool) -> u64 {
        let (first, last) = (self.snapshots.first().unwrap(), self.snapshots.last().unwrap());
        let interval = last.since(first);
        let groups = interval.slots.values().flatten();
        let groups = groups.filter(|group| group.is(field.measurement()) && chosen(group));
        groups.filter_map(|group| group.number(field)).sum()
    }

    /// Time and `on_cpu_ns` of the job at each snapshot.
    pub fn on_cpu_over_time(&self) -> Vec<(u64, u64)> {
        let at = |snapshot: &Snapshot| {
            let groups = snapshot.slots.get(&LEASE)?;
            let sched = groups.iter().find(|group| group.is(&SCHED))?;
            Some((snapshot.monotonic_ns, sched.number(Sched::on_cpu_ns)?))
        };
        self.snapshots.iter().filter_map(at).collect()
    }
}

/// Count and sum of a histogram's summary.
pub fn count_and_sum(hist: &Value) -> (u64, u64) {
    let number = |key: &str| hist[key].as_u64().unwrap_or_else(|| panic!("no {key} in {hist}"));
    (number("count"), number("sum"))
}
