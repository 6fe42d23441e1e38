//! `jobtrace agent` under test as a daemon: its configuration, its life, its words. What it wrote is in
//! [`files`], jobs for it in [`site`].

use std::{
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    rig::{daemon::Daemon, wait_for},
    stalls::Stalls,
    traced::program,
    work::monotonic_ns,
};

pub use crate::rig::PATIENCE;

pub mod files;
pub mod kernel;
pub mod site;

/// What the agent says once it measures.
const STARTED: &str = "tracing the jobs of";

/// An agent's configuration and folders, in use by one agent after the other.
#[derive(Debug)]
pub struct Setup {
    folder: TempDir,
    spool: PathBuf,
    records: PathBuf,
}

impl Setup {
    /// One that reads every second, unless `more` says otherwise, and has a spool of its own. `more`
    /// ends the file: keys, then tables.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn new(more: &str) -> Result<Self> {
        Self::with(None, None, more)
    }

    /// As [`Self::new`], with the spool in `spool`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_spool(spool: &Path, more: &str) -> Result<Self> {
        Self::with(Some(spool), None, more)
    }

    /// As [`Self::new`], with spool and records in these folders, where they are named.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with(spool: Option<&Path>, records: Option<&Path>, more: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("jobtrace-daemon-").tempdir()?;
        let within = |name: &str| folder.path().join(name);
        let spool = spool.map_or_else(|| within("spool"), Path::to_owned);
        let records = records.map_or_else(|| within("records"), Path::to_owned);
        let setup = Self { folder, spool, records };
        setup.configure(more)?;
        Ok(setup)
    }

    /// Writes the configuration anew.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn configure(&self, more: &str) -> Result<()> {
        let (state, records) = (self.state(), &self.records);
        let interval = if more.contains("interval =") { "" } else { "interval = \"1s\"\n" };
        let text = format!(
            "{interval}hierarchy = \"v2\"\nhost = \"node1\"\nspool.dir = {:?}\n\
             state.dir = {state:?}\nrecords.dir = {records:?}\n{more}\n",
            self.spool
        );
        fs::write(self.file(), text).context("cannot write the configuration")
    }

    /// The configuration's file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("agent.toml")
    }

    /// Where finished files appear.
    pub fn outbox(&self) -> PathBuf {
        self.spool.join("outbox")
    }

    /// Where files are before they are finished.
    pub fn tmp(&self) -> PathBuf {
        self.spool.join("tmp")
    }

    /// Where records are.
    pub fn records(&self) -> &Path {
        &self.records
    }

    /// The agent's own files.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// `jobtrace agent` with this configuration and `options`, not yet started.
    ///
    /// # Errors
    /// When there is no program to test.
    pub fn command(&self, options: &[&str]) -> Result<Command> {
        let mut command = Command::new(program()?);
        command.arg("agent").arg("--config").arg(self.file()).args(options);
        Ok(command)
    }

    /// Starts an agent and waits until it measures.
    ///
    /// # Errors
    /// When it does not, with its last words.
    pub fn start(&self) -> Result<Agent> {
        let log = self.folder.path().join("log");
        let before = monotonic_ns();
        let daemon = Daemon::start(&mut self.command(&[])?, &log)?;
        let mut agent = Agent { daemon, log, begun: before..=before, ended: 0..=0 };
        agent.wait_for_words(STARTED, 1)?;
        agent.begun = before..=monotonic_ns();
        Ok(agent)
    }
}

/// An agent that runs; it ends with its value.
#[derive(Debug)]
pub struct Agent {
    daemon: Daemon,
    log: PathBuf,
    /// When it began to measure and when it ceased, as seen from outside: not before, and at the latest.
    begun: RangeInclusive<u64>,
    ended: RangeInclusive<u64>,
}

impl Agent {
    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.daemon.pid()
    }

    /// All that it has said.
    pub fn words(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// How often it has said `words`.
    pub fn said(&self, words: &str) -> usize {
        self.words().matches(words).count()
    }

    /// Waits until it has said `words` so often.
    ///
    /// # Errors
    /// When it does not, or ends.
    pub fn wait_for_words(&mut self, words: &str, times: usize) -> Result<()> {
        let log = self.log.clone();
        self.daemon.wait_until(&format!("{words:?} is said"), PATIENCE, || {
            let text = fs::read(&log).unwrap_or_default();
            (String::from_utf8_lossy(&text).matches(words).count() >= times).then_some(())
        })
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        self.daemon.signal(signal);
    }

    /// Tells it to end by `signal`; its status, and how long that took, less the machine's own longest stall.
    ///
    /// # Errors
    /// When it does not end.
    pub fn end_by(&mut self, signal: i32) -> Result<(ExitStatus, Duration)> {
        let (stalls, begin, before) = (Stalls::watch(), Instant::now(), monotonic_ns());
        self.signal(signal);
        let status = wait_for("the agent's end", PATIENCE, || self.daemon.ended())
            .with_context(|| self.words())?;
        self.ended = before..=monotonic_ns();
        Ok((status, begin.elapsed().saturating_sub(stalls.longest())))
    }

    /// For how long it measured, now that it has ended: at least, and at most.
    pub fn life_ns(&self) -> RangeInclusive<u64> {
        self.ended.start() - self.begun.end()..=self.ended.end() - self.begun.start()
    }

    /// Ends it by SIGTERM, which must go well.
    ///
    /// # Errors
    /// When it does not, with all its words.
    pub fn end_well(&mut self) -> Result<Duration> {
        let (status, took) = self.end_by(libc::SIGTERM)?;
        anyhow::ensure!(status.success(), "{status}: {}", self.words());
        Ok(took)
    }
}
