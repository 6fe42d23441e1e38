//! A machine that gives a test nothing: the page cache is emptied each second, so that programs, libraries
//! and files are read from the disk again and again, and one CPU is busy. A process of its own, as root, that
//! lives as long as its standard input is open: it ends with the value that holds the other end, and with us.

use crate::process::{as_root, say};
use anyhow::{Context, Result, bail};
use std::process::{Child, Command, Stdio};

/// What the process does: keeps the first CPU busy, and does `$1` at once and once in each `$2` seconds until its
/// input ends (`read` then returns 1) or that fails. The kernel reclaims within seconds what it reclaims by
/// itself, under pressure.
const SCRIPT: &str = "\
cpus=$(taskset -cp $$); while :; do :; done & trap \"kill $!\" EXIT
taskset -cp \"$(echo \"${cpus##*: }\" | grep -o '^[0-9]*')\" $! >/dev/null
while eval \"$1\" || exit 3; read -rt $2; [ $? -gt 128 ]; do :; done";
/// What is dirty stays in memory: it is written first.
const DROP_CACHES: &str = "sync && echo 1 >/proc/sys/vm/drop_caches";

/// The process, under way.
pub struct Hostility(Child);

impl Hostility {
    /// Starts it, through sudo where we are not root.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn begin() -> Result<Self> {
        say("emptying the page cache each second, keeping a CPU busy");
        Self::doing(as_root("bash", &[]), DROP_CACHES, "1")
    }

    fn doing(mut shell: Command, work: &str, seconds: &str) -> Result<Self> {
        shell.args(["-c", SCRIPT, "hostility", work, seconds]).stdin(Stdio::piped());
        Ok(Self(shell.spawn().context("start the hostile process")?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn it_goes_on_until_its_input_ends_and_what_fails_is_told() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let hostile = |work: &str| {
            let mut shell = Command::new("bash");
            shell.current_dir(folder.path()).stderr(Stdio::null());
            Hostility::doing(shell, work, "0.05")
        };
        let begin = Instant::now();
        let works = hostile("mktemp -p . >/dev/null")?;
        let fails = hostile("false")?;
        let times = || folder.path().read_dir().map_or(0, Iterator::count);
        while times() < 2 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{} times", times());
            std::thread::sleep(Duration::from_millis(10));
        }
        works.end()?;
        let most = begin.elapsed().as_millis() / 50 + 1;
        assert!(times() as u128 <= most, "{} times, at most {most}", times());
        assert!(fails.end().is_err());
        Ok(())
    }
}
