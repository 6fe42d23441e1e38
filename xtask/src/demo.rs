//! `cargo xtask demo`: the shortest way to see jobtrace work, on a command that uses a CPU,
//! touches fresh memory and reads and writes a disk.

use crate::process::{self, as_root, build_jobtrace, say, target_dir};
use anyhow::{Context, Result};

/// What the demonstration runs when no command is given; `$1` is a folder on a disk. Each line
/// takes about a second: a CPU burner and a competitor, fresh memory, and O_DIRECT input/output.
const COMMAND: &str = "\
seq 1 4000000 | sha256sum >/dev/null & seq 1 4000000 | sha256sum >/dev/null
dd if=/dev/zero of=/dev/null bs=64M count=40 status=none
dd if=/dev/urandom of=\"$1/file\" bs=64K count=500 oflag=direct status=none
dd if=\"$1/file\" of=/dev/null bs=4K count=4000 iflag=direct status=none
wait";

/// Builds jobtrace and traces a command with it, as root.
#[derive(clap::Args)]
pub struct Args {
    /// Trace with the program that packages have: compiling it takes minutes more
    #[arg(long)]
    release: bool,
    /// The command to trace instead of the built-in one
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs the chore in a scratch folder on the build's disk, which is removed at the end.
///
/// # Errors
/// When jobtrace does not build, or the traced command or the tracing fails.
pub fn run(args: &Args) -> Result<()> {
    let jobtrace = build_jobtrace(args.release)?;
    let scratch = tempfile::Builder::new()
        .prefix("demo-")
        .tempdir_in(target_dir())
        .context("make a scratch folder in the target folder")?;
    let mut traced = as_root(jobtrace, &[]);
    traced.args(["run", "--"]);
    if args.command.is_empty() {
        say("tracing two CPU burners, fresh memory and direct disk input/output");
        traced.args(["sh", "-c", COMMAND, "demo"]).arg(scratch.path());
    } else {
        traced.args(&args.command);
    }
    process::run(&mut traced)
}
