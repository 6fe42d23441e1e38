//! The program `jobtrace`: parses, dispatches, sets the exit status.

use std::process::ExitCode;

use clap::Parser;
use jobtrace::{
    base::say::{Level, say_at},
    census,
    cli::{Cli, Command},
    commands::{
        agent, compare, doctor, findings, io, jobs, push, report, resolve, run, software, top,
        usage,
    },
    probes,
};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Usage(args) => usage::run(&args),
        Command::Software(args) => software::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Io(args) => io::run(&args),
        Command::Findings(args) => findings::run(&args),
        Command::Agent(args) => agent::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Resolve(args) => agent::config::load(args.config.as_deref(), &Default::default())
            .and_then(|config| resolve::run(&args, &config.rule)),
        Command::Push(args) => push::run(&args),
        Command::ListModules { wish } => census::answer(&wish),
        Command::BenchEmpty { tracepoints } => probes::hold_empty(&tracepoints).map(|()| 0),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say_at(Level::Error, format_args!("{error:#}"));
            ExitCode::from(2)
        }
    }
}
