//! What seeing which software runs (`jobtrace run --software`) takes for an execution, an end of a process and a read of a
//! file's first page, of the job and of anybody else, by the kernel's own statistics, over empty programs on the same
//! hooks. Both in turns beside the same programs, so that what else the machine does meets all alike.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use xtask::{machine, markdown::Table, root, sections};

use super::census_hooks::{Part, Took, took, tracepoints};
use super::census_job::Job;
use super::census_python::{self, Start};
use super::empties::Empties;
use super::pairs::{Spread, spread};
use super::quiet;
use super::workloads::last_cpu;
use crate::bpf;
use crate::process::{build_jobtrace, is_root, output, run as run_command, say, target_dir};

/// Rounds of all loads: what a busy machine does to one shows in the ends, not in the median.
const ROUNDS: usize = 15;
const EXECUTIONS: usize = 400;
/// Copies of a program, each of which is executed once.
const COPIES: usize = 100;
const READS: usize = 20_000;
/// Starts of Python at a time.
pub const STARTS: usize = 3;
/// A small program.
const SMALL: &str = "/bin/true";
/// What may be taken: of an execution in a job, and of a read outside jobs.
const MOST_EXECUTION_NS: f64 = 600.0;
const MOST_OTHERS_NS: f64 = 60.0;

/// What is run (a program of those that are copied, each once, where it `needs_copies`), how many events that is, and the rows that it gives.
struct Load {
    words: Vec<PathBuf>,
    events: usize,
    needs_copies: bool,
    rows: Vec<Row>,
}

/// A row: of which part of what ran, what it is called, and the most outside jobs and in one.
struct Row {
    part: Part,
    name: String,
    most_ns: [Option<f64>; 2],
}

/// Outside jobs, and in one.
type Sides<T> = [T; 2];

/// Measures and prints it; into docs/OVERHEAD.md where `write`.
///
/// # Errors
/// When we are not root, or a program cannot be attached.
pub fn run(write: bool) -> Result<()> {
    if !is_root() {
        bail!(
            "tracers load BPF programs: run `sudo env \"PATH=$PATH\" cargo xtask bench --only census`"
        );
    }
    quiet::refuse_statistics()?;
    quiet::name_disturbances()?;
    // What runs in the kernel is the same in every profile.
    let jobtrace = build_jobtrace(false)?;
    let scratch = tempfile::tempdir_in(target_dir()).context("make a scratch folder")?;
    let starts = census_python::starts(scratch.path())?;
    let made = Made::new(scratch.path())?;
    let loads = made.loads(&starts);
    let mut found: BTreeMap<(usize, usize), Sides<Vec<f64>>> = BTreeMap::new();
    let mut shares: Vec<Vec<census_python::Share>> = vec![Vec::new(); starts.len()];
    {
        let _statistics = bpf::enable_stats()?;
        let empties = Empties::of(&jobtrace, &tracepoints())?;
        let mut job = Job::start(&jobtrace, &["--software"])?;
        for round in 0..ROUNDS {
            say(format_args!("round {} of {ROUNDS}", round + 1));
            for side in [0, 1] {
                for (at, load) in loads.iter().enumerate() {
                    if load.needs_copies {
                        made.copy()?;
                    }
                    let (parts, cpu_ns) = once(load, side == 1, &mut job, &empties)?;
                    let per_event =
                        |took: &Took| (took.gross_ns - took.empty_ns) / load.events as f64;
                    for (row, Row { part, .. }) in load.rows.iter().enumerate() {
                        let ns = parts.get(part).map_or(f64::NAN, per_event);
                        found.entry((at, row)).or_default()[side].push(ns);
                    }
                    if let Some(start) = at.checked_sub(loads.len() - starts.len())
                        && side == 1
                    {
                        let programs_ns = parts.values().map(per_event).sum();
                        shares[start].push(census_python::Share { programs_ns, cpu_ns });
                    }
                }
            }
        }
        job.end()?;
    }
    let machine = machine::describe()?;
    let text = format!("{machine}; {ROUNDS} rounds.\n\n{}", table(&loads, &found));
    print!("{text}");
    let jobs = census_python::table(&jobtrace, &made.program, &starts, &shares)?;
    let jobs = format!("{machine}.\n\n{jobs}");
    print!("{jobs}");
    let all = [("census", text), ("census_jobs", jobs)];
    if write { sections::write("docs/OVERHEAD.md", &all) } else { Ok(()) }
}

/// Runs `load` once, what each part took and the CPU time that the load printed.
fn once(
    load: &Load,
    is_inside: bool,
    job: &mut Job,
    empties: &Empties,
) -> Result<(BTreeMap<Part, Took>, f64)> {
    let (before, floor) = (job.read_programs()?, empties.read_runs()?);
    let printed = if is_inside { job.run(&load.words)? } else { plain(&load.words)? };
    let floor = empties.read_since(&floor)?;
    let cpu_ns = printed.trim().parse().with_context(|| format!("a time: {printed}"))?;
    Ok((took(&before, &job.read_programs()?, &floor), cpu_ns))
}

fn plain(words: &[PathBuf]) -> Result<String> {
    let (program, arguments) = words.split_first().context("a program")?;
    output(Command::new(program).args(arguments))
}

