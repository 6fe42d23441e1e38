//! One file to the server: its batches, halved where they are too large.
//!
//! Neither files nor sockets: a reader and what posts come in, so that every course can be tried.

use std::{
    io::{self, BufRead},
    time::Duration,
};

use super::{
    answer::{Answer, Verdict, judge},
    batches::{Batch, Batches},
    reason::Refusal,
};
use crate::server::{http::Trouble, target::Api};

/// Below this a server's 413 is about something else than the size.
const SMALLEST: usize = 1;

/// What was sent of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Lines of points that the server took.
    pub lines: u64,
    /// Their text.
    pub bytes: u64,
    /// Requests, whatever became of them.
    pub requests: u64,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The server took all.
    Taken,
    /// It will never take some of it as it is.
    Refused(Vec<Refusal>),
    /// To be tried again from the begin, not before the time that the server named.
    Later(String, Option<Duration>),
    /// Nothing can be sent until somebody changes something.
    Stop(String),
}

/// Sends all lines of `text` by `post`, in batches of at most `limit` bytes; a server that finds them
/// too large lowers it. What was taken before an end other than [`End::Taken`] may be sent again: the
/// same points under the same stamps.
///
/// # Errors
/// When the text cannot be read for a reason that lies outside it.
pub fn send(
    text: impl BufRead,
    limit: &mut usize,
    api: Api,
    mut post: impl FnMut(&[u8]) -> Result<Answer, Trouble>,
) -> io::Result<(End, Sent)> {
    let (mut sent, mut refusals) = (Sent::default(), Vec::new());
    let mut batches = Batches::new(text);
    // What is to be sent next, in reverse.
    let mut waiting: Vec<Batch> = Vec::new();
    loop {
        let batch = match waiting.pop() {
            Some(batch) => batch,
            None => match batches.next(*limit) {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(error) if is_of_the_text(&error) => {
                    refusals.push(Refusal::of_the_text(&error));
                    break;
                }
                Err(error) => return Err(error),
            },
        };
        // What a lowered limit would refuse is not tried.
        if batch.text.len() > *limit
            && let Some((first, second)) = batch.halves()
        {
            waiting.push(second);
            waiting.push(first);
            continue;
        }
        sent.requests += 1;
        let answer = match post(&batch.text) {
            Ok(answer) => answer,
            Err(Trouble::Later(why)) => return Ok((End::Later(why, None), sent)),
            Err(Trouble::Stop(why)) => return Ok((End::Stop(why), sent)),
        };
        match judge(&answer, api) {
            Verdict::Taken => {
                sent.lines += batch.lines;
                sent.bytes += batch.text.len() as u64;
            }
            Verdict::Refused => refusals.push(Refusal::of_the_server(&batch, &answer)),
            Verdict::TooLarge => match batch.halves() {
                Some((first, second)) => {
                    *limit = (batch.text.len() / 2).clamp(SMALLEST, *limit);
                    waiting.push(second);
                    waiting.push(first);
                }
                None => refusals.push(Refusal::of_the_server(&batch, &answer)),
            },
            Verdict::Later(wait) => return Ok((End::Later(words(&answer), wait), sent)),
            Verdict::Stop(cure) => {
                return Ok((End::Stop(format!("{}; {cure}", words(&answer))), sent));
            }
        }
    }
    let end = if refusals.is_empty() { End::Taken } else { End::Refused(refusals) };
    Ok((end, sent))
}

/// Status and words of an answer, for people.
fn words(answer: &Answer) -> String {
    let Answer { status, body, location, .. } = answer;
    match location {
        Some(place) if (300..400).contains(status) => {
            format!("the server answers {status} and redirects to {}", super::reason::short(place))
        }
        _ if body.is_empty() => format!("the server answers {status}"),
        _ => format!("the server answers {status}: {}", super::reason::short(body)),
    }
}

/// Whether the file's content is to blame, and not the disk.
fn is_of_the_text(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidInput | InvalidData)
}
