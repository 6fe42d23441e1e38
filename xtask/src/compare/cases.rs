//! The workloads that every tracer is measured on.

use super::compile_job::source;
use crate::bench::workloads::{Printed, Workload, device_reads, faults, pipe, words};
use crate::process::run;
use anyhow::{Context, Result};
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::root;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// Context switches: two processes and a pipe, and 80 threads
    Switch,
    /// Minor page faults
    Fault,
    /// 4 KiB O_DIRECT reads of a device in RAM
    Block,
    /// gcc -O2
    Compile,
    /// Matrix products on all CPUs, with a barrier after each
    Compute,
    /// No workload: what the tracers themselves take of a node full of jobs
    Own,
}

/// One workload and how closely to look at it.
pub struct Case {
    /// What the goals call it.
    pub id: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// How to run it.
    pub workload: Workload,
    /// How many events of its kind a run has at least, if they dominate it, so that the kernel's
    /// statistics say something of it.
    pub events: Option<u64>,
    /// Whether pairs go on until the median slowdown is known to a fraction of the 0.3 % at stake.
    pub is_precise: bool,
}

/// How long each run takes, roughly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// About a second.
    Full,
    /// As short as it runs at all.
    Quick,
}

/// Those of the wished kinds; `device` is read.
///
/// # Errors
/// When a job cannot be prepared: no compiler, no room.
pub fn cases(
    scratch: &Path,
    device: &Path,
    length: Length,
    wished: impl Fn(Kind) -> bool,
) -> Result<Vec<Case>> {
    let scale = |full: u32, quick| if length == Length::Full { full } else { quick };
    let mut cases = Vec::new();
    if wished(Kind::Switch) {
        let round_trips = scale(250_000, 20_000);
        // Each is two switches; some kernels withhold a few from BPF.
        let switches = u64::from(round_trips) * 2 * 95 / 100;
        cases.push(Case::of_events("pipe", Kind::Switch, switches, pipe(round_trips)?));
        cases.push(Case::of_events("threads", Kind::Switch, 80, threads(scale(1_000, 100))));
    }
    if wished(Kind::Fault) {
        let rounds = scale(100, 10);
        let pages = u64::from(rounds) * 4096;
        cases.push(Case::of_events("faults", Kind::Fault, pages, faults(rounds)?));
    }
    if wished(Kind::Block) {
        let name = "fio, 4 KiB O_DIRECT reads of a loop device in RAM, one CPU";
        cases.push(Case::of_events("block", Kind::Block, 1_000, device_reads(name, device, 1)?));
    }
    if wished(Kind::Compile) {
        cases.push(Case::precise("compile", Kind::Compile, compile(scratch, scale(120, 30))?));
    }
    if wished(Kind::Compute) {
        cases.push(Case::precise("compute", Kind::Compute, compute(scratch, scale(60, 10))?));
    }
    Ok(cases)
}

impl Case {
    fn of_events(id: &'static str, kind: Kind, events: u64, workload: Workload) -> Self {
        Self { id, kind, workload, events: Some(events), is_precise: false }
    }

    fn precise(id: &'static str, kind: Kind, workload: Workload) -> Self {
        Self { id, kind, workload, events: None, is_precise: true }
    }
}

/// Two groups of 20 senders and 20 receivers; each sender sends to each receiver of its group.
fn threads(loops: u32) -> Workload {
    let command =
        words(&format!("perf bench --format=simple sched messaging -t -p -g 2 -l {loops}"));
    let printed = Printed::SecondsOf { operations: 2.0 * 20.0 * 20.0 * f64::from(loops) };
    Workload::new("`perf bench sched messaging`, 80 threads", command, printed)
}

fn compile(scratch: &Path, functions: u32) -> Result<Workload> {
    let file = scratch.join("job.c");
    fs::write(&file, source(functions)).context("write the C file to compile")?;
    let mut command: Vec<OsString> =
        vec![env::current_exe().context("find xtask's own program")?.into()];
    command.extend(words("timed -- gcc -O2 -c -o"));
    command.extend([scratch.join("job.o").into(), file.into()]);
    Ok(Workload::new("`gcc -O2` of a generated file", command, Printed::Nanoseconds))
}

fn compute(scratch: &Path, steps: u32) -> Result<Workload> {
    let program = scratch.join("matrix_job");
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2024", "-O", "-o"]).arg(&program);
    run(rustc.arg(root().join("xtask/src/compare/matrix_job.rs")))?;
    let set = rustix::thread::sched_getaffinity(None).context("read which CPUs we may use")?;
    let mut command: Vec<OsString> = vec![program.into(), steps.to_string().into()];
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    command.extend(usable.map(|cpu| cpu.to_string().into()));
    let name = "matrix products, a thread pinned to each CPU, a barrier after each";
    Ok(Workload::new(name, command, Printed::Nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::workloads::Tracing;

    #[test]
    fn the_compute_job_computes_on_the_cpus_that_it_is_given() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let job = compute(scratch.path(), 2).expect("rustc is here: it built this");
        let output = job.command(Tracing::Off).output().expect("run it");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let step_ns: f64 = printed.trim().parse().expect("a number");
        // 2 x 256^3 floating-point operations: not in less than 10 us, not in more than 10 s.
        assert!((1e4..1e10).contains(&step_ns), "{step_ns}");
    }
}
