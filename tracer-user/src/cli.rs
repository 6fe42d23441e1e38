//! The command line: the commands with their arguments, collected. The help and docs/CLI.md derive from it.

use clap::{Parser, Subcommand};

use crate::{
    census::COMMAND,
    commands::{
        agent, compare, doctor, findings, io, jobs, push, report, resolve, run, software, top,
        usage,
    },
};

/// Traces what jobs do on a compute node: CPU, page faults, disk and GPU, per job.
#[derive(Debug, Parser)]
#[command(name = "jobtrace", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[allow(
    missing_docs,
    reason = "a variant's text would take the place of its arguments', in the help"
)]
pub enum Command {
    Run(run::Args),
    Report(report::Args),
    Compare(compare::Args),
    Jobs(jobs::Args),
    Usage(usage::Args),
    Software(software::Args),
    Top(top::Args),
    Io(io::Args),
    Findings(findings::Args),
    Agent(agent::Args),
    Doctor(doctor::Args),
    Resolve(resolve::Args),
    Push(push::Args),
    /// Holds an empty program on each hook, and on these tracepoints, for the benchmark.
    #[command(hide = true)]
    BenchEmpty {
        /// Names of tracepoints
        tracepoints: Vec<String>,
    },
    /// Tells what is installed in a folder of modules, for jobtrace itself.
    #[command(hide = true, name = COMMAND)]
    ListModules {
        /// Which, as jobtrace asks
        wish: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
