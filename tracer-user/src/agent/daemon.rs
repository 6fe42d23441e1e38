//! The measuring loop's place: what runs once the configuration is known to be good.

use anyhow::{Result, bail};

use super::config::Config;

/// Runs the agent until it is told to end; the exit status.
///
/// # Errors
/// When it cannot start.
pub fn run(_config: Config) -> Result<u8> {
    bail!("the measuring loop of the agent is not built yet")
}

/// Removes what a pinned agent left in bpffs; the exit status.
///
/// # Errors
/// When an agent runs, or something cannot be removed.
pub fn unpin(_config: &Config) -> Result<u8> {
    bail!("removing pinned probes is not built yet")
}
