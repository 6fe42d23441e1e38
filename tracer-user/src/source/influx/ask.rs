//! Asking InfluxDB: statements in, the rows of their answers out as they come. Owns the deadline and the bound on what is
//! read; refuses to know what is asked.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use ureq::{Agent, Body, http::Response, http::header};

use crate::{
    base::text::clean,
    server::{INFLUX, http, secret::Authorization},
};

/// Rows in each piece of an answer: what is in memory at a time.
pub const PIECE_ROWS: u32 = 2000;
/// Longest answer to a request.
const LONGEST_BYTES: u64 = 1 << 30;
/// What to do about an answer without its end.
const BROKEN_OFF: &str = "the answer broke off: try again, and where something between ends long answers, ask for less, with --since";
/// Most of an answer that refuses.
const REFUSAL_BYTES: u64 = 64 << 10;

/// Rows of one series, which the server may give in several pieces.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Rows {
    /// The measurement.
    pub name: String,
    /// Values of the tags that it was asked to group by; empty where a series has none.
    pub tags: BTreeMap<String, String>,
    /// Names of the columns; the first is `time`.
    pub columns: Vec<String>,
    /// The rows.
    pub values: Vec<Vec<Value>>,
}

/// A piece of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Piece {
    results: Vec<Answered>,
    error: Option<String>,
}

/// What is told of one statement.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answered {
    statement_id: usize,
    series: Vec<Rows>,
    /// Whether more of it is to come in the next piece.
    partial: bool,
    error: Option<String>,
}

/// A server to ask, up to a moment.
#[derive(Debug)]
pub struct Server {
    /// The client.
    pub agent: Agent,
    /// The address with its query.
    pub url: String,
    /// What we show.
    pub authorization: Option<Authorization>,
    /// Until when all answers must be there.
    pub until: Instant,
    /// How long that was, for messages.
    pub timeout: Duration,
}

impl Server {
    /// Asks `statements` and gives the rows to `take`, each with the place of its statement, in their order.
    ///
    /// # Errors
    /// When the server does not answer in time, or refuses; the message names the cure.
    pub fn ask(&self, statements: &[String], mut take: impl FnMut(usize, Rows)) -> Result<()> {
        let cannot = || format!("cannot ask {}", self.shown());
        let left = self.until.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "{}: {}", cannot(), self.late());
        let mut request = self.agent.post(&self.url).config().timeout_global(Some(left)).build();
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization.header());
        }
        let answer =
            request.send_form([("q", statements.join(";"))]).map_err(|error| match error {
                ureq::Error::Timeout(_) => anyhow!(self.late()),
                error => anyhow!(http::trouble(error, &INFLUX).into_words()),
            });
        let answer = answer.with_context(cannot)?;
        if answer.status().as_u16() != 200 {
            return Err(refusal(answer)).with_context(cannot);
        }
        self.read(answer, &mut take).with_context(cannot)
    }

    fn read(&self, answer: Response<Body>, take: &mut dyn FnMut(usize, Rows)) -> Result<()> {
        let body = Bounded { inner: answer.into_body().into_reader(), left: LONGEST_BYTES };
        let pieces = serde_json::Deserializer::from_reader(io::BufReader::new(body));
        // An answer without a piece is none.
        let mut is_part = true;
        for piece in pieces.into_iter::<Piece>() {
            let piece = piece.map_err(|error| self.damaged(&error))?;
            for result in piece.results {
                is_part = result.partial;
                if let Some(error) = result.error.as_ref() {
                    bail!("{}", refused(error));
                }
                result.series.into_iter().for_each(|rows| take(result.statement_id, rows));
            }
            if let Some(error) = piece.error {
                bail!("{}", refused(&error));
            }
        }
        ensure!(!is_part, BROKEN_OFF);
        Ok(())
    }

    /// Why an answer cannot be read on.
    fn damaged(&self, error: &serde_json::Error) -> anyhow::Error {
        match error.io_error_kind() {
            Some(io::ErrorKind::FileTooLarge) => anyhow!(
                "the answer is longer than {} MiB: ask for less, with --since",
                LONGEST_BYTES >> 20
            ),
            Some(_) if Instant::now() >= self.until => anyhow!(self.late()),
            Some(io::ErrorKind::TimedOut) => anyhow!(self.late()),
            Some(_) => anyhow!("{BROKEN_OFF} ({error})"),
            None if error.is_eof() => anyhow!(BROKEN_OFF),
            None => anyhow!("the answer is not InfluxDB's: check --influx ({error})"),
        }
    }

    /// Its address without the query.
    pub fn shown(&self) -> &str {
        self.url.split("/query?").next().unwrap_or_default()
    }

    fn late(&self) -> String {
        format!(
            "no complete answer within {} s: ask for less, with --since, or set --influx-timeout",
            self.timeout.as_secs()
        )
    }
}

