//! The records of running jobs, asked for at the agent's socket: the words of both sides. One JSON object on a line
//! each way, `{"ask":"heads"}` or `{"ask":"record","job":"4711"}`, then the connection ends.
//!
//! Root and the group `jobtrace` are told of all jobs, others of their own.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};

use super::{Record, document::document, head::Head, parse};

/// The agent's `state.dir`, unless it is configured.
pub const STATE_DIR: &str = "/run/jobtrace";
/// Where the agent listens, below its `state.dir`.
pub const SOCKET: &str = "query.sock";
/// Longest line of a request: ids are short.
pub const LONGEST_REQUEST_BYTES: usize = 4096;
/// Longest answer.
pub const LONGEST_ANSWER_BYTES: usize = 16 << 20;
/// Longest wait for the agent, which answers between two readings.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The heads of all running jobs that the caller may know of.
    Heads {},
    /// The records of a job and its steps.
    Record {
        /// Its id.
        job: String,
    },
}

/// The answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    heads: Option<Vec<Head>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<Vec<serde_json::Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Request {
    /// The request on a line, without its line feed.
    ///
    /// # Errors
    /// When it is none; the message says why.
    pub fn parse(line: &[u8]) -> Result<Self> {
        ensure!(line.len() <= LONGEST_REQUEST_BYTES, "the request is too long");
        serde_json::from_slice(line).map_err(|error| anyhow!("no request: {error}"))
    }
}

/// The answer with `heads`.
///
/// # Errors
/// When it is too long.
pub fn answer_heads(heads: Vec<Head>) -> Result<Vec<u8>> {
    line(&Answer { heads: Some(heads), ..Answer::default() })
}

/// The answer with `records`.
///
/// # Errors
/// When it is too long.
pub fn answer_records(records: &[Record]) -> Result<Vec<u8>> {
    let document = |record| -> Result<_> { Ok(serde_json::from_str(&document(record)?)?) };
    let records = records.iter().map(document).collect::<Result<_>>()?;
    line(&Answer { records: Some(records), ..Answer::default() })
}

/// The answer that there is none.
pub fn answer_error(error: &anyhow::Error) -> Vec<u8> {
    line(&Answer { error: Some(format!("{error:#}")), ..Answer::default() }).unwrap_or_default()
}

fn line(answer: &Answer) -> Result<Vec<u8>> {
    let mut line = serde_json::to_vec(answer).context("cannot write the answer")?;
    line.push(b'\n');
    ensure!(line.len() <= LONGEST_ANSWER_BYTES, "the answer is too long");
    Ok(line)
}

/// The heads of the jobs that run now, from the agent that listens at `socket`; their `file` may not be there yet.
///
/// # Errors
/// When no agent answers, or refuses; the message says why.
pub fn heads(socket: &Path) -> Result<Vec<Head>> {
    ask(socket, &Request::Heads {})?.heads.context("the agent's answer has no heads")
}

/// The records of `job` and its steps, if it runs, from the agent that listens at `socket`.
///
/// # Errors
/// As [`heads`].
pub fn records(socket: &Path, job: &str) -> Result<Vec<Record>> {
    let found = ask(socket, &Request::Record { job: job.to_owned() })?;
    let records = found.records.context("the agent's answer has no records")?;
    records.iter().map(|record| parse(record.to_string().as_bytes())).collect()
}

fn ask(socket: &Path, request: &Request) -> Result<Answer> {
    let cannot = || format!("cannot ask the agent at {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(cannot)?;
    stream.set_read_timeout(Some(PATIENCE)).with_context(cannot)?;
    stream.set_write_timeout(Some(PATIENCE)).with_context(cannot)?;
    let mut text = serde_json::to_vec(request).with_context(cannot)?;
    text.push(b'\n');
    stream.write_all(&text).with_context(cannot)?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER_BYTES as u64 + 1).read_to_end(&mut answer).with_context(cannot)?;
    ensure!(answer.ends_with(b"\n"), "the agent at {} broke off its answer", socket.display());
    let answer: Answer =
        serde_json::from_slice(&answer).context("the agent's answer is damaged")?;
    match &answer.error {
        Some(error) => bail!("the agent refuses: {error}"),
        None => Ok(answer),
    }
}
