//! A shell that is a job of `jobtrace run`, in which loads are run one after another.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::watch::Watch;
use crate::bpf::Program;

/// A job; ended when dropped, as its shell's input is.
pub struct Job {
    jobtrace: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    watch: Watch,
}

impl Job {
    /// Starts `jobtrace run` with `options`; its programs are attached then.
    ///
    /// # Errors
    /// When it cannot be started, or holds no program.
    pub fn start(jobtrace: &Path, options: &[&str]) -> Result<Self> {
        let mut command = Command::new(jobtrace);
        command.arg("run").args(options).args(["--quiet", "--", "sh"]);
        let mut jobtrace = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start `jobtrace run`")?;
        let to = jobtrace.stdin.take();
        let from = BufReader::new(jobtrace.stdout.take().context("it has no output")?);
        let mut job = Self { jobtrace, to, from, watch: Watch::default() };
        job.ask("echo ready")?;
        job.watch.look(&job.jobtrace);
        ensure!(!job.watch.is_empty(), "jobtrace held no BPF program: see `jobtrace doctor`");
        Ok(job)
    }

    /// Runs `words` in it; gives the line that they print.
    ///
    /// # Errors
    /// When they print none.
    pub fn run(&mut self, words: &[PathBuf]) -> Result<String> {
        let quoted = |word: &PathBuf| Some(format!("'{}'", word.to_str()?.replace('\'', r"'\''")));
        let words: Option<Vec<_>> = words.iter().map(quoted).collect();
        self.ask(&words.context("a path that is no text")?.join(" "))
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        let to = self.to.as_mut().context("the shell was told to end")?;
        writeln!(to, "{line}").context("write to the shell of a job")?;
        let mut answer = String::new();
        let read = self.from.read_line(&mut answer).context("read from a job")?;
        ensure!(read > 0, "the job ended at: {line}");
        Ok(answer)
    }

    /// Its jobtrace's programs with what they have run so far.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn read_programs(&self) -> Result<Vec<Program>> {
        self.watch.programs.programs()
    }

    /// Ends it.
    ///
    /// # Errors
    /// When jobtrace fails.
    pub fn end(mut self) -> Result<()> {
        self.to = None;
        let status = self.jobtrace.wait().context("wait for jobtrace")?;
        ensure!(status.success(), "`jobtrace run` failed: {status}");
        Ok(())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.jobtrace.wait();
    }
}
