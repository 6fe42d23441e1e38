//! `jobtrace agent`: the node's daemon, every job on the node.

mod args;
pub mod asking;
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
pub mod naming;
pub mod node;
pub mod output;
pub mod overhead;
mod owner;
pub mod query;
pub mod records;
pub mod software;
pub mod state;
pub mod tracker;
pub mod users;

pub use args::Args;

use anyhow::Result;

use crate::base::say::print;

/// Reads the configuration and does with it what was asked for; the exit status.
///
/// # Errors
/// When the configuration is wrong, or the agent cannot start.
pub fn run(args: &Args) -> Result<u8> {
    let config = config::load(args.config.as_deref(), &args.flags)?;
    if args.print_config {
        return print(&config.to_text()?).map(|()| 0);
    }
    if args.check {
        return print(&check::check(&config)?).map(|()| 0);
    }
    if args.unpin {
        return daemon::unpin(&config);
    }
    let sources = daemon::Sources { file: args.config.clone(), flags: args.flags.clone() };
    daemon::run(config, &sources)
}
