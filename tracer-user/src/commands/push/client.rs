//! Posting lines: one request, one answer. Owns compression; refuses to try again, and to judge an answer.

use std::{
    io::{self, Read, Write},
    time::SystemTime,
};

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use ureq::{
    Agent, Body,
    http::{Response, header},
};

use super::{answer::Answer, back_off, options::PushSettings};
use crate::server::{
    PUSH,
    http::{self, Trouble},
    secret::Authorization,
};

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
        let has_secret = settings.authorization.is_some();
        let agent =
            http::agent(&settings.url, settings.ca.as_deref(), settings.timeout, has_secret, &PUSH);
        Ok(Self {
            agent: agent?,
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
        request.send(&packed[..]).map(read_answer).map_err(|error| http::trouble(error, &PUSH))
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
