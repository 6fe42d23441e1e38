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

/// Fewer runs than this say more of the machine than of the program.
pub const ENOUGH_RUNS: u64 = 5_000;

/// One program's cost under one workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// What ran.
    pub workload: &'static str,
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
    let figures = || empties.as_ref().map_or(Ok(BTreeMap::new()), Empties::figures);
    let (mut all, mut memory) = (Vec::new(), Memory::default());
    for workload in workloads {
        say(format_args!("{}: with statistics", workload.name));
        let before = figures()?;
        let mut command = workload.command(Tracing::On);
        let watch = Watch::run(command.stdout(Stdio::null()))?;
        let after = figures()?;
        let ours = watch.programs.values().map(bpf::program).collect::<Result<Vec<_>>>()?;
        all.extend(costs(workload.name, &ours, &before, &after));
        memory.map_bytes = memory.map_bytes.max(watch.map_bytes.values().sum());
        memory.peak_rss_bytes = memory.peak_rss_bytes.max(watch.peak_rss_bytes);
    }
    Ok((all, memory))
}

/// Lays beside each of our programs that ran often enough what the empty one on its hook took in
/// the same time.
fn costs(
    workload: &'static str,
    ours: &[Program],
    before: &BTreeMap<String, Program>,
    after: &BTreeMap<String, Program>,
) -> Vec<Cost> {
    let empty_ns = |name: &str| {
        let (before, after) = (before.get(name)?, after.get(name)?);
        mean(after.run_time_ns - before.run_time_ns, after.run_count - before.run_count)
    };
    let cost = |program: &Program| {
        Some(Cost {
            workload,
            program: program.name.clone(),
            runs: program.run_count,
            gross_ns: mean(program.run_time_ns, program.run_count)?,
            empty_ns: empty_ns(&program.name),
        })
    };
    // A look at jobtrace between its fork and its exec shows what we hold ourselves.
    let often = ours
        .iter()
        .filter(|program| program.run_count >= ENOUGH_RUNS && !program.name.starts_with("empty_"));
    let mut costs: Vec<_> = often.filter_map(cost).collect();
    costs.sort_by(|a, b| a.program.cmp(&b.program));
    costs
}

/// Nanoseconds of a run.
pub fn mean(time_ns: u64, runs: u64) -> Option<f64> {
    (runs > 0).then(|| time_ns as f64 / runs as f64)
}

/// A running `jobtrace bench-empty`, whose contract is: it attaches, to the hook of each of our
/// programs, a program that does nothing; prints one line `ID NAME` for each, ID being the empty
/// program's and NAME the name of the program of ours whose hook it shares; then the line `ready`;
/// holds them until its standard input ends; and exits with 0.
pub struct Empties {
    process: Child,
    programs: Vec<(String, OwnedFd)>,
}

impl Empties {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot attach them.
    pub fn start() -> Result<Self> {
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

    /// What each has run so far, by the name of ours on its hook.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn figures(&self) -> Result<BTreeMap<String, Program>> {
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
        Program { name: name.to_owned(), run_time_ns, run_count, ..Program::default() }
    }

    #[test]
    fn programs_that_ran_seldom_are_left_out_and_empty_ones_count_the_same_time() {
        let ours = [program("sched_switch", 900_000, 10_000), program("mark_victim", 900, 9)];
        let table = |time_ns, count| {
            BTreeMap::from([("sched_switch".to_owned(), program("empty", time_ns, count))])
        };
        let found = costs("w", &ours, &table(7_000, 100), &table(507_000, 10_100));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].gross_ns, found[0].empty_ns), (90.0, Some(50.0)));
        let alone = costs("w", &ours, &BTreeMap::new(), &BTreeMap::new());
        assert_eq!(alone[0].empty_ns, None);
    }

    #[test]
    fn names_are_cut_as_the_kernel_cuts_them() {
        assert_eq!(parse("7 block_rq_complete"), Some((7, "block_rq_comple".to_owned())));
        assert_eq!(parse("7 sched_switch"), Some((7, "sched_switch".to_owned())));
        assert_eq!(parse("error: no such command"), None);
    }
}
