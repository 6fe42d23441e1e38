//! Why a file was refused: what stands beside it in `failed`, and the short form for the log.
//!
//! Pure.

use std::{fmt::Write, io};

use super::{answer::Answer, batches::Batch};
use crate::base::text::clean;

/// Longest quotation of a server in the log.
const SHORT_CHARS: usize = 300;
/// Most refusals that are written down of one file.
const WRITTEN: usize = 100;

/// Lines that were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which: `lines 1 to 7`, or none where the file itself is not whole.
    place: String,
    /// By whom and why.
    words: String,
}

impl Refusal {
    /// By the server.
    pub fn of_the_server(batch: &Batch, answer: &Answer) -> Self {
        let place = if batch.first == batch.last {
            format!("line {}", batch.first)
        } else {
            format!("within lines {} to {}", batch.first, batch.last)
        };
        Self { place, words: format!("the server answers {}: {}", answer.status, answer.body) }
    }

    /// By us: it is not line protocol, or not all of it.
    pub fn of_the_text(error: &io::Error) -> Self {
        let words = format!("the file is incomplete: {error}; the rest was not sent");
        Self { place: String::new(), words }
    }
}

/// The file beside the refused one. `when` is words for people.
pub fn text(name: &str, url: &str, when: &str, refusals: &[Refusal]) -> String {
    let mut text = format!("{name}\nrefused {when} by {url}\n");
    text += "All other lines of the file are stored. Once the cause is fixed, move the file back into\n";
    text += "the outbox: lines that are sent twice are stored once.\n";
    for Refusal { place, words } in refusals.iter().take(WRITTEN) {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let _ = write!(text, "\n{place}{words}\n");
    }
    if let Some(more) = refusals.len().checked_sub(WRITTEN).filter(|more| *more > 0) {
        let _ = write!(text, "\nand {more} more\n");
    }
    text
}

/// The first refusal, for the log.
pub fn first(refusals: &[Refusal]) -> String {
    refusals.first().map_or(String::new(), |refusal| short(&refusal.words))
}

/// A server's words in one line, bounded and fit for a terminal.
pub fn short(words: &str) -> String {
    let cut: String = words.chars().take(SHORT_CHARS).collect();
    let more = if cut.len() < words.len() { "…" } else { "" };
    clean(&cut, true) + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(first: u64, last: u64) -> Refusal {
        let batch = Batch { text: b"a 1\n".to_vec(), lines: 1, first, last };
        let body = "{\"error\":\"partial write\"}".into();
        Refusal::of_the_server(
            &batch,
            &Answer { status: 400, body, retry_after: None, location: None },
        )
    }

    #[test]
    fn the_reason_names_file_place_server_and_words() {
        let cut = Refusal::of_the_text(&io::Error::new(io::ErrorKind::UnexpectedEof, "early end"));
        let text =
            text("a.lp.gz", "http://h/write?db=x", "today", &[refusal(3, 9), refusal(4, 4), cut]);
        for part in [
            "a.lp.gz\nrefused today by http://h/write?db=x\n",
            "\nwithin lines 3 to 9: the server answers 400: {\"error\":\"partial write\"}\n",
            "\nline 4: the server",
            "\nthe file is incomplete: early end; the rest was not sent\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn words_are_bounded() {
        let many = vec![refusal(1, 1); 103];
        assert!(text("a", "b", "c", &many).ends_with("\nand 3 more\n"));
        assert!(!text("a", "b", "c", &many[..100]).contains("more\n\n"));
        let long = short(&"\u{1b}x".repeat(400));
        assert!(long.chars().count() == SHORT_CHARS + 1 && !long.contains('\u{1b}'), "{long}");
    }
}
