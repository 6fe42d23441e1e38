//! Sums cargo's `test result:` lines while passing everything on to the user.

use crate::process::{in_words, say};
use anyhow::{Context, Result};
use std::fmt;
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::path::Path;
use std::process::{Command, Stdio};

/// How many tests ran and how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were left out; the house has none.
    pub ignored: u64,
    /// Names of those that failed, each with its program's where that is known; else how a program failed.
    pub names: Vec<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.names.extend(other.names);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

/// Runs a command that runs tests; returns the sum and whether the command ended well.
///
/// # Errors
/// When it cannot be started or read.
pub fn run(command: &mut Command) -> Result<(Tally, bool)> {
    say(in_words(command));
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", in_words(command)))?;
    let mut tally = Tally::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.with_context(|| format!("read from {}", in_words(command)))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if let Some(result) = parse(&line) {
                tally += result;
            } else if let Some(name) = failed(&line) {
                tally.names.push(with_program(command, name));
            }
        }
    }
    let status = child.wait().with_context(|| format!("wait for {}", in_words(command)))?;
    // A program that crashes, or runs no test at all, would else fail the run without a name.
    if !status.success() && tally.names.is_empty() {
        tally.names.push(with_program(command, &status.to_string()));
    }
    Ok((tally, status.success()))
}

/// `test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`
fn parse(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |name: &str| {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(name)?.strip_suffix(' '))
            .and_then(|number| number.parse().ok())
    };
    let (passed, failed, ignored) = (count("passed")?, count("failed")?, count("ignored")?);
    Some(Tally { passed, failed, ignored, names: Vec::new() })
}

/// The test that a line says has failed: `test agent::starts ... FAILED`.
fn failed(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// A test's name behind that of the program that `command` runs, which cargo builds as `NAME-HASH`.
fn with_program(command: &Command, test: &str) -> String {
    let mut words = std::iter::once(command.get_program()).chain(command.get_args());
    let program = words.find_map(|word| Path::new(word).file_name()?.to_str()?.rsplit_once('-'));
    match program {
        Some((name, hash)) if hash.len() == 16 => format!("{name}: {test}"),
        _ => test.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_read_and_others_are_not() {
        let ok = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.10s";
        let of = |passed, failed, ignored| Tally { passed, failed, ignored, names: Vec::new() };
        assert_eq!(parse(ok), Some(of(5, 0, 1)));
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s";
        assert_eq!(parse(bad), Some(of(3, 2, 0)));
        assert_eq!(parse("test a::b ... ok"), None);
        assert_eq!(parse("test result: odd"), None);
    }

    #[test]
    fn output_passes_through_and_is_summed() -> Result<()> {
        let line = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured";
        let script = format!("echo '{line}'; echo 'test a::b ... FAILED'; echo '{line}'; exit 3");
        let (tally, well) = run(Command::new("sh").args(["-c", &script]))?;
        assert_eq!((tally.to_string().as_str(), well), ("4 passed, 0 failed", false));
        assert_eq!(tally.names, ["a::b"]);
        let (tally, well) = run(Command::new("sh").args(["-c", "kill -ABRT $$"]))?;
        assert!(!well && tally.names.len() == 1 && tally.names[0].contains("signal: 6"));
        Ok(())
    }

    #[test]
    fn a_test_that_failed_is_named_with_its_program() {
        let of = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            with_program(command.args(&words[1..]), "a::b")
        };
        assert_eq!(of(&["sudo", "/t/deps/live_wait-0123456789abcdef"]), "live_wait: a::b");
        assert_eq!(of(&["cargo", "test", "--no-fail-fast"]), "a::b");
        assert_eq!((failed("test a::b ... ok"), failed("test result: FAILED.")), (None, None));
    }
}
