//! The records of running jobs, asked for at the agent's socket: the words of both sides. One JSON object on a line
//! each way, `{"ask":"heads"}` or `{"ask":"record","job":"4711"}`, then the connection ends. To
//! `{"ask":"io","job":"4711","for_ns":60000000000}` the answer comes when that time is over, or the client says it has
//! seen enough: by anything more, or by shutting down its side. Lines before it tell how far it is.
//!
//! Root and the group `jobtrace` are told of all jobs, others of their own; file operations are counted for root and
//! the job's owner alone.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
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
/// For how long file operations can be counted.
pub const SHORTEST_IO: Duration = Duration::from_secs(1);
/// Longest.
pub const LONGEST_IO: Duration = Duration::from_secs(60 * 60);
/// Longest wait for the agent, which answers between two readings.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest silence while it counts; loading the programs is part of it.
const SILENCE: Duration = Duration::from_secs(60);
/// Between two looks at whether the caller has seen enough.
const LOOK: Duration = Duration::from_millis(100);

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
    /// The record of a job from now on for a while, with its file operations.
    Io {
        /// Its id.
        job: String,
        /// For how long at most.
        for_ns: u64,
    },
}

/// How far the counting of file operations is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoFar {
    /// Time since it began.
    pub elapsed_ns: u64,
    /// Operations counted.
    pub ops: u64,
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
    so_far: Option<SoFar>,
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

/// How far the answer is.
///
/// # Errors
/// None that its input could cause.
pub fn answer_so_far(so_far: SoFar) -> Result<Vec<u8>> {
    line(&Answer { so_far: Some(so_far), ..Answer::default() })
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
    read_records(ask(socket, &Request::Record { job: job.to_owned() })?)
}

fn read_records(found: Answer) -> Result<Vec<Record>> {
    let records = found.records.context("the agent's answer has no records")?;
    records.iter().map(|record| parse(record.to_string().as_bytes())).collect()
}

/// Has the file operations of `job` counted for `most` by the agent that listens at `socket`. `goes_on` is told how far
/// that is where there is news, and asked ten times a second whether to go on.
///
/// # Errors
/// As [`heads`]; when the agent ends meanwhile.
pub fn io(
    socket: &Path,
    job: &str,
    most: Duration,
    mut goes_on: impl FnMut(Option<SoFar>) -> bool,
) -> Result<Record> {
    let cannot = || format!("cannot ask the agent at {}", socket.display());
    let for_ns = u64::try_from(most.as_nanos())?;
    let stream = asked(socket, &Request::Io { job: job.to_owned(), for_ns })?;
    stream.set_read_timeout(Some(LOOK)).with_context(cannot)?;
    let (mut reader, mut line) = (BufReader::new(&stream), Vec::new());
    let (mut heard, mut is_wanted) = (Instant::now(), true);
    loop {
        let room = (LONGEST_ANSWER_BYTES as u64 + 1).saturating_sub(line.len() as u64);
        let mut news = None;
        match (&mut reader).take(room).read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {
                let answer = read_answer(&line)?;
                let Some(so_far) = answer.so_far else {
                    let found = read_records(answer)?.pop();
                    return found.context("the agent's answer has no records");
                };
                (news, heard) = (Some(so_far), Instant::now());
                line.clear();
            }
            Ok(_) => bail!(
                "the agent at {} has ended meanwhile, and what it had counted is lost: ask again when it runs",
                socket.display()
            ),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                ensure!(
                    heard.elapsed() < SILENCE,
                    "the agent at {} says nothing",
                    socket.display()
                );
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).with_context(cannot),
        }
        if !goes_on(news) && is_wanted {
            is_wanted = false;
            // It may have ended by itself.
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}

/// The connection by which `request` was made.
fn asked(socket: &Path, request: &Request) -> Result<UnixStream> {
    let cannot = || format!("cannot ask the agent at {}", socket.display());
    let mut stream = UnixStream::connect(socket).with_context(cannot)?;
    stream.set_read_timeout(Some(PATIENCE)).with_context(cannot)?;
    stream.set_write_timeout(Some(PATIENCE)).with_context(cannot)?;
    let mut text = serde_json::to_vec(request).with_context(cannot)?;
    text.push(b'\n');
    stream.write_all(&text).with_context(cannot)?;
    Ok(stream)
}

fn ask(socket: &Path, request: &Request) -> Result<Answer> {
    let cannot = || format!("cannot ask the agent at {}", socket.display());
    let stream = asked(socket, request)?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER_BYTES as u64 + 1).read_to_end(&mut answer).with_context(cannot)?;
    ensure!(answer.ends_with(b"\n"), "the agent at {} broke off its answer", socket.display());
    read_answer(&answer)
}

fn read_answer(line: &[u8]) -> Result<Answer> {
    let answer: Answer = serde_json::from_slice(line).context("the agent's answer is damaged")?;
    match &answer.error {
        Some(error) => bail!("the agent refuses: {error}"),
        None => Ok(answer),
    }
}
