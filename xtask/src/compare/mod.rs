//! `cargo xtask compare`: jobtrace beside what a user would pick instead, in one run on one
//! machine: time in BPF programs for each event, the slowdown of whole workloads, what the tracers
//! take themselves, and whether jobtrace's goals are met by these figures.

mod attached;
mod cases;
pub mod compile_job;
mod events;
mod floor;
mod footprint;
mod goals;
#[cfg(test)]
#[expect(dead_code, reason = "a program of its own; here it is only checked to be good code")]
mod matrix_job;
mod one_liners;
mod peers;
mod report;
mod roll;
mod shares;
mod slowdowns;
mod subjects;

use crate::bench::machine;
use crate::bench::ram_disk::{Pinned, RamDisk};
use crate::bench::workloads::last_cpu;
use crate::packages::{self, Tool};
use crate::process::{cargo, is_root, run as run_command, say, target_dir};
use anyhow::{Context, Result, bail};
use cases::{Case, Kind, Length};
use clap::builder::PossibleValuesParser;
use peers::PEERS;
use report::Report;
use slowdowns::Effort;
use std::fs;
use std::time::{Duration, Instant};
use subjects::{Place, Subject};
use xtask::root;

const EXAMPLES: &str = "\
Examples:
  cargo xtask compare --write                     all of it, into docs/COMPARE.md
  cargo xtask compare --quick                     does everything work here? (figures mean nothing)
  cargo xtask compare --only switch               the switch path alone
  cargo xtask compare --only compute --peers none --pairs 25
  cargo xtask compare --only block --peers biolatency,bpftrace-block

Peers that are not installed are named and skipped. To get them:
  apt-get install bpftrace libbpf-tools
  apt-get install clang libelf-dev && cargo install below
  cargo install --git https://github.com/iopsystems/rezolus rezolus
clang 14 cannot build below, 19 can; of rezolus crates.io has an older version than docs/COMPARE.md.

Needs root and a machine that does nothing else. What it attaches, mounts and makes goes with it.";

/// How long `compile` and `compute` may each go on until the median is known.
const BUDGET: Duration = Duration::from_secs(120);
/// Intervals of the tracers, and how long each is watched, in seconds: a whole number of readings.
const SPANS: [(u64, u64); 2] = [(1, 6), (10, 10)];
const QUICK_SPANS: [(u64, u64); 1] = [(1, 3)];
const COMPILER: &[Tool] = &[Tool { program: "gcc", apt: "gcc", dnf: "gcc", zypper: "gcc" }];

/// Measures jobtrace beside bpftrace, libbpf-tools, rezolus and below and prints it as Markdown.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these kinds of workloads
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "write")]
    only: Vec<Kind>,
    /// Only these peers, or none
    #[arg(long, value_delimiter = ',', conflicts_with = "write", value_parser = peer_ids())]
    peers: Vec<String>,
    /// Runs of each workload with jobtrace, each between two without; peers have half as many
    #[arg(long, value_name = "N", default_value_t = 9)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Short workloads, one pair, one interval: tells whether everything works, not what it costs
    #[arg(long, conflicts_with_all = ["write", "pairs"])]
    quick: bool,
    /// Write the result to docs/COMPARE.md too
    #[arg(long)]
    write: bool,
}

fn peer_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(PEERS.iter().map(|peer| peer.id).chain(["none"]))
}

impl Args {
    fn wants(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.contains(&kind)
    }

    fn wants_peer(&self, id: &str) -> bool {
        self.peers.is_empty() || self.peers.iter().any(|wanted| wanted == id)
    }

    fn effort(&self) -> Effort {
        match self.quick {
            true => Effort { pairs: 1, budget: Duration::ZERO },
            false => Effort { pairs: self.pairs, budget: BUDGET },
        }
    }
}

