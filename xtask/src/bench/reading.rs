//! How long reports, lists and sums of usage take of as many records as a site has, by the commands' own code. No BPF,
//! no root.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use jobtrace::{
    cli::{Cli, Command},
    commands,
    model::{
        group::Group,
        info::JobInfo,
        job::Job,
        point::Origin,
        tables::{Fact, fact},
    },
    record::{
        Record,
        days::{Days, Wanted},
        file,
        head::{Head, HeadIn},
        name,
    },
};
use rustix::time::{ClockId, clock_gettime};
use xtask::{machine, markdown::Table, sections};

use super::record::interval;
use crate::{bench::pairs::spread, process::is_optimised};

const SECOND: u64 = 1_000_000_000;
/// 2026-10-24.
const BEGIN: u64 = 1_792_800_000 * SECOND;
const DAY: u64 = 86_400 * SECOND;
/// Whose records they are.
const OWNER: &str = "1000";
/// Nodes of the long job.
const NODES: u64 = 64;
/// Jobs on nodes, each with a head: 10,000 jobs, and a month of a thousand nodes.
const SOME: u64 = 22_308;
const MANY: u64 = 334_620;
/// Runs that are timed; the median counts.
const ROUNDS: usize = 5;

/// What is timed, what it may take in seconds, and in MiB of memory.
struct Goal {
    what: &'static str,
    arguments: Vec<String>,
    most_s: f64,
    most_mib: Option<u64>,
}

/// Measures and prints it; into docs/SIZING.md where `write`.
///
/// # Errors
/// When a goal is missed, or the document cannot be written.
pub fn run(write: bool) -> Result<()> {
    if !is_optimised()? {
        return Ok(());
    }
    let dir = tempfile::tempdir().context("make a folder")?;
    let (long, some, many) =
        (dir.path().join("long"), dir.path().join("some"), dir.path().join("many"));
    write_job(&long)?;
    write_heads(&some, SOME)?;
    write_heads(&many, MANY)?;
    let mut table = Table::new("what | >took | >of | >CPU time | >memory at most");
    let mut missed = Vec::new();
    for goal in goals(&long, &some, &many) {
        let took = timed(|| once(&goal.arguments))?;
        table.row(
            took.cells(goal.what, &format!("{} s", goal.most_s)).each_ref().map(|cell| cell as _),
        );
        if took.elapsed_s > goal.most_s || goal.most_mib.is_some_and(|most| took.mib > most) {
            missed.push(format!("{}: {:.3} s, {} MiB", goal.what, took.elapsed_s, took.mib));
        }
    }
    for (count, dir) in [("22,308", &some), ("334,620", &many)] {
        let what = format!("their files opened and read alone, {count} heads");
        table.row(timed(|| opened(dir))?.cells(&what, "").each_ref().map(|cell| cell as _));
    }
    let text = format!("{}.\n\n{table}", machine::describe()?);
    print!("{text}");
    if write {
        sections::write("docs/SIZING.md", &[("reading", text)])?;
    }
    ensure!(missed.is_empty(), "goals missed: {}", missed.join("; "));
    Ok(())
}

fn goals(long: &Path, some: &Path, many: &Path) -> Vec<Goal> {
    let goal = |what, words: &[&str], from: &Path, most_s, most_mib| {
        let words = words.iter().copied().chain(["--from"]).map(str::to_owned);
        let arguments = words.chain([from.display().to_string()]).collect();
        Goal { what, arguments, most_s, most_mib }
    };
    vec![
        goal("report of a job, 64 nodes for 24 h", &["report", "4711"], long, 0.1, None),
        goal("jobs, the first page of 22,308 heads", &["jobs"], some, 0.1, None),
        goal("usage by user, 22,308 heads", &["usage"], some, 0.5, None),
        goal("usage by user, 334,620 heads", &["usage"], many, 5.0, Some(200)),
        goal("usage by hour, 334,620 heads", &["usage", "--by", "hour"], many, 5.0, Some(200)),
        goal(
            "jobs of a user, 334,620 heads",
            &["jobs", "--user", "user7", "--all"],
            many,
            5.0,
            Some(200),
        ),
    ]
}

/// What something took: medians, and the peak of memory.
struct Took {
    elapsed_s: f64,
    cpu_s: f64,
    mib: u64,
}

impl Took {
    fn cells(&self, what: &str, most: &str) -> [String; 5] {
        let Self { elapsed_s, cpu_s, mib } = self;
        let s = |s: &f64| format!("{s:.3} s");
        [what.to_owned(), s(elapsed_s), most.to_owned(), s(cpu_s), format!("{mib} MiB")]
    }
}

