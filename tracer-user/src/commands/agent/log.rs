//! The agent's log: what comes from outside made harmless, repetitions counted instead of written.
//! Deciding is pure ([`Repeats`]); [`Log`] has the lock and writes.

use std::{
    collections::HashMap,
    fmt::Display,
    sync::{Arc, Mutex},
};

use crate::base::{
    clock,
    say::{Level, say_at},
    text::clean,
};

/// Within this time after a message the same one is only counted.
const QUIET_NS: u64 = 60_000_000_000;
/// Distinct messages remembered; beyond, the one whose time is up first makes room.
const REMEMBERED: usize = 64;

/// A line to be written.
type Line = (Level, String);

/// Which messages were said lately, and how often since.
#[derive(Debug, Default)]
pub struct Repeats {
    lately: HashMap<Line, Said>,
}

#[derive(Clone, Copy, Debug)]
struct Said {
    at_ns: u64,
    more: u64,
}

impl Repeats {
    /// The lines to write now that `message` came: counts that are due first, then itself unless it was
    /// said less than a minute ago. `now_ns` never runs backwards.
    pub fn admit(&mut self, now_ns: u64, level: Level, message: &str) -> Vec<Line> {
        let mut lines = self.due(now_ns);
        let line = (level, clean(message, true));
        if let Some(said) = self.lately.get_mut(&line) {
            said.more += 1;
            return lines;
        }
        if self.lately.len() >= REMEMBERED {
            let oldest = self.lately.iter().min_by_key(|(_, said)| said.at_ns);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                let said = self.lately.remove(&key);
                lines.extend(said.and_then(|said| count(&key, said, now_ns)));
            }
        }
        self.lately.insert(line.clone(), Said { at_ns: now_ns, more: 0 });
        lines.push(line);
        lines
    }

    /// The counts of messages whose minute is over; they may then be said again.
    pub fn due(&mut self, now_ns: u64) -> Vec<Line> {
        self.take(now_ns, |said| now_ns.saturating_sub(said.at_ns) >= QUIET_NS)
    }

    /// All counts, due or not: the end.
    pub fn rest(&mut self, now_ns: u64) -> Vec<Line> {
        self.take(now_ns, |_| true)
    }

    fn take(&mut self, now_ns: u64, is_due: impl Fn(&Said) -> bool) -> Vec<Line> {
        let mut over: Vec<_> = self.lately.extract_if(|_, said| is_due(said)).collect();
        // The map has no order of its own.
        over.sort_by(|(a, x), (b, y)| (x.at_ns, &a.1).cmp(&(y.at_ns, &b.1)));
        over.iter().filter_map(|(line, said)| count(line, *said, now_ns)).collect()
    }
}

/// What was held back of one message.
fn count((level, message): &Line, said: Said, now_ns: u64) -> Option<Line> {
    let seconds = now_ns.saturating_sub(said.at_ns).div_ceil(1_000_000_000);
    (said.more > 0)
        .then(|| (*level, format!("{message} (the same {} more times in {seconds} s)", said.more)))
}

/// The log of one agent, on standard error.
#[derive(Debug)]
pub struct Log {
    least: Level,
    repeats: Mutex<Repeats>,
}

impl Log {
    /// A log that leaves out what matters less than `least`.
    #[must_use]
    pub fn new(least: Level) -> Self {
        Self { least, repeats: Mutex::default() }
    }

    /// Writes `message`, or counts it where it was written less than a minute ago.
    pub fn at(&self, level: Level, message: impl Display) {
        if level <= self.least {
            let message = message.to_string();
            self.write(|repeats, now_ns| repeats.admit(now_ns, level, &message));
        }
    }

    /// Something does not work.
    pub fn error(&self, message: impl Display) {
        self.at(Level::Error, message);
    }

    /// Something is lost.
    pub fn warning(&self, message: impl Display) {
        self.at(Level::Warning, message);
    }

    /// Rare and worth knowing.
    pub fn notice(&self, message: impl Display) {
        self.at(Level::Notice, message);
    }

    /// What was done for somebody, or could not be: each time is written, however alike.
    pub fn each(&self, level: Level, message: impl Display) {
        if level <= self.least {
            self.write(|_, _| vec![(level, clean(&message.to_string(), true))]);
        }
    }

    /// The usual.
    pub fn info(&self, message: impl Display) {
        self.at(Level::Info, message);
    }

    /// Writes the counts that are due; to be called at each interval, so that the last of a row of
    /// repetitions is told without a next message.
    pub fn tick(&self) {
        self.write(Repeats::due);
    }

    fn write(&self, decide: impl FnOnce(&mut Repeats, u64) -> Vec<Line>) {
        // A thread that panicked while it held the lock left nothing half-done that matters here.
        let mut repeats = self.repeats.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (level, line) in decide(&mut repeats, clock::monotonic_ns()) {
            say_at(level, line);
        }
    }
}

/// Has what was held back told when it goes: threads that do not end with the agent may have the log still.
pub struct EndOfLog(pub Arc<Log>);

impl Drop for EndOfLog {
    fn drop(&mut self) {
        self.0.write(Repeats::rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn words(lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn repetitions_are_counted_and_told() {
        let mut repeats = Repeats::default();
        let mut at = |s, text: &str| words(repeats.admit(s * S, Level::Warning, text));
        assert_eq!(at(0, "disk full"), ["disk full"]);
        assert_eq!(at(1, "disk full"), [""; 0]);
        assert_eq!(at(2, "other"), ["other"]);
        assert_eq!(at(59, "disk full"), [""; 0]);
        assert_eq!(at(60, "third"), ["disk full (the same 2 more times in 60 s)", "third"]);
        assert_eq!(at(61, "disk full"), ["disk full"]);
        assert_eq!(words(repeats.due(62 * S)), [""; 0]);
        assert_eq!(words(repeats.admit(63 * S, Level::Warning, "third")), [""; 0]);
        assert_eq!(words(repeats.rest(64 * S)), ["third (the same 1 more times in 4 s)"]);
        assert_eq!(words(repeats.rest(65 * S)), [""; 0]);
    }

    #[test]
    fn a_flood_of_different_messages_is_bounded_and_loses_no_count() {
        let mut repeats = Repeats::default();
        let mut told = 0;
        for i in 0..1000_u64 {
            for _ in 0..2 {
                told += repeats.admit(i, Level::Info, &format!("message {i}")).len();
            }
            assert!(repeats.lately.len() <= REMEMBERED);
        }
        told += repeats.rest(1000).len();
        assert_eq!(told, 2000, "each message once and its repetition's count once");
    }

    #[test]
    fn what_comes_from_outside_cannot_forge_a_line() {
        let lines = Repeats::default().admit(0, Level::Info, "job a\n<3>forged\x1b[2J");
        assert_eq!(words(lines), ["job a <3>forged?[2J"]);
    }
}
