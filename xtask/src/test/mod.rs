//! `cargo xtask test`: what a reviewer runs. Every step runs even when one before it failed, and
//! the last line sums up all tests.

mod hostile;
pub mod leftover;
mod live;
pub mod residue;
mod steps;
mod tally;

pub use live::programs;

use crate::process::{cargo, run as run_command, say, target_dir};
use crate::{docs, ebpf, licences, packages, vm};
use anyhow::Result;
use std::path::{Path, PathBuf};
use steps::Steps;
use xtask::root;
use xtask::source_digest::ALWAYS;

/// A shell script ignores these in what it starts in the background, and what is ignored stays so in
/// every program below: tests that send them would see nothing.
fn take_signals() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
        // SAFETY: the default is a valid disposition of each.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Installs missing tools, then checks format, lints, docs and licences and runs all tests; the live tests
/// load BPF programs and need root (through sudo if the caller is not).
#[derive(clap::Args)]
pub struct Args {
    /// Skip the live tests, so that nothing needs root
    #[arg(long, conflicts_with_all = ["live", "hostile", "object", "fresh_object"])]
    fast: bool,
    /// Only the live tests
    #[arg(long)]
    live: bool,
    /// Drop the page cache every second and keep one CPU busy during the live tests: all programs get slower
    #[arg(long)]
    hostile: bool,
    /// Run the live tests with this BPF object instead of the one that jobtrace embeds
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,
    /// Also build the BPF object, after installing what that needs, and run the live tests with it
    #[arg(long, conflicts_with = "object")]
    fresh_object: bool,
}

/// Runs the chore.
///
/// # Errors
/// When a step fails; the steps that did are named.
pub fn run(args: &Args) -> Result<()> {
    take_signals();
    let mut steps = Steps::default();
    if !args.fast {
        steps.step("workloads", || packages::need(packages::WORKLOADS));
        steps.step("rigs", || {
            packages::need(packages::RIGS).and_then(|()| packages::need_modules())
        });
    }
    if !args.live {
        lints(&mut steps);
        steps.tests("pure and process rings", || {
            let mut command = cargo();
            command.args(["test", "--workspace", "--exclude", "jobtrace-tests", "--no-fail-fast"]);
            tally::run(&mut command)
        });
    }
    if !args.fast {
        live_ring(&mut steps, args);
        steps.step("two other kernels, emulated", vm::quick);
    }
    steps.finish()
}

fn lints(steps: &mut Steps) {
    let quiet = |arguments: &[&str]| run_command(cargo().args(arguments));
    steps.step("format", || quiet(&["fmt", "--all", "--", "--check"]));
    steps.step("lints", || {
        quiet(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
    });
    steps.step("the other architecture", vm::compiles_elsewhere);
    steps.step("documentation of the code", || {
        let mut command = cargo();
        command.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
        run_command(command.env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.step("generated documents", || docs::run(&docs::Args { check: true }));
    steps.step("licences", licences::run);
}

fn live_ring(steps: &mut Steps, args: &Args) {
    let state = || {
        leftover::sweep_as_root()?;
        residue::Residue::read_as_root()
    };
    let Some(before) = steps.step("state before the live tests", state) else {
        return;
    };
    let name = match &args.object {
        Some(object) => format!("live tests with {}", object.display()),
        None => "live tests".to_owned(),
    };
    steps.tests(&name, || live::run(args.object.as_deref(), args.hostile));
    if args.fresh_object {
        let fresh = target_dir().join("fresh.bpf.o");
        if steps.step("a fresh object", || ebpf::build_into(&fresh)).is_some() {
            with_fresh_object(steps, &fresh, args.hostile);
        }
    }
    steps.step("nothing is left behind", || residue::check(&before));
}

/// The same bytes need no second run: the live ring has just tested them.
fn with_fresh_object(steps: &mut Steps, fresh: &Path, hostile: bool) {
    if std::fs::read(fresh).ok() == std::fs::read(root().join(ALWAYS.file)).ok() {
        say("the fresh object is the committed one byte for byte: the live tests above tested it");
    } else {
        steps.tests("live tests with the fresh object", || live::run(Some(fresh), hostile));
    }
}
