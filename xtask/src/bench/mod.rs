//! `cargo xtask bench`: what tracing costs, measured so that another machine's table can be laid
//! beside: nanoseconds per event of each BPF program beside an empty one on the same hook, the
//! slowdown of three kinds of workload in interleaved pairs, memory, and what an agent takes of a node
//! full of jobs.

pub mod agent;
mod beside;
pub mod fault_loop;
pub mod jobs;
pub mod machine;
mod merge;
pub mod pairs;
mod programs;
pub mod ram_disk;
mod reclaim;
mod report;
mod sizes;
mod stack;
pub mod watch;
pub mod workloads;

use crate::packages;
use crate::process::{cargo, is_root, run as run_command, say, target_dir};
use anyhow::{Context, Result, bail};
use pairs::Pairs;
use report::{Report, Slowdown};
use std::fs;
use std::path::PathBuf;
use workloads::{Kind, Tracing, Workload};
use xtask::root;

const OVERHEAD: &str = "docs/OVERHEAD.md";

/// Measures what tracing costs and prints it as Markdown; needs root and a quiet machine.
#[derive(clap::Args)]
pub struct Args {
    /// Pairs of runs, one traced and one not, of each workload
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Only the workloads of this kind, or only the agent
    #[arg(long, value_enum)]
    only: Option<Kind>,
    /// Instead of all else, this checkout's programs beside those of another jobtrace, on the same events
    #[arg(long, value_name = "JOBTRACE", conflicts_with = "write")]
    beside: Option<PathBuf>,
    /// Write the result to docs/OVERHEAD.md too, with --only agent that part of it; with --only merge to
    /// docs/SIZING.md
    #[arg(long)]
    write: bool,
}

/// Runs the chore.
///
/// # Errors
/// When we are not root, statistics are on already, or a workload or jobtrace fails.
pub fn run(args: &Args) -> Result<()> {
    if args.only == Some(Kind::Merge) {
        return merge::run(args.write);
    }
    if args.write && args.only.is_some_and(|only| only != Kind::Agent) {
        bail!("docs/OVERHEAD.md holds all of it: leave out --only or --write");
    }
    if !is_root() {
        bail!("benchmarks load BPF programs: run `sudo env \"PATH=$PATH\" cargo xtask bench`");
    }
    machine::refuse_statistics()?;
    machine::name_strangers()?;
    machine::name_reclaim();
    run_command(cargo().args(["build", "--release", "--package", "jobtrace"]))?;
    let scratch = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(target_dir())
        .context("make a scratch folder in the target folder")?;
    if args.only == Some(Kind::Sizes) {
        print!("{}", sizes::table(&sizes::measure()?));
        return Ok(());
    }
    if args.only == Some(Kind::Agent) {
        let costs = agent::measure(scratch.path())?;
        print!("{}", report::agent_table(&costs));
        return if args.write { write_agent(&costs) } else { Ok(()) };
    }
    packages::need(packages::WORKLOADS)?;
    let disk = ram_disk::RamDisk::new(scratch.path())?;
    let _pinned = ram_disk::Pinned::to(workloads::last_cpu()?)?;
    let workloads: Vec<Workload> = workloads::all(scratch.path(), disk.device())?
        .into_iter()
        .filter_map(|(kind, workload)| {
            args.only.is_none_or(|only| only == kind).then_some(workload)
        })
        .collect();

    if let Some(other) = &args.beside {
        print!("{}", beside::table(&workloads, other, args.pairs)?);
        return Ok(());
    }
    let (programs, memory) = programs::measure(&workloads)?;
    let slowdowns =
        workloads.iter().map(|w| slowdown(w, args.pairs)).collect::<Result<Vec<_>>>()?;
    let agent = match args.only {
        None => agent::measure(scratch.path())?,
        Some(_) => Vec::new(),
    };
    // Somebody may have switched them on meanwhile, which would have spoilt the pairs.
    machine::refuse_statistics()?;
    let (machine, sizes) = (machine::describe()?, sizes::measure()?);
    let report = Report { machine, programs, slowdowns, memory, sizes, agent };
    let text = report.to_markdown();
    print!("{text}");
    if args.write { write(&text) } else { Ok(()) }
}

fn write(text: &str) -> Result<()> {
    fs::write(root().join(OVERHEAD), text).with_context(|| format!("write {OVERHEAD}"))?;
    say(format_args!("wrote {OVERHEAD}"));
    Ok(())
}

fn write_agent(costs: &[agent::Cost]) -> Result<()> {
    let old = fs::read_to_string(root().join(OVERHEAD));
    let old = old.with_context(|| format!("read {OVERHEAD}"))?;
    let new = report::with_agent(&old, &machine::describe()?, costs);
    let why = || format!("{OVERHEAD} is of another machine or day: leave out --only");
    write(&new.with_context(why)?)
}

fn slowdown(workload: &Workload, count: u32) -> Result<Slowdown> {
    say(format_args!("{}: {count} pairs", workload.name));
    let mut pairs = Pairs::default();
    for traced_first in pairs::orders(count) {
        let (off, on) = if traced_first {
            let on = workload.run(Tracing::On)?;
            (workload.run(Tracing::Off)?, on)
        } else {
            (workload.run(Tracing::Off)?, workload.run(Tracing::On)?)
        };
        pairs.add(off, on);
    }
    Ok(Slowdown { workload: workload.name.to_owned(), pairs })
}
