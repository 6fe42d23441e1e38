//! `cargo xtask soak`: the live ring's soak for as long as asked for. What it does and how near its sums
//! must be: docs/TESTING.md.

use crate::process::{as_root, build_jobtrace, cargo, is_root, run as run_command, say};
use crate::test::{programs, residue};
use anyhow::{Context, Result, bail};
use xtask::root;

const EXAMPLES: &str = "\
Examples:
  cargo xtask soak                 half an hour, on an otherwise idle machine
  cargo xtask soak --minutes 5     a short run
  cargo xtask soak --release       with the optimised program that users run";

/// The test, its variable and those that pass through sudo.
const TEST: &str = "live_soak";
const SECONDS: &str = "JOBTRACE_SOAK_SECONDS";
const PROGRAM: &str = "JOBTRACE_BIN";
const EXACT: &str = "JOBTRACE_TESTS_EXACT";

/// Runs everything for a while, with the agent stopped and killed again and again: what it wrote must equal
/// what the kernel counted. Needs root (through sudo if the caller is not).
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Duration in minutes
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Use the optimised program instead of the debug one, which checks for overflows
    #[arg(long)]
    release: bool,
}

/// Runs the chore.
///
/// # Errors
/// When it does not build, something does not agree, or something is left behind.
pub fn run(args: &Args) -> Result<()> {
    let jobtrace = build_jobtrace(args.release)?;
    let programs = programs(&["--test", TEST])?;
    let program = programs.first().with_context(|| format!("cargo built no {TEST}"))?;
    // What it runs in the jobs.
    run_command(cargo().args(["build", "--quiet", "--package", "jobtrace-tests", "--bins"]))?;
    if !is_root() {
        say("it loads BPF programs and makes cgroups");
    }
    let before = residue::Residue::read_as_root()?;
    let mut command = as_root(program, &[PROGRAM, SECONDS, EXACT]);
    command.args(["--nocapture", "--test-threads=1"]).current_dir(root().join("tests"));
    command.env(PROGRAM, &jobtrace);
    command.env(SECONDS, (u64::from(args.minutes) * 60).to_string());
    let soaked = run_command(&mut command);
    let clean = residue::check(&before);
    match (soaked, clean) {
        (Ok(()), Ok(())) => Ok(()),
        (Err(error), Ok(())) | (Ok(()), Err(error)) => Err(error),
        (Err(error), Err(left)) => bail!("{error:#}; and {left:#}"),
    }
}
