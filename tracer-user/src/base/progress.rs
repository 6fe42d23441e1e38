//! How far a command is that takes its time: one line on the terminal that is written over, and gone at the end.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

/// Whoever waits no longer than this is told nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two changes of the line.
const BETWEEN: Duration = Duration::from_millis(100);

/// The line; what is dropped leaves none.
pub struct Line<W: Write> {
    out: Option<W>,
    /// Characters of what is shown.
    width: usize,
}

impl Line<io::Stderr> {
    /// On standard error, where that is a terminal.
    pub fn on_terminal() -> Self {
        let out = io::stderr();
        Self::new(out.is_terminal().then_some(out))
    }
}

impl<W: Write> Line<W> {
    fn new(out: Option<W>) -> Self {
        Self { out, width: 0 }
    }

    /// Shows `text` in place of what was shown. A terminal that is gone is no trouble.
    pub fn show(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        // Blanks cover what was longer; no escape sequence is needed.
        let line = format!("\r{text:<width$}", width = self.width);
        self.width = text.chars().count();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

impl<W: Write> Drop for Line<W> {
    fn drop(&mut self) {
        if self.width > 0 {
            self.show("");
            self.show("");
        }
    }
}

/// How many of a number of things are done.
pub struct Progress<W: Write> {
    line: Line<W>,
    what: &'static str,
    of: usize,
    done: usize,
    begin: Instant,
    /// When it was last written.
    told: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// Of `of` things that are done one by one, on standard error where that is a terminal.
    pub fn of(what: &'static str, of: usize) -> Self {
        Self::new(Line::on_terminal(), what, of, Instant::now())
    }
}

impl<W: Write> Progress<W> {
    fn new(line: Line<W>, what: &'static str, of: usize, begin: Instant) -> Self {
        Self { line, what, of, done: 0, begin, told: None }
    }

    /// One more is done.
    pub fn step(&mut self) {
        if self.line.out.is_some() {
            self.step_at(Instant::now());
        }
    }

    fn step_at(&mut self, now: Instant) {
        self.done += 1;
        let is_due = match self.told {
            None => now.duration_since(self.begin) >= PATIENCE,
            Some(told) => now.duration_since(told) >= BETWEEN,
        };
        if is_due {
            self.line.show(&format!("jobtrace: {}: {} of {}", self.what, self.done, self.of));
            self.told = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written when the steps come at these times.
    fn written(steps_ms: &[u64]) -> String {
        let (mut out, begin) = (Vec::new(), Instant::now());
        let mut progress = Progress::new(Line::new(Some(&mut out)), "reading heads", 30, begin);
        steps_ms.iter().for_each(|ms| progress.step_at(begin + Duration::from_millis(*ms)));
        drop(progress);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_shorter_line_covers_a_longer_one() {
        let mut out = Vec::new();
        let mut line = Line::new(Some(&mut out));
        line.show("999 B");
        line.show("1 K");
        drop(line);
        assert_eq!(String::from_utf8(out).unwrap(), "\r999 B\r1 K  \r   \r");
        let mut nowhere = Line::new(None::<Vec<u8>>);
        nowhere.show("x");
    }

    #[test]
    fn who_waits_is_told_and_nothing_of_it_stays() {
        assert_eq!(written(&[10, 999]), "");
        let told = written(&[10, 1000, 1050, 1100]);
        let (first, last) =
            ("jobtrace: reading heads: 2 of 30", "jobtrace: reading heads: 4 of 30");
        let blank = " ".repeat(last.len());
        assert_eq!(told, format!("\r{first}\r{last}\r{blank}\r"));
    }
}