/// A reader that fails after so many bytes.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(count)
    }
}

/// What a status other than 200 means.
fn refusal(answer: Response<Body>) -> anyhow::Error {
    let status = answer.status().as_u16();
    let mut words = Vec::new();
    let _ = answer.into_body().into_reader().take(REFUSAL_BYTES).read_to_end(&mut words);
    let told = serde_json::from_slice::<Value>(&words).ok();
    let told = told.as_ref().and_then(|told| {
        ["error", "message"].iter().find_map(|key| told.get(key).and_then(Value::as_str))
    });
    let cure = match status {
        401 => "give --influx-token-file, or --influx-user with --influx-password-file",
        403 => {
            "this user or token may not read there: GRANT READ ON the database, or another token"
        }
        404 => {
            "check --influx and the database; InfluxDB 2 needs a mapping to the bucket: influx v1 dbrp create"
        }
        300..=399 => "give --influx the address that the server names",
        500..=599 => "the server has a problem of its own: try again later",
        _ => "check --influx: nothing answers InfluxQL there",
    };
    match told {
        Some(told) => anyhow!("it answers {status} ({}): {cure}", clean(told, true)),
        None => anyhow!("it answers {status}: {cure}"),
    }
}

/// What the server says against a statement.
fn refused(error: &str) -> String {
    let error = clean(error, true);
    if error.contains("database not found") || error.contains("retention policy not found") {
        return format!(
            "{error}: name another with --influx-database or --influx-retention-policy"
        );
    }
    format!("it refuses the question: {error}")
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, net::TcpListener, sync::mpsc, thread};

    use super::*;

    #[test]
    fn an_answer_in_pieces_is_read_as_it_comes() {
        let text = r#"{"results":[{"statement_id":0,"series":[{"name":"m","tags":{"job":"7"},"columns":["time","a"],"values":[[5,1]],"partial":true}],"partial":true}]}
{"results":[{"statement_id":1}]}"#;
        let pieces: Vec<Piece> =
            serde_json::Deserializer::from_str(text).into_iter().map(Result::unwrap).collect();
        assert_eq!(pieces[0].results[0].series[0].tags["job"], "7");
        assert_eq!((pieces.len(), pieces[1].results[0].statement_id), (2, 1));
        let told = refused("database not found: x");
        assert!(told.contains("--influx-database"), "{told}");
    }

    /// What is said of the rows where a server answers so, and then closes the connection or (`stays`) does not.
    fn answered(head: &str, body: &'static str, stays: bool) -> Result<usize> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/query?db=x", listener.local_addr().unwrap());
        let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}");
        let (is_over, over) = mpsc::channel::<()>();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            if stays {
                let _ = over.recv();
            }
        });
        let timeout = Duration::from_secs(if stays { 1 } else { 60 });
        let until = Instant::now() + timeout;
        let server_asked =
            Server { agent: Agent::new_with_defaults(), url, authorization: None, until, timeout };
        let mut rows = 0;
        let said = server_asked.ask(&["SELECT".into()], |_, some| rows += some.values.len());
        drop(is_over);
        server.join().unwrap();
        said.map(|()| rows)
    }

    #[test]
    fn an_answer_without_its_end_is_told_as_such() {
        let whole = r#"{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time"],"values":[[1],[2]]}]}]}"#;
        let part = r#"{"results":[{"statement_id":0,"series":[{"name":"m","columns":["time"],"values":[[1]]}],"partial":true}]}"#;
        assert_eq!(answered("", whole, false).unwrap(), 2);
        for (head, body) in [
            ("", ""),
            ("", &whole[..40]),
            ("Content-Length: 4000\r\n", &whole[..40]),
            ("Content-Length: 4000\r\n", whole),
            ("", part),
        ] {
            let said = format!("{:#}", answered(head, body, false).unwrap_err());
            assert!(said.contains("the answer broke off: try again"), "{body}: {said}");
        }
        for body in ["", &whole[..40], whole] {
            let said = format!("{:#}", answered("", body, true).unwrap_err());
            assert!(said.contains("no complete answer within 1 s"), "{body}: {said}");
        }
        let said = format!("{:#}", answered("", "<html>", false).unwrap_err());
        assert!(said.contains("is not InfluxDB's"), "{said}");
    }

    #[test]
    fn what_is_too_long_is_an_error_not_an_end() {
        let mut text = String::new();
        let error = Bounded { inner: &b"12345"[..], left: 4 }.read_to_string(&mut text);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
