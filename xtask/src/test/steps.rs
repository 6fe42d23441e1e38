//! Named, timed steps, and the summary of all of them.

use super::tally::Tally;
use crate::process::say;
use anyhow::{Result, bail};
use std::time::Instant;

/// What has run so far.
#[derive(Default)]
pub struct Steps {
    failed: Vec<String>,
    tally: Tally,
}

impl Steps {
    /// Runs a step, says how long it took, and returns its value if it went well.
    pub fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Option<T> {
        say(format_args!("== {name}"));
        let start = Instant::now();
        let result = work();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(value) => {
                say(format_args!("== {name}: ok in {seconds:.1} s"));
                Some(value)
            }
            Err(error) => {
                say(format_args!("== {name}: FAILED in {seconds:.1} s: {error:#}"));
                self.failed.push(name.to_owned());
                None
            }
        }
    }

    /// Runs a step that runs tests, and counts them.
    pub fn tests(&mut self, name: &str, work: impl FnOnce() -> Result<(Tally, bool)>) {
        let mut counted = Tally::default();
        self.step(name, || {
            let (tally, well) = work()?;
            counted = tally;
            if !well {
                bail!("{counted}");
            }
            if counted == Tally::default() {
                bail!("not a single test ran");
            }
            Ok(())
        });
        self.tally += counted;
    }

    /// Prints what failed, and the sum of all tests as the last line.
    ///
    /// # Errors
    /// When a step failed.
    pub fn finish(self) -> Result<()> {
        for name in &self.failed {
            println!("failed: {name}");
        }
        for name in &self.tally.names {
            println!("failed test: {name}");
        }
        println!("{}", self.tally);
        if self.failed.is_empty() {
            return Ok(());
        }
        bail!("steps that failed: {}", self.failed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_does_not_stop_the_next_but_fails_the_whole() {
        let mut steps = Steps::default();
        assert_eq!(steps.step("breaks", || bail!("so") as Result<()>), None);
        assert_eq!(steps.step("works", || Ok(7)), Some(7));
        let of = |passed, names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            Tally { passed, failed: names.len() as u64, ignored: 0, names }
        };
        steps.tests("counts", || Ok((of(2, &[]), true)));
        steps.tests("stops early", || Ok((of(1, &["a::b"]), false)));
        steps.tests("is empty", || Ok((Tally::default(), true)));
        assert_eq!(steps.tally, of(3, &["a::b"]));
        let error = steps.finish().expect_err("three steps failed").to_string();
        assert_eq!(error, "steps that failed: breaks, stops early, is empty");
    }
}
