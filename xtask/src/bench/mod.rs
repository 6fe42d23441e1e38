//! `cargo xtask bench`: what tracing costs, by one list of tracers (empty programs, jobtrace, with `--peers`
//! what a user would pick instead) under one list of workloads: time in BPF programs for each event, the
//! slowdown of whole workloads, what the tracers take themselves, and whether jobtrace's goals are met.

mod agent_goals;
mod attached;
mod beside;
mod census;
mod census_hooks;
mod census_job;
#[cfg(test)]
#[expect(dead_code, reason = "a program of its own; here it is only checked to be good code")]
mod census_loads;
mod census_python;
mod darshan;
mod empties;
mod events;
mod footprint;
mod found;
mod goals;
mod io;
mod io_jobs;
#[cfg(test)]
#[expect(dead_code, reason = "a program of its own; here it is only checked to be good code")]
mod io_loads;
mod io_memory;
mod io_told;
mod jobs;
mod late;
#[cfg(test)]
#[expect(dead_code, reason = "a program of its own; here it is only checked to be good code")]
mod loads;
mod merge;
mod one_liners;
mod pairs;
mod peers;
mod quiet;
mod reading;
mod record;
mod report;
mod roll;
mod shares;
mod sizes;
mod slowdowns;
mod state;
mod tracers;
mod watch;
mod workers;
mod workload;
mod workloads;

use crate::packages;
use crate::process::{build_jobtrace, is_root, target_dir};
use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use peers::{PEERS, RUN_QUEUE_BY_CGROUP_IDS};
use report::Report;
use slowdowns::Effort;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tracers::{Place, Tracer};
use workers::Pinned;
use workload::Kind;
use workloads::Site;
use xtask::{machine, ram_disk::RamDisk, sections};

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench --write                       jobtrace alone, into docs/OVERHEAD.md
  cargo xtask bench --peers --write               beside bpftrace and others, into docs/COMPARE.md
  cargo xtask bench --peers --quick               does everything work here? (figures mean nothing)
  cargo xtask bench --only switch                 the switch path alone
  cargo xtask bench --only compute --pairs 25
  cargo xtask bench --only agent --write          what the agent takes itself, into docs/OVERHEAD.md
  cargo xtask bench --only late --write           the agent beside busy jobs, into docs/OVERHEAD.md
  cargo xtask bench --only block --peers biolatency,bpftrace-block
  cargo xtask bench --only switch --beside FILE   another build of jobtrace, on the same events
  cargo xtask bench --only census --write         what `run --software` takes, into docs/OVERHEAD.md
  cargo xtask bench --only io --write             ns that `run --io` adds to a call, into docs/OVERHEAD.md
  cargo xtask bench --only merge --write          adding up banks, into docs/SIZING.md
  cargo xtask bench --only record --write         the record of a job, into docs/SIZING.md
  cargo xtask bench --only report --write         reports, lists and usage, into docs/SIZING.md

Peers that are not installed are named and skipped. To get them:
  apt-get install bpftrace libbpf-tools
  apt-get install clang libelf-dev && cargo install below
  cargo install --git https://github.com/iopsystems/rezolus rezolus
clang 14 cannot build below, 19 can; of rezolus crates.io has an older version than docs/COMPARE.md.

Needs root and a machine that does nothing else. What it attaches, mounts and makes goes with it.";

/// Runs with statistics on, of which the median counts; peers have half as many.
const ROUNDS: usize = 5;
/// How long `compile` and `compute` may each go on until the median is known.
const BUDGET: Duration = Duration::from_secs(120);

/// Measures what tracing costs and prints it as Markdown.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only these kinds of workloads, or only what has none
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Beside these peers too, beside all where none is named
    #[arg(long, num_args = 0.., value_name = "IDS", value_delimiter = ',', value_parser = peer_ids())]
    peers: Option<Vec<String>>,
    /// Instead of all else, this checkout's programs beside those of another jobtrace, on the same events
    #[arg(long, value_name = "JOBTRACE", conflicts_with_all = ["write", "peers"])]
    beside: Option<PathBuf>,
    /// Runs of each workload with jobtrace, each between two without; peers have half as many
    #[arg(long, value_name = "N", default_value = "9")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Short workloads, one pair, one interval: tells whether everything works, not what it costs
    #[arg(long, conflicts_with_all = ["write", "pairs"])]
    quick: bool,
    /// Write the result to docs/OVERHEAD.md too, to docs/COMPARE.md with --peers; to docs/SIZING.md with
    /// --only merge, record or report
    #[arg(long)]
    write: bool,
}

fn peer_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(PEERS.iter().map(|peer| peer.id))
}

impl Args {
    fn wants(&self, kind: Kind) -> bool {
        match kind {
            // Tables of their own, most of them without root: only when they are asked for.
            Kind::Census | Kind::Io | Kind::Late | Kind::Merge | Kind::Record | Kind::Report => {
                self.only == [kind]
            }
            kind => self.only.is_empty() || self.only.contains(&kind),
        }
    }

    fn wants_peer(&self, id: &str) -> bool {
        let peers = self.peers.as_ref();
        peers.is_some_and(|named| named.is_empty() || named.iter().any(|wanted| wanted == id))
    }

    fn document(&self) -> &'static str {
        if self.peers.is_some() { "docs/COMPARE.md" } else { "docs/OVERHEAD.md" }
    }

    /// Figures of one document are of one machine and day; the agent's part names its own.
    fn refuse_to_write_parts(&self) -> Result<()> {
        let has_own = self.only == [Kind::Agent] && self.peers.is_none();
        let are_parts = !self.only.is_empty() || self.peers.as_ref().is_some_and(|p| !p.is_empty());
        if self.write && are_parts && !has_own {
            bail!("{} holds all of it: leave out --write or what narrows it", self.document());
        }
        Ok(())
    }
}

