//! A machine that gives a test nothing: the page cache is emptied each second, so that programs, libraries
//! and files are read from the disk again and again, and one CPU is busy. A process of its own, as root, that
//! lives as long as its standard input is open: it ends with the value that holds the other end, and with us.

use crate::process::{as_root, in_words, say, target_dir};
use anyhow::{Context, Result, bail};
use std::fs;
use std::hint::spin_loop;
use std::io::{self, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The hidden chore of the process.
pub const CHORE: &str = "hostility";
/// The kernel reclaims within seconds what it reclaims by itself, under pressure.
const EVERY: Duration = Duration::from_secs(1);
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The process, under way.
pub struct Hostility(Child);

impl Hostility {
    /// Starts it, through sudo where we are not root.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin() -> Result<Self> {
        let mut command = as_root(target_dir().join("debug/xtask"), &[]);
        command.arg(CHORE).stdin(Stdio::piped());
        say(in_words(&command));
        Ok(Self(command.spawn().with_context(|| format!("start {}", in_words(&command)))?))
    }

    /// Ends it.
    ///
    /// # Errors
    /// When it had ended before: what ran meanwhile met nothing hostile.
    pub fn end(mut self) -> Result<()> {
        let early = self.0.try_wait().context("look at the hostile process")?;
        // Its standard input is closed by this.
        let status = self.0.wait().context("wait for the hostile process")?;
        if early.is_some() || !status.success() {
            bail!("the process that empties the page cache failed, {status}");
        }
        Ok(())
    }
}

/// What the process does.
///
/// # Errors
/// When the page cache cannot be emptied: root is needed.
pub fn work() -> Result<()> {
    thread::spawn(keep_busy);
    each(EVERY, io::stdin(), || {
        // What is dirty stays in memory.
        rustix::fs::sync();
        fs::write(DROP_CACHES, "1").with_context(|| format!("write {DROP_CACHES}"))
    })
}

/// The first CPU that it may use, for ever.
fn keep_busy() {
    let usable = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| usable.is_set(*cpu));
    let mut one = rustix::thread::CpuSet::new();
    one.set(first.unwrap_or(0));
    // Where it is refused, some CPU is busy.
    let _ = rustix::thread::sched_setaffinity(None, &one);
    loop {
        spin_loop();
    }
}

/// Does `work` at once and once in each `span`, until `input` ends or it fails.
fn each(
    span: Duration,
    mut input: impl Read + Send + 'static,
    mut work: impl FnMut() -> Result<()>,
) -> Result<()> {
    let (ended, end) = channel();
    thread::spawn(move || {
        let _ = io::copy(&mut input, &mut io::sink());
        let _ = ended.send(());
    });
    loop {
        work()?;
        if end.recv_timeout(span) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_until_its_input_ends() -> Result<()> {
        let (input, output) = io::pipe()?;
        let (mut output, mut times) = (Some(output), 0);
        each(Duration::from_millis(1), input, || {
            times += 1;
            if times == 3 {
                output = None;
            }
            assert!(times < 1000, "it has not seen the end of its input");
            Ok(())
        })?;
        assert!(times >= 3, "{times}");
        Ok(())
    }

    #[test]
    fn what_fails_is_told() {
        let (input, _output) = io::pipe().expect("a pipe");
        let failed = each(EVERY, input, || bail!("not root"));
        assert!(failed.is_err_and(|error| error.to_string() == "not root"));
    }
}