/// Runs the chore.
///
/// # Errors
/// When we are not root, statistics are on already, or a workload fails without a tracer.
pub fn run(args: &Args) -> Result<()> {
    if !is_root() {
        bail!("tracers load BPF programs: run `sudo env \"PATH=$PATH\" cargo xtask compare`");
    }
    let begin = Instant::now();
    machine::refuse_statistics()?;
    machine::name_strangers()?;
    machine::name_reclaim();
    let mut strangers = machine::strangers()?;
    packages::need(packages::WORKLOADS)?;
    packages::need(COMPILER)?;
    run_command(cargo().args(["build", "--release", "--package", "jobtrace"]))?;
    let scratch = tempfile::Builder::new()
        .prefix("compare-")
        .tempdir_in(target_dir())
        .context("make a scratch folder in the target folder")?;
    let mut report = measure(args, scratch.path())?;
    // Somebody may have switched them on meanwhile, which would have spoilt the pairs.
    machine::refuse_statistics()?;
    strangers.extend(machine::strangers()?);
    report.strangers = strangers.into_iter().collect();
    report.repeat = repeat(args, begin.elapsed());
    let text = report.to_markdown();
    print!("{text}");
    if args.write {
        let file = root().join("docs/COMPARE.md");
        fs::write(&file, text).context("write docs/COMPARE.md")?;
        say("wrote docs/COMPARE.md");
    }
    Ok(())
}

fn measure(args: &Args, scratch: &std::path::Path) -> Result<Report> {
    let disk = RamDisk::new(scratch)?;
    let pinned = Pinned::to(last_cpu()?)?;
    let length = if args.quick { Length::Quick } else { Length::Full };
    let cases = cases::cases(scratch, disk.device(), length, |kind| args.wants(kind))?;
    let place = Place { scratch: scratch.to_owned(), v2: subjects::v2_root()? };
    let wished = Subject::all(|id| args.wants_peer(id))
        .into_iter()
        .filter(|subject| args.wants(Kind::Own) || is_used(subject, &cases))
        .collect();
    let (subjects, roll) = roll::call(&place, wished);
    let rounds = if args.quick { 1 } else { events::ROUNDS };
    let events = events::measure(&place, &cases, &subjects, rounds)?;
    let shares = shares::measure(&place, &cases, rounds)?;
    let mut slow = Vec::new();
    for case in &cases {
        slow.extend(slowdowns::measure(&place, case, &subjects, args.effort())?);
    }
    drop(pinned);
    let footprints = match args.wants(Kind::Own) {
        true if args.quick => footprint::measure(&place, &subjects, &QUICK_SPANS)?,
        true => footprint::measure(&place, &subjects, &SPANS)?,
        false => Vec::new(),
    };
    let by_cgroup: Vec<_> =
        PEERS.iter().filter(|peer| peer.is_run_queue_by_cgroup).map(|peer| peer.id).collect();
    Ok(Report {
        machine: machine::describe()?,
        repeat: String::new(),
        strangers: Vec::new(),
        roll,
        cases: cases.iter().map(|case| (case.id, case.workload.name)).collect(),
        goals: goals::check(&events, &slow, &shares, &by_cgroup),
        events,
        slowdowns: slow,
        shares,
        footprints,
    })
}

fn is_used(subject: &Subject, cases: &[Case]) -> bool {
    cases.iter().any(|case| subject.looks_at(case.kind))
}

fn repeat(args: &Args, elapsed: Duration) -> String {
    let minutes = elapsed.as_secs_f64() / 60.0;
    if args.quick {
        return format!(
            "\n**Quick: it tells what works, its figures mean nothing.** Took {minutes:.1} minutes."
        );
    }
    format!(
        "It took {minutes:.0} minutes with `--pairs {}`. To repeat it, as root on a machine that does \
         nothing else: `cargo xtask compare`.",
        args.pairs
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn lists_choose_kinds_and_peers() {
        let parse = |line: &str| Line::try_parse_from(line.split(' ')).map(|line| line.args);
        let args = parse("compare --only switch,own --peers runqlat").expect("good options");
        assert!(args.wants(Kind::Switch) && args.wants(Kind::Own) && !args.wants(Kind::Block));
        assert!(args.wants_peer("runqlat") && !args.wants_peer("biolatency"));
        let none = parse("compare --peers none").expect("good options");
        assert!(PEERS.iter().all(|peer| !none.wants_peer(peer.id)));
        assert!(parse("compare --peers nobody").is_err());
        assert!(parse("compare --write --quick").is_err(), "quick figures are not published");
        assert!(parse("compare --write --only switch").is_err());
    }
}
