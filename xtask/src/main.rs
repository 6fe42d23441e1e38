//! Project chores: one subcommand per file, parsed and dispatched here.

mod bench;
mod bpf;
mod cluster;
mod demo;
mod dist;
mod docs;
mod ebpf;
mod fuzz;
mod licences;
mod packages;
mod process;
mod screenshots;
mod soak;
mod test;
mod vm;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  cargo xtask demo                     build jobtrace and trace a small command
  cargo xtask demo -- make -j8         the same with your own command
  cargo xtask test                     everything, as a reviewer would run it
  cargo xtask test --fast              without the live tests, which need root
  cargo xtask test --live --hostile    the live tests with a cold page cache and a busy CPU
  cargo xtask ebpf --install           install what building the BPF object needs, then build it
  cargo xtask ebpf --check             check that the committed object matches its sources
  cargo xtask bench --write            measure the overhead into docs/OVERHEAD.md
  cargo xtask bench --peers --write    compare with bpftrace and others, into docs/COMPARE.md
  cargo xtask docs                     documents and dashboards, from the code's tables
  cargo xtask fuzz --seconds 60        fuzz every parser of foreign input, for a minute each
  cargo xtask soak --minutes 30        everything enabled, compared with the kernel's own accounting
  cargo xtask dist --deb               a Debian package in target/dist
  cargo xtask vm                       jobtrace on other kernels, emulated
  cargo xtask simulate --nodes 16      the spool of a simulated cluster
  cargo xtask cardinality --write      series and bytes by profile, into docs/SIZING.md";

/// Project chores of jobtrace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build the BPF object that jobtrace embeds
    Ebpf(ebpf::Args),
    /// Build jobtrace and trace a small command with it
    Demo(demo::Args),
    /// Check format, lints, docs and licences, and run all tests
    Test(test::Args),
    /// Write docs/METRICS.md, docs/RECORD.md, docs/CLI.md, the default configuration and Grafana's dashboards from the code
    Docs(docs::Args),
    /// Measure what tracing costs, also compared with bpftrace, libbpf-tools, rezolus and below
    Bench(bench::Args),
    /// Build the .deb and .rpm packages, man pages and completions into target/dist
    Dist(dist::Args),
    /// Fuzz every parser of foreign input with libFuzzer
    Fuzz(fuzz::Args),
    /// Run everything for half an hour and compare it with the kernel's own accounting
    Soak(soak::Args),
    /// Check jobtrace on other kernels, in emulated machines
    Vm(vm::Args),
    /// Write the spool of a simulated cluster, made from recorded jobs
    #[command(disable_help_flag = true)]
    Simulate(cluster::Args),
    /// Measure series, lines and bytes by profile with a real InfluxDB
    #[command(disable_help_flag = true)]
    Cardinality(cluster::Args),
    /// Check each dependency's licence against the allowed ones
    Licences,
    /// Take pictures of a report for the documents, light and dark, with chromium
    Screenshots(screenshots::Args),
    /// What `test` compares before and after the live ring, or removes before it; run through sudo
    #[command(hide = true)]
    Residue {
        /// Remove the cgroups of tests that were killed
        #[arg(long)]
        sweep: bool,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Ebpf(args) => ebpf::run(&args),
        Chore::Demo(args) => demo::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::Docs(args) => docs::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Vm(args) => vm::run(&args),
        Chore::Simulate(args) => cluster::run("simulate", &args),
        Chore::Cardinality(args) => cluster::run("cardinality", &args),
        Chore::Licences => licences::run(),
        Chore::Screenshots(args) => screenshots::run(&args),
        Chore::Residue { sweep: false } => test::residue::print(),
        Chore::Residue { sweep: true } => test::leftover::sweep(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