/// Runs the chore.
///
/// # Errors
/// When we are not root, statistics are on already, or a workload fails without a tracer.
pub fn run(args: &Args) -> Result<()> {
    if args.wants(Kind::Merge) {
        return merge::run(args.write);
    }
    if args.wants(Kind::Census) {
        return census::run(args.write);
    }
    if args.wants(Kind::Io) {
        return io::run(args.write);
    }
    if args.wants(Kind::Report) {
        return reading::run(args.write);
    }
    if args.wants(Kind::Record) {
        return record::run(args.write);
    }
    if !args.wants(Kind::Late) {
        args.refuse_to_write_parts()?;
    }
    if !is_root() {
        bail!("tracers load BPF programs: run `sudo env \"PATH=$PATH\" cargo xtask bench`");
    }
    let begin = Instant::now();
    quiet::refuse_statistics()?;
    quiet::name_disturbances()?;
    packages::need(packages::WORKLOADS)?;
    packages::need(&[packages::GCC])?;
    build_jobtrace(true)?;
    let scratch = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(target_dir())
        .context("make a scratch folder in the target folder")?;
    if args.wants(Kind::Late) {
        return late::run(&Place::new(scratch.path())?, args.write);
    }
    let mut strangers = quiet::strangers()?;
    let Some(mut report) = measure(args, scratch.path())? else { return Ok(()) };
    // Somebody may have switched them on meanwhile, which would have spoilt the pairs.
    quiet::refuse_statistics()?;
    strangers.extend(quiet::strangers()?);
    report.machine = format!("{}.\n", machine::describe()?);
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    report.machine += &match args.quick {
        true => "**Quick: it tells what works, its figures mean nothing.**\n".to_owned(),
        false => format!("It took {minutes:.0} minutes with `--pairs {}`.\n", args.pairs),
    };
    if !strangers.is_empty() {
        let names = strangers.into_iter().collect::<Vec<_>>().join(", ");
        report.machine +=
            &format!("\n**Others' BPF programs were attached and are in all figures:** {names}.\n");
    }
    let sections = report.sections();
    sections.iter().for_each(|(name, text)| println!("## {name}\n{text}"));
    if args.write { sections::write(args.document(), &sections) } else { Ok(()) }
}

/// `None` where a table of its own was printed.
fn measure(args: &Args, scratch: &Path) -> Result<Option<Report>> {
    let disk = RamDisk::create(workloads::FILE_BYTES)
        .context("make a loop device in memory: root and the module loop are needed")?;
    let device = PathBuf::from(disk.path());
    let pinned = Pinned::to(workloads::last_cpu()?)?;
    let site = Site { scratch, device: &device, quick: args.quick };
    let workloads = site.workloads(|kind| args.wants(kind))?;
    let pairs = if args.quick { 1 } else { args.pairs.into() };
    if let Some(other) = &args.beside {
        print!("{}", beside::table(&workloads, other, pairs)?);
        return Ok(None);
    }
    let place = Place::new(scratch)?;
    let is_used = |tracer: &Tracer| {
        args.wants(Kind::Agent) || workloads.iter().any(|load| tracer.looks_at(load.kind))
    };
    let wished = Tracer::all(|id| args.wants_peer(id)).into_iter().filter(is_used).collect();
    let (tracers, roll) = roll::call(&place, wished);
    let rounds = if args.quick { 1 } else { ROUNDS };
    let mut report = Report { roll, ..Report::default() };
    report.workloads = workloads.iter().map(|load| (load.id, load.name)).collect();
    (report.events, report.memory) = events::measure(&place, &workloads, &tracers, rounds)?;
    report.shares = shares::measure(&place, &workloads, rounds)?;
    let budget = if args.quick { Duration::ZERO } else { BUDGET };
    for workload in &workloads {
        let effort = Effort { pairs, budget };
        report.slowdowns.extend(slowdowns::measure(&place, workload, &tracers, effort)?);
    }
    drop(pinned);
    if args.wants(Kind::Agent) {
        report.footprints = footprint::measure(&place, &tracers, args.quick)?;
    }
    if args.wants(Kind::Sizes) {
        report.sizes = Some(sizes::table()?);
    }
    let (events, slowdowns, shares) = (&report.events, &report.slowdowns, &report.shares);
    report.goals = goals::check(events, slowdowns, shares, &RUN_QUEUE_BY_CGROUP_IDS);
    report.agent_goals = agent_goals::check(&report.footprints);
    Ok(Some(report))
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
        let args = parse("bench --only switch,agent --peers runqlat").expect("good options");
        assert!(args.wants(Kind::Switch) && args.wants(Kind::Agent) && !args.wants(Kind::Block));
        assert!(args.wants_peer("runqlat") && !args.wants_peer("biolatency"));
        let all = parse("bench --peers --pairs 3").expect("good options");
        assert!(PEERS.iter().all(|peer| all.wants_peer(peer.id)));
        let ours = parse("bench --write").expect("good options");
        assert!(PEERS.iter().all(|peer| !ours.wants_peer(peer.id)) && !ours.wants(Kind::Merge));
        let agent = parse("bench --write --only agent").expect("good options");
        assert!(agent.refuse_to_write_parts().is_ok(), "a part with its own machine and day");
        assert!(parse("bench --peers nobody").is_err());
        assert!(parse("bench --write --quick").is_err(), "quick figures are not published");
        for part in [
            "bench --write --only switch",
            "bench --write --peers runqlat",
            "bench --write --only agent --peers",
            "bench --write --only agent,switch",
        ] {
            assert!(parse(part).expect("good options").refuse_to_write_parts().is_err(), "{part}");
        }
    }
}
