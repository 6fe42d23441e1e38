//! How much longer Python takes to start while it is seen which software it runs: what the programs take, by the kernel's
//! own statistics, which tells more than pairs can on a busy machine; and pairs of a job that is seen so and one that is
//! traced without that.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::markdown::Table;

use super::census::STARTS;
use super::census_job::Job;
use super::io_jobs::pairs;
use super::pairs::spread;
use super::workloads::last_cpu;
use crate::process::{output, run as run_command, say, target_dir};

/// Pairs of each.
const PAIRS: usize = 15;
/// What may be added.
const MOST_RATIO: f64 = 0.005;
const PACKAGES: [&str; 2] = ["numpy", "pandas"];
const LIBRARY: &str = "import asyncio, concurrent.futures, ctypes, decimal, email.mime.text, http.server, json, \
                       logging.config, multiprocessing, sqlite3, ssl, unittest, urllib.request, xml.dom.minidom, zipfile";

/// A start of Python.
pub struct Start {
    /// What it is.
    pub name: &'static str,
    python: PathBuf,
    arguments: Vec<String>,
}

impl Start {
    /// The words for `census_loads CPU`.
    pub fn words(&self) -> impl Iterator<Item = PathBuf> {
        let arguments = self.arguments.iter().map(PathBuf::from);
        let exec = ["exec".into(), STARTS.to_string().into(), self.python.clone()];
        exec.into_iter().chain(arguments)
    }
}

/// What the programs took of a start, and its CPU time.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    pub programs_ns: f64,
    pub cpu_ns: f64,
}

/// Starts of Python; those with packages where an index delivers them.
///
/// # Errors
/// When there is no Python.
pub fn starts(scratch: &Path) -> Result<Vec<Start>> {
    // Where it is chosen by a script, the script's programs are not what is to be measured.
    let told = output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
    let python = PathBuf::from(told.trim());
    let start = |name, python: &Path, arguments: &[&str]| Start {
        name,
        python: python.to_owned(),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
    };
    let venv = scratch.join("venv");
    let venv = venv.to_str().context("a path that is no text")?;
    let mut starts = Vec::new();
    match with_packages(&python) {
        Ok(python) => {
            let import = format!("import {}", PACKAGES.join(", "));
            starts.push(start("Python with numpy and pandas", &python, &["-c", &import]));
        }
        Err(error) => say(format_args!("without packages: {error:#}")),
    }
    starts.push(start("Python with much of its own library", &python, &["-c", LIBRARY]));
    let arguments = ["-m", "venv", "--clear", "--without-pip", venv];
    starts.push(start("Python that makes a venv", &python, &arguments));
    Ok(starts)
}

/// A Python that has the packages; it stays in the target folder.
fn with_packages(python: &Path) -> Result<PathBuf> {
    let folder = target_dir().join("bench-python");
    let inside = folder.join("bin/python");
    let import = format!("import {}", PACKAGES.join(", "));
    let has_all = || output(Command::new(&inside).args(["-c", &import])).is_ok();
    if !inside.exists() || !has_all() {
        run_command(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run_command(Command::new(&inside).args(install).args(PACKAGES))?;
    }
    Ok(inside)
}

/// Measures the pairs, and tells them beside the shares.
///
/// # Errors
/// When jobtrace or Python fails.
pub fn table(
    jobtrace: &Path,
    loads: &Path,
    starts: &[Start],
    shares: &[Vec<Share>],
) -> Result<Table> {
    let cpu = last_cpu()?.to_string();
    let mut table = Table::new(
        "job | >CPU time, ms | >in the programs, µs | >that is | >slower by, pairs | >95 %",
    );
    for (start, shares) in starts.iter().zip(shares) {
        say(format_args!("{}: pairs", start.name));
        let words: Vec<_> =
            [loads.to_owned(), PathBuf::from(&cpu)].into_iter().chain(start.words()).collect();
        let pairs = pairs(PAIRS, |is_seen| {
            let options: &[&str] = if is_seen { &["--software"] } else { &[] };
            let mut job = Job::start(jobtrace, options)?;
            let printed = job.run(&words)?;
            job.end()?;
            printed.trim().parse().with_context(|| format!("a time: {printed}"))
        })?;
        let median = |of: &dyn Fn(&Share) -> f64| {
            spread(shares.iter().map(of)).map_or(f64::NAN, |spread| spread.median)
        };
        let ratio = median(&|share| share.programs_ns / share.cpu_ns);
        let missed = if ratio > MOST_RATIO { " (goal missed)" } else { "" };
        let slower = pairs.slowdown_ratio().map_or(f64::NAN, |ratio| ratio.median);
        let (low, high) = pairs.slowdown_interval().unwrap_or((f64::NAN, f64::NAN));
        table.row([
            &start.name,
            &format!("{:.0}", median(&|share| share.cpu_ns) / 1e6),
            &format!("{:.0}", median(&|share| share.programs_ns) / 1e3),
            &format!("**{:.2} %**{missed}", ratio * 100.0),
            &format!("{:+.1} %", slower * 100.0),
            &format!("{:+.1} to {:+.1} %", low * 100.0, high * 100.0),
        ]);
    }
    Ok(table)
}