/// Does `work`, which is to be timed, some times.
fn timed(work: impl Fn() -> Result<()>) -> Result<Took> {
    fs::write("/proc/self/clear_refs", "5").context("reset the peak of memory")?;
    let cpu = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
    };
    let mut all = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (begin, cpu_begin) = (Instant::now(), cpu());
        work()?;
        all.0.push(begin.elapsed().as_secs_f64());
        all.1.push(cpu() - cpu_begin);
    }
    let median = |all: Vec<f64>| spread(all.into_iter()).map_or(0.0, |spread| spread.median);
    Ok(Took { elapsed_s: median(all.0), cpu_s: median(all.1), mib: peak_mib()? })
}

/// Opens and reads all files of heads in `dir`, and parses none.
fn opened(dir: &Path) -> Result<()> {
    let (days, _) = Days::list(&[dir])?;
    let wanted = Wanted { texts: vec!["in no head"], ..Wanted::default() };
    let mut heads = 0_u64;
    let add = |count: &mut u64, _: &Path, _: &HeadIn| {
        *count += 1;
        true
    };
    let skipped = days.fold(&wanted, || 0, add, |count| heads += count);
    ensure!(heads == 0 && skipped == Default::default(), "{heads} heads were parsed: {skipped:?}");
    Ok(())
}

/// Runs the command, without printing.
fn once(arguments: &[String]) -> Result<()> {
    let words = std::iter::once("jobtrace").chain(arguments.iter().map(String::as_str));
    let cli = Cli::try_parse_from(words)?;
    let text = match &cli.command {
        Command::Report(args) => commands::report::text(args, &args.place.open()?)?,
        Command::Jobs(args) => commands::jobs::list(args, &args.place.open()?)?.0,
        Command::Usage(args) => commands::usage::list(args, &args.place.open()?)?,
        _ => bail!("not a command that reads records"),
    };
    ensure!(text.lines().count() > 1, "nothing was read: {text}");
    Ok(())
}

fn peak_mib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.context("no peak of memory")? / 1024)
}

fn write_files(dir: &Path, begin_ns: u64, host: &str, heads: &str) -> Result<()> {
    let folder = dir.join(OWNER).join(name::day(begin_ns));
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name::heads(host)), heads)?)
}

/// A job of which each node knows everything, in 240 columns.
fn write_job(dir: &Path) -> Result<()> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let all: Vec<Vec<Group>> = (0..16).map(|_| interval(&mut random)).collect();
    for node in 0..NODES {
        let host = format!("n{node:04}");
        let job = Job { job: "4711".into(), manager: "slurm".into(), ..Job::default() };
        let origin = Origin { host: host.clone(), ..Origin::default() };
        let mut record = Record::new(&origin, job, JobInfo::default(), BEGIN);
        // Six minutes each: the columns are as many as in intervals of seconds.
        (0..240).for_each(|at| record.add(DAY / 240, &all[(at + node as usize) % all.len()], &[]));
        record.facts.set(const { fact("end") as &Fact }, BEGIN + DAY);
        let file_name = name::place(&record).file;
        write_files(dir, BEGIN, &host, &Head::from(&record).line())?;
        fs::write(dir.join(OWNER).join(name::day(BEGIN)).join(file_name), file::encode(&record)?)?;
    }
    Ok(())
}

/// Heads of `count` jobs on a thousand nodes in a month, of 40 users.
fn write_heads(dir: &Path, count: u64) -> Result<()> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let origin = Origin { host: "n0000".into(), ..Origin::default() };
    let mut record = Record::new(&origin, Job::default(), JobInfo::default(), BEGIN);
    record.add(3600 * SECOND, &interval(&mut random), &[]);
    let of_one = Head::from(&record);
    for day in 0..30 {
        let begin_ns = BEGIN + day * DAY;
        for node in 0..1000 {
            let host = format!("n{node:04}");
            let first = (day * 1000 + node) * count / 30_000;
            let until = (day * 1000 + node + 1) * count / 30_000;
            let head = |id: u64| Head {
                file: Some(format!("slurm-{id}-{begin_ns}@{host}.json.gz")),
                host: Some(host.clone()),
                job: Some(id.to_string()),
                manager: Some("slurm".into()),
                user: Some(format!("user{}", id % 40)),
                begin: Some(begin_ns),
                start: Some(begin_ns + id),
                end: Some(begin_ns + (1 + id % 23) * 3600 * SECOND),
                core_held_ns: Some(64 * 3600 * SECOND),
                on_cpu_ns: Some((1 + id % 64) * 3600 * SECOND),
                // Others compute on the same nodes without one.
                gpu_held_ns: id.is_multiple_of(2).then_some(4 * 3600 * SECOND),
                gpu_busy_ns: id.is_multiple_of(2).then_some((id % 4) * 3600 * SECOND),
                ..of_one.clone()
            };
            let heads: String = (first..until).map(|id| head(id).line()).collect();
            write_files(dir, begin_ns, &host, &heads)?;
        }
    }
    Ok(())
}
