//! Words on standard error and answers on standard output. Whether anybody reads them is no reason to fail,
//! as it is for `eprintln!`, which panics on a closed pipe. Where the journal reads, each line carries its
//! level.

use std::{
    fmt::Display,
    io::{self, Write},
    sync::OnceLock,
};

use anyhow::{Context, Result};

use super::text::clean;

/// How much a message matters: syslog's numbers, which the journal reads as a line's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The agent cannot do its work.
    Error = 3,
    /// Something is lost or will be.
    Warning = 4,
    /// Rare and worth knowing.
    Notice = 5,
    /// The usual.
    Info = 6,
    /// For developers.
    Debug = 7,
}

/// Says `message`, after the program's name.
pub fn say(message: impl Display) {
    say_at(Level::Notice, message);
}

/// Says `message` with a level for the journal; elsewhere after the program's name.
pub fn say_at(level: Level, message: impl Display) {
    let text = in_lines(level, &message.to_string(), is_journal());
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints an answer on standard output. A reader that has seen enough, as `head` has, is no trouble.
///
/// # Errors
/// When it cannot be written, as on a full disk.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// `text` as it is written: in the journal every line has its level, or it would lose it.
fn in_lines(level: Level, text: &str, journal: bool) -> String {
    // Names of files and what others answered are in it: no escape sequence reaches a terminal.
    let lines: Vec<_> = text.lines().map(|line| clean(line, true)).collect();
    if !journal {
        return format!("jobtrace: {}\n", lines.join("\n"));
    }
    lines.iter().map(|line| format!("<{}>{line}\n", level as u8)).collect()
}

/// Whether standard error is the journal's own stream.
fn is_journal() -> bool {
    static IS_JOURNAL: OnceLock<bool> = OnceLock::new();
    *IS_JOURNAL.get_or_init(|| {
        let named = std::env::var("JOURNAL_STREAM").unwrap_or_default();
        rustix::fs::fstat(io::stderr()).is_ok_and(|stat| names(&named, stat.st_dev, stat.st_ino))
    })
}

/// Whether `DEVICE:INODE`, as systemd writes it, is this file. A child's redirected output inherits the
/// variable but not the stream, so the variable alone tells nothing.
fn names(stream: &str, device: u64, inode: u64) -> bool {
    stream.split_once(':').is_some_and(|(d, i)| d.parse() == Ok(device) && i.parse() == Ok(inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_gets_levels_and_a_terminal_the_name() {
        assert_eq!(in_lines(Level::Warning, "a\nb", true), "<4>a\n<4>b\n");
        assert_eq!(in_lines(Level::Error, "a\nb", false), "jobtrace: a\nb\n");
        assert_eq!(in_lines(Level::Error, "a\x1b[31m\nb", false), "jobtrace: a?[31m\nb\n");
    }

    #[test]
    fn only_the_very_stream_is_the_journal() {
        for (stream, is_it) in [
            ("8:77", true),
            ("8:78", false),
            ("9:77", false),
            ("", false),
            ("8", false),
            ("a:b", false),
        ] {
            assert_eq!(names(stream, 8, 77), is_it, "{stream}");
        }
    }
}
