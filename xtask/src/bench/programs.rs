//! Nanoseconds per event of each BPF program, beside an empty program on the same hook that runs
//! at the same time: the kernel's statistics add about 50 ns to each run of either.

use super::watch::Watch;
use super::workloads::{Tracing, Workload};
use crate::bpf::{self, Program};
use crate::process::{say, target_dir};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// The kernel keeps this much of a program's name.
const NAME_BYTES: usize = 15;

/// One program's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Its name as the kernel has it.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// Mean time of a run, statistics' own included.
    pub gross_ns: f64,
    /// The same of an empty program on its hook.
    pub empty_ns: Option<f64>,
}

/// The largest memory that was seen of one jobtrace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of its maps.
    pub map_bytes: u64,
    /// Resident, at its peak.
    pub peak_rss_bytes: u64,
}

/// Runs each workload traced once, with statistics on.
///
/// # Errors
/// When statistics cannot be switched on or a workload fails.
pub fn measure(workloads: &[Workload]) -> Result<(Vec<Cost>, Memory)> {
    let _statistics = bpf::enable_stats()?;
    let empties = Empties::start();
    if let Err(error) = &empties {
        say(format_args!("no empty programs beside ours: {error:#}"));
    }
    let (mut seen, mut memory) = (Vec::new(), Memory::default());
    for workload in workloads {
        say(format_args!("{}: with statistics", workload.name));
        let mut command = workload.command(Tracing::On);
        let watch = Watch::run(command.stdout(Stdio::null()))?;
        for held in watch.programs.values() {
            seen.push(bpf::program(held)?);
        }
        memory.map_bytes = memory.map_bytes.max(watch.map_bytes.values().sum());
        memory.peak_rss_bytes = memory.peak_rss_bytes.max(watch.peak_rss_bytes);
    }
    let empty = match empties {
        Ok(empties) => empties.figures()?,
        Err(_) => BTreeMap::new(),
    };
    Ok((costs(&seen, &empty), memory))
}

/// Sums the runs of programs of one name and lays the empty ones beside; programs that never ran
/// are left out.
fn costs(seen: &[Program], empty: &BTreeMap<String, Program>) -> Vec<Cost> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for program in seen {
        let sum = sums.entry(&program.name).or_default();
        sum.0 += program.run_time_ns;
        sum.1 += program.run_count;
    }
    sums.into_iter()
        .filter_map(|(name, (time_ns, runs))| {
            Some(Cost {
                program: name.to_owned(),
                runs,
                gross_ns: mean(time_ns, runs)?,
                empty_ns: empty.get(name).and_then(|e| mean(e.run_time_ns, e.run_count)),
            })
        })
        .collect()
}

fn mean(time_ns: u64, runs: u64) -> Option<f64> {
    (runs > 0).then(|| time_ns as f64 / runs as f64)
}

/// A running `jobtrace bench-empty`, whose contract is: it attaches, to the hook of each of our
/// programs, a program that does nothing; prints one line `ID NAME` for each, ID being the empty
/// program's and NAME the name of the program of ours whose hook it shares; then the line `ready`;
/// holds them until its standard input ends; and exits with 0.
struct Empties {
    process: Child,
    programs: Vec<(String, OwnedFd)>,
}

impl Empties {
    fn start() -> Result<Self> {
        let mut process = Command::new(target_dir().join("release/jobtrace"))
            .arg("bench-empty")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start `jobtrace bench-empty`")?;
        let stdout = process.stdout.take().context("`jobtrace bench-empty` has no output")?;
        let mut empties = Self { process, programs: Vec::new() };
        for line in BufReader::new(stdout).lines() {
            let line = line.context("read from `jobtrace bench-empty`")?;
            if line == "ready" {
                return Ok(empties);
            }
            let (id, name) =
                parse(&line).with_context(|| format!("`jobtrace bench-empty` printed `{line}`"))?;
            empties.programs.push((name, bpf::hold(id)?));
        }
        anyhow::bail!("`jobtrace bench-empty` ended before it was ready")
    }

    fn figures(&self) -> Result<BTreeMap<String, Program>> {
        self.programs.iter().map(|(name, held)| Ok((name.clone(), bpf::program(held)?))).collect()
    }
}

impl Drop for Empties {
    fn drop(&mut self) {
        // It ends by itself when its input does.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// `12 sched_switch`: the id, and the name as far as the kernel keeps names.
fn parse(line: &str) -> Option<(u32, String)> {
    let (id, name) = line.split_once(' ')?;
    Some((id.parse().ok()?, name.chars().take(NAME_BYTES).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, run_time_ns: u64, run_count: u64) -> Program {
        Program { name: name.to_owned(), run_time_ns, run_count }
    }

    #[test]
    fn workloads_are_summed_and_idle_programs_left_out() {
        let seen = [
            program("sched_switch", 900, 10),
            program("sched_switch", 700, 10),
            program("mark_victim", 0, 0),
            program("block_rq_comple", 1000, 5),
        ];
        let empty = BTreeMap::from([("sched_switch".to_owned(), program("empty", 500, 10))]);
        let costs = costs(&seen, &empty);
        assert_eq!(costs.len(), 2);
        assert_eq!((costs[0].gross_ns, costs[0].empty_ns), (200.0, None));
        assert_eq!((costs[1].gross_ns, costs[1].empty_ns, costs[1].runs), (80.0, Some(50.0), 20));
    }

    #[test]
    fn names_are_cut_as_the_kernel_cuts_them() {
        assert_eq!(parse("7 block_rq_complete"), Some((7, "block_rq_comple".to_owned())));
        assert_eq!(parse("7 sched_switch"), Some((7, "sched_switch".to_owned())));
        assert_eq!(parse("error: no such command"), None);
    }
}
