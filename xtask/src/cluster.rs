//! `cargo xtask simulate` and `cargo xtask cardinality`: `tests/cluster`, optimised, since it writes millions
//! of lines.

use crate::process::{cargo, run as run_command};
use anyhow::Result;
use std::ffi::OsString;

/// What the program itself understands, `--help` included.
#[derive(clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

/// Runs the chore of this name.
///
/// # Errors
/// When the program does not build, or fails.
pub fn run(chore: &str, args: &Args) -> Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--profile", "chores"]);
    command.args(["--package", "jobtrace-cluster", "--", chore]);
    run_command(command.args(&args.args))
}
