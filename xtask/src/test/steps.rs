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
                bail!("{tally}");
            }
            if tally == Tally::default() {
                bail!("not a single test ran");
            }
            Ok(())
        });
        self.tally += counted;
    }

    /// Prints the summary as the last line.
    ///
    /// # Errors
    /// When a step failed.
    pub fn finish(self) -> Result<()> {
        for name in &self.failed {
            println!("failed: {name}");
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
        steps.tests("counts", || Ok((Tally { passed: 2, failed: 0, ignored: 0 }, true)));
        steps.tests("stops early", || Ok((Tally { passed: 1, failed: 1, ignored: 0 }, false)));
        steps.tests("is empty", || Ok((Tally::default(), true)));
        assert_eq!(steps.tally, Tally { passed: 3, failed: 1, ignored: 0 });
        let error = steps.finish().expect_err("three steps failed").to_string();
        assert_eq!(error, "steps that failed: breaks, stops early, is empty");
    }
}
