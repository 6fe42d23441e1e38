//! `jobtrace agent`: the node's daemon, every job on the node.

pub mod check;
pub mod config;
pub mod daemon;
pub mod details;
pub mod governor;
pub mod gpus;
pub mod grid;
pub mod hierarchy;
pub mod last_stamp;
pub mod lock;
pub mod log;
pub mod node;
pub mod notify;
pub mod output;
pub mod overhead;
pub mod state;
pub mod suggest;
pub mod tracker;
pub mod users;

use std::io::{self, Write};

use anyhow::{Context, Result};

use crate::cli::Agent;

/// Reads the configuration and does with it what was asked for; the exit status.
///
/// # Errors
/// When the configuration is wrong, or the agent cannot start.
pub fn run(args: &Agent) -> Result<u8> {
    let config = config::load(args.config.as_deref(), &args.flags)?;
    if args.print_config {
        return print(&config.to_text()?);
    }
    if args.check {
        return print(&check::check(&config)?);
    }
    if args.unpin {
        return daemon::unpin(&config);
    }
    let sources = daemon::Sources { file: args.config.clone(), flags: args.flags.clone() };
    daemon::run(config, &sources)
}

fn print(text: &str) -> Result<u8> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot print")?;
    Ok(0)
}
