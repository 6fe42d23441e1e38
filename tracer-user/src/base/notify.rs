//! What the service manager is told: ready, status, still alive, reloading, stopping. Nothing where no
//! manager listens (`NOTIFY_SOCKET`).

use std::time::Duration;

use sd_notify::NotifyState;

use crate::base::text::clean;

/// The way to the service manager.
#[derive(Clone, Copy, Debug)]
pub struct Notify {
    watchdog: Option<Duration>,
}

impl Notify {
    /// As the environment tells.
    #[must_use]
    pub fn from_environment() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled().map(|limit| limit / 2) }
    }

    /// How often [`Notify::alive`] is to be called: half of the limit. `None` where nobody watches.
    #[must_use]
    pub fn watchdog_every(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The start or a reload is over.
    pub fn ready(&self, status: &str) {
        send(&[NotifyState::Ready, NotifyState::Status(&clean(status, true))]);
    }

    /// A line for `systemctl status`.
    pub fn status(&self, status: &str) {
        send(&[NotifyState::Status(&clean(status, true))]);
    }

    /// The agent is alive. To be called where the measuring loop comes by, so that a loop that hangs is
    /// noticed.
    pub fn alive(&self) {
        send(&[NotifyState::Watchdog]);
    }

    /// The configuration is read again; [`Notify::ready`] ends it. With the time that
    /// `Type=notify-reload` wants, and which `Type=notify` passes over.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            Err(_) => send(&[NotifyState::Reloading]),
        }
    }

    /// The agent ends.
    pub fn stopping(&self) {
        send(&[NotifyState::Stopping]);
    }
}

/// A manager that does not listen is no reason to stop tracing; it has its own timeouts.
fn send(state: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(state);
}