/// Medians, and where a goal is missed.
fn table(loads: &[Load], found: &BTreeMap<(usize, usize), Sides<Vec<f64>>>) -> Table {
    let mut table = Table::new("event | >outside jobs, ns | >in a job, ns");
    for (at, load) in loads.iter().enumerate() {
        for (row, Row { name, most_ns, .. }) in load.rows.iter().enumerate() {
            let Some(sides) = found.get(&(at, row)) else { continue };
            let [outside, inside] = [0, 1].map(|side| {
                let Some(spread) = spread(sides[side].iter().copied()) else { return "–".into() };
                let Spread { median, min, max } = spread;
                let is_missed = most_ns[side].is_some_and(|most| median > most);
                let missed = if is_missed { " (goal missed)" } else { "" };
                format!("**{median:.0}** ({min:.0} to {max:.0}){missed}")
            });
            table.row([name, &outside, &inside]);
        }
    }
    table
}

/// What the loads need.
struct Made {
    /// The program of `census_loads.rs`, and the same by an interpreter's name.
    program: PathBuf,
    python: PathBuf,
    cpu: String,
    copies: PathBuf,
    /// Files to read: one of no interest, a library, a module.
    files: [PathBuf; 3],
}

impl Made {
    fn new(scratch: &Path) -> Result<Self> {
        let (program, python) = (scratch.join("census_loads"), scratch.join("python3"));
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition=2024", "-O", "-o"]).arg(&program);
        run_command(rustc.arg(root().join("xtask/src/bench/census_loads.rs")))?;
        fs::copy(&program, &python).context("copy it")?;
        let folder = scratch.join("lib/python3.11/site-packages/made/__pycache__");
        fs::create_dir_all(&folder).context("make folders")?;
        let files = [
            scratch.join("data"),
            scratch.join("libmade.so.1"),
            folder.join("__init__.cpython-311.pyc"),
        ];
        for file in &files {
            fs::write(file, [0; 4096]).context("make a file to read")?;
        }
        let (cpu, copies) = (last_cpu()?.to_string(), scratch.join("copies"));
        Ok(Self { program, python, cpu, copies, files })
    }

    /// Programs that nobody has executed yet.
    fn copy(&self) -> Result<()> {
        let _ = fs::remove_dir_all(&self.copies);
        fs::create_dir(&self.copies).context("make a folder")?;
        for number in 0..COPIES {
            let copy = self.copies.join(number.to_string());
            fs::copy(SMALL, copy).context("copy a program")?;
        }
        Ok(())
    }

    /// All of them; starts of Python last.
    fn loads(&self, starts: &[Start]) -> Vec<Load> {
        let row = |part, name: &str| Row { part, name: name.to_owned(), most_ns: [None; 2] };
        let load = |program: &Path, what: &[&Path], events, rows| {
            let words = [program, Path::new(&self.cpu)].into_iter().chain(what.iter().copied());
            let words = words.map(Path::to_owned).collect();
            Load { words, events, needs_copies: false, rows }
        };
        let executions = EXECUTIONS.to_string();
        let execute: [&Path; 3] = ["exec".as_ref(), executions.as_ref(), SMALL.as_ref()];
        let mut execution = row(Part::Execution, "a program executed");
        execution.most_ns[1] = Some(MOST_EXECUTION_NS);
        let rows = vec![
            execution,
            row(Part::Begin, "its process made"),
            row(Part::Files, "its files opened, read and mapped"),
            row(Part::End, "its process ended"),
        ];
        let mut loads = vec![load(&self.program, &execute, EXECUTIONS, rows)];
        let rows = vec![row(Part::Execution, "a program executed for the first time")];
        let each: [&Path; 2] = ["each".as_ref(), &self.copies];
        loads.push(Load { needs_copies: true, ..load(&self.program, &each, COPIES, rows) });
        let [data, library, module] = &self.files;
        for (program, file, name) in [
            (&self.program, data, "first page read"),
            (&self.program, library, "the same of a library"),
            (&self.program, module, "the same of a Python module"),
            (&self.python, module, "the same by Python"),
        ] {
            let mut row = row(Part::Files, name);
            row.most_ns[0] = Some(MOST_OTHERS_NS);
            let reads = READS.to_string();
            let read: [&Path; 3] = ["read".as_ref(), reads.as_ref(), file];
            loads.push(load(program, &read, READS, vec![row]));
        }
        for start in starts {
            let rows = vec![row(Part::End, &format!("the end of {}", start.name))];
            let mut load = load(&self.program, &[], STARTS, rows);
            load.words.extend(start.words());
            loads.push(load);
        }
        loads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loads_print_times_that_can_be() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let made = Made::new(scratch.path()).expect("rustc is here: it built this");
        made.copy().expect("copies");
        for load in made.loads(&[]) {
            let printed = plain(&load.words).expect("it runs");
            let ns: f64 = printed.trim().parse().expect("a time");
            assert!((0.0..1e9).contains(&ns), "{printed}");
        }
    }

    #[test]
    fn a_missed_goal_is_said_of_its_side_alone() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let made = Made::new(scratch.path()).expect("rustc is here");
        let loads = made.loads(&[]);
        let found = |outside: f64, inside: f64| {
            BTreeMap::from([((0, 0), [vec![outside; 3], vec![inside; 3]])])
        };
        let text = |outside, inside| table(&loads, &found(outside, inside)).to_string();
        assert!(!text(700.0, 599.0).contains("missed"));
        assert!(text(20.0, 601.0).contains("| **601** (601 to 601) (goal missed) |"));
    }
}
