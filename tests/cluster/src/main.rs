//! `cargo xtask simulate` and `cargo xtask cardinality`: a simulated cluster, written as files or to a data base.

mod cardinality;
mod cluster;
mod files;
mod kinds;
mod plan;
mod random;
mod simulate;
mod tally;
#[cfg(test)]
mod tests;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A simulated cluster.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Simulate(simulate::Args),
    Cardinality(cardinality::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Simulate(args) => simulate::run(&args),
        What::Cardinality(args) => cardinality::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
