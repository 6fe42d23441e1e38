//! The HTTP client for a database server: timeouts, TLS, a proxy where the environment names one. Refuses to follow
//! redirections, to try again, and to judge an answer.

use std::{error::Error, io, path::Path, time::Duration};

use anyhow::Result;
use ureq::{Agent, unversioned::resolver::DefaultResolver};

use super::{OptionNames, connector::connector, trust};
use crate::base::{
    say::{Level, say_at},
    text::clean,
};

/// Longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// Why no answer came.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It may be gone next time.
    Later(String),
    /// It stays until somebody changes something.
    Stop(String),
}

impl Trouble {
    /// What it is.
    pub fn into_words(self) -> String {
        match self {
            Self::Later(words) | Self::Stop(words) => words,
        }
    }
}

/// A client for the server at `url`, whose certificate those in `ca` vouch for, or this system's; connects to nothing
/// yet. A request and its answer take at most `timeout`.
///
/// # Errors
/// When there are no certificates to trust.
pub fn agent(
    url: &str,
    ca: Option<&Path>,
    timeout: Duration,
    has_secret: bool,
    options: &OptionNames,
) -> Result<Agent> {
    let is_plain = url.starts_with("http://");
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT.min(timeout)))
        .timeout_global(Some(timeout))
        .user_agent(concat!("jobtrace/", env!("CARGO_PKG_VERSION")));
    let tls = (!is_plain).then(|| trust::config(ca, options.prefix)).transpose()?;
    if is_plain && has_secret && !is_here(url) {
        let what = "the secret is sent to the server unencrypted: give an https URL";
        say_at(Level::Warning, what);
    }
    Ok(Agent::with_parts(config.build(), connector(tls), DefaultResolver::default()))
}

/// What keeps an answer away, and whether waiting cures it.
pub fn trouble(error: ureq::Error, options: &OptionNames) -> Trouble {
    let words = clean(&error.to_string(), true);
    match rustls_error(&error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let (why, cure) = (clean(&trust::words(why), true), trust::cure(why, options));
            return Trouble::Stop(format!(
                "the server's certificate is not trusted ({why}): {cure}"
            ));
        }
        Some(why) => {
            return Trouble::Later(format!("no TLS connection: {}", clean(&why.to_string(), true)));
        }
        None => {}
    }
    Trouble::Later(match error {
        ureq::Error::HostNotFound => {
            format!("no such host: check {}, or the name service", options.url)
        }
        ureq::Error::Timeout(what) => format!("no answer in time ({what})"),
        _ => words,
    })
}

/// The TLS error at the bottom of `error`, where there is one.
fn rustls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let inner = match error.downcast_ref::<ureq::Error>() {
            Some(ureq::Error::Io(error)) => Some(error),
            _ => error.downcast_ref::<io::Error>(),
        };
        // An io::Error hides what it holds from its own `source`.
        cause = match inner.and_then(|error| error.get_ref()) {
            Some(held) => Some(held as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}

/// Whether the server is this very host, so that nothing travels.
fn is_here(url: &str) -> bool {
    let host = url.trim_start_matches("http://").split(['/', '?']).next().unwrap_or("");
    ["localhost", "127.", "[::1]"].iter().any(|name| host.starts_with(name))
}
