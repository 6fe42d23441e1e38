//! Project chores: one subcommand per file, parsed and dispatched here.

mod bench;
mod bpf;
mod cardinality;
mod compare;
mod dashboards;
mod demo;
mod dist;
mod docs;
mod ebpf;
mod fuzz;
mod licences;
mod packages;
mod process;
mod sections;
mod soak;
mod test;
mod vm;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask::simulate;

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
  cargo xtask compare --write          compare with bpftrace and others, into docs/COMPARE.md
  cargo xtask grafana                  the dashboards in docs/grafana from their description
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
    /// Write docs/METRICS.md, docs/CLI.md and the default configuration from the code
    Docs(docs::Args),
    /// Write Grafana's dashboards, docs/grafana, from their description
    Grafana(dashboards::Args),
    /// Measure what tracing costs
    Bench(bench::Args),
    /// Compare the cost of tracing with bpftrace, libbpf-tools, rezolus and below
    Compare(compare::Args),
    /// Build the .deb and .rpm packages, man pages and completions into target/dist
    Dist(dist::Args),
    /// Fuzz every parser of foreign input with libFuzzer
    Fuzz(fuzz::Args),
    /// Run everything for half an hour and compare it with the kernel's own accounting
    Soak(soak::Args),
    /// Check jobtrace on other kernels, in emulated machines
    Vm(vm::Args),
    /// Write the spool of a simulated cluster, made from recorded jobs
    Simulate(simulate::Args),
    /// Measure series, lines and bytes by profile with a real InfluxDB
    Cardinality(cardinality::Args),
    /// Check each dependency's licence against the allowed ones
    Licences,
    /// The page-fault workload of `bench`
    #[command(hide = true)]
    FaultLoop(bench::fault_loop::Args),
    /// Runs a command and prints how long it took, for `compare`
    #[command(hide = true)]
    Timed(compare::compile_job::Timed),
    /// The process of a job in `bench`
    #[command(hide = true)]
    IdleLoop(bench::jobs::Loop),
    /// What `test --hostile` runs beside the live ring, through sudo
    #[command(hide = true)]
    Hostility,
    /// What `test` compares before and after the live ring; run through sudo
    #[command(hide = true)]
    Residue,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Ebpf(args) => ebpf::run(&args),
        Chore::Demo(args) => demo::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::Docs(args) => docs::run(&args),
        Chore::Grafana(args) => dashboards::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Compare(args) => compare::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Vm(args) => vm::run(&args),
        Chore::Simulate(args) => simulate::run(&args, process::say),
        Chore::Cardinality(args) => cardinality::run(&args),
        Chore::Licences => licences::run(),
        Chore::FaultLoop(args) => bench::fault_loop::run(&args),
        Chore::Timed(args) => compare::compile_job::timed(&args),
        Chore::IdleLoop(args) => bench::jobs::idle_loop(&args),
        Chore::Hostility => test::hostile::work(),
        Chore::Residue => test::residue::print(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
