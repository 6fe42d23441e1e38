//! What an administrator tells the agent by a signal.

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that an administrator sends.
pub(super) struct AdminSignals {
    pub terminate: Signal,
    pub interrupt: Signal,
    pub hang_up: Signal,
}

impl AdminSignals {
    /// Takes them from here on.
    pub fn take() -> Result<Self> {
        let take = |kind| signal(kind).context("cannot receive signals");
        Ok(Self {
            terminate: take(SignalKind::terminate())?,
            interrupt: take(SignalKind::interrupt())?,
            hang_up: take(SignalKind::hangup())?,
        })
    }
}
