//! The HTTP client: one request, one answer. Owns timeouts and compression; refuses to follow
//! redirections, to try again, and to judge an answer.

use std::{
    error::Error,
    io::{self, Read, Write},
    time::{Duration, SystemTime},
};

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use ureq::{
    Agent, Body,
    http::{Response, header},
    unversioned::resolver::DefaultResolver,
};

use super::{
    answer::{Answer, Trouble},
    back_off,
    connector::connector,
    options::PushSettings,
    secret::Authorization,
    trust,
};
use crate::base::{
    say::{Level, say_at},
    text::clean,
};

/// Longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Bodies from here on are sent when the server has said that it wants them, as curl does.
const LARGE: usize = 1 << 20;
/// Most of an answer that is read.
const ANSWER_BYTES: u64 = 64 << 10;

/// A server, connections to it and what we show it.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    url: String,
    authorization: Option<Authorization>,
}

impl Client {
    /// For the server of `settings`; connects to nothing yet.
    ///
    /// # Errors
    /// When there are no certificates to trust.
    pub fn new(settings: &PushSettings) -> Result<Self> {
        let is_plain = settings.url.starts_with("http://");
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT.min(settings.timeout)))
            .timeout_global(Some(settings.timeout))
            .user_agent(concat!("jobtrace/", env!("CARGO_PKG_VERSION")));
        let tls = (!is_plain).then(|| trust::config(settings.ca.as_deref())).transpose()?;
        if is_plain && settings.authorization.is_some() && !is_here(&settings.url) {
            let what = "the secret is sent to the server unencrypted: give an https URL";
            say_at(Level::Warning, what);
        }
        Ok(Self {
            agent: Agent::with_parts(config.build(), connector(tls), DefaultResolver::default()),
            url: settings.url.clone(),
            authorization: settings.authorization.clone(),
        })
    }

    /// Posts `lines`.
    ///
    /// # Errors
    /// When no answer came.
    pub fn post(&self, lines: &[u8]) -> Result<Answer, Trouble> {
        let later = |error: io::Error| Trouble::Later(error.to_string());
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(lines).map_err(later)?;
        let packed = packed.finish().map_err(later)?;
        let mut request = self
            .agent
            .post(&self.url)
            .header(header::CONTENT_ENCODING, "gzip")
            .header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.header());
        }
        if packed.len() >= LARGE {
            request = request.header(header::EXPECT, "100-continue");
        }
        request.send(&packed[..]).map(read_answer).map_err(trouble)
    }
}

/// What the server said. The status counts, also where the words behind it do not come to their end.
fn read_answer(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(header::RETRY_AFTER)
        .and_then(|value| back_off::parse_retry_after(value, SystemTime::now()));
    let location = text(header::LOCATION).map(str::to_owned);
    let mut words = Vec::new();
    let _ = body.into_reader().take(ANSWER_BYTES).read_to_end(&mut words);
    let body = String::from_utf8_lossy(&words).trim().to_owned();
    Answer { status: parts.status.as_u16(), body, retry_after, location }
}

/// What keeps an answer away, and whether waiting cures it.
fn trouble(error: ureq::Error) -> Trouble {
    let words = clean(&error.to_string(), true);
    match rustls_error(&error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            let (why, cure) = (clean(&trust::words(why), true), trust::cure(why));
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
        ureq::Error::HostNotFound => "no such host: check --url, or the name service".into(),
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
