//! The agent under test: a process of its own with a configuration and folders of its own, which dies
//! with the thread that started it; and what it wrote. Knows nothing of how the agent works inside.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use jobtrace::record::{Record, head::Head, running, store};
use tempfile::TempDir;

use crate::{
    rig::{PATIENCE, daemon::Daemon, wait_for},
    traced::program,
};

mod points;

pub use points::{Point, Points, Value};

/// It promises to end within two seconds, or twelve while the disk takes records, of its own time.
const END: Duration = Duration::from_secs(20);

/// Its configuration, in its folder.
const CONFIG: &str = "jobtrace.toml";

/// A running agent that reads once a second, unless its settings say otherwise.
#[derive(Debug)]
pub struct Agent {
    daemon: Daemon,
    folder: TempDir,
}

impl Agent {
    /// Starts one and waits until it traces. `settings` are lines of its configuration before the first
    /// table, say `hierarchy = "freezer"`. Unless they say otherwise there are slots for whatever else
    /// is on the machine.
    ///
    /// # Errors
    /// When it does not start: the end of its log says why.
    pub fn start(settings: &str) -> Result<Self> {
        Self::start_by(Command::new(program()?), settings)
    }

    /// As [`Self::start`], through `command`: jobtrace, in an environment of the test's.
    ///
    /// # Errors
    /// As there.
    pub fn start_by(mut command: Command, settings: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("jobtrace-agent-").tempdir()?;
        configure(folder.path(), settings)?;
        command.arg("agent").arg("--config").arg(folder.path().join(CONFIG));
        command.env_remove("NOTIFY_SOCKET");
        let log = folder.path().join("log");
        let mut daemon = Daemon::start(&mut command, &log)?;
        daemon.wait_until("the agent traces", PATIENCE, || {
            fs::read_to_string(&log).ok()?.contains("tracing the jobs").then_some(())
        })?;
        Ok(Self { daemon, folder })
    }

    /// Gives it other settings and sends SIGHUP; that it took them over is for the caller to see.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn reload(&self, settings: &str) -> Result<()> {
        configure(self.folder.path(), settings)?;
        self.signal(libc::SIGHUP);
        Ok(())
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.daemon.pid()
    }

    /// Sends it `signal`.
    pub fn signal(&self, signal: i32) {
        self.daemon.signal(signal);
    }

    /// All it has said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The thread that samples GPUs: another one after each reload of its settings.
    pub fn sampler_thread(&self) -> Option<OsString> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).ok()?.flatten();
        let mut samplers = threads.filter(|thread| {
            fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "gpu")
        });
        samplers.next().map(|thread| thread.file_name())
    }

    /// Its descriptors now.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Its resident memory now, without the pages of files.
    pub fn anonymous_bytes(&self) -> u64 {
        anonymous_bytes(self.pid())
    }

    /// The jobs of which it has saved a record so far.
    ///
    /// # Errors
    /// When there are none.
    pub fn recorded(&self) -> Result<BTreeSet<String>> {
        let found = store::read_heads(&self.records_dir(), |_| true)?;
        Ok(found.heads.into_iter().filter_map(|(_, head)| head.job).collect())
    }

    /// Where it saves records.
    pub fn records_dir(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    /// Where it is asked about running jobs.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("state").join(running::SOCKET)
    }

    /// What it has written so far.
    ///
    /// # Errors
    /// When a file is no line protocol.
    pub fn points(&self) -> Result<Points> {
        Points::read(&self.outbox())
    }

    /// Waits until everything done up to now has been measured and written: two ticks.
    ///
    /// # Errors
    /// When no files come.
    pub fn settle(&self) -> Result<Points> {
        let count = || fs::read_dir(self.outbox()).map_or(0, Iterator::count);
        let before = count();
        wait_for("two ticks", PATIENCE, || (count() >= before + 2).then_some(()))?;
        self.points()
    }

    /// Waits until what it has written gives a value.
    ///
    /// # Errors
    /// When it does not within `patience`, with the end of its log.
    pub fn wait_for<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&Points) -> Option<T>,
    ) -> Result<T> {
        wait_for(what, patience, || look(&self.points().ok()?))
            .with_context(|| self.daemon.last_lines())
    }

    /// Ends it as an administrator would, and gives all that it wrote.
    ///
    /// # Errors
    /// When it does not end well, and in time.
    pub fn stop(self) -> Result<Points> {
        self.stop_with_records().map(|(points, _)| points)
    }

    /// As [`Self::stop`], with the records that it saved, each found by its head.
    ///
    /// # Errors
    /// As there, and when one is damaged.
    pub fn stop_with_records(mut self) -> Result<(Points, Vec<Record>)> {
        self.daemon.signal(libc::SIGTERM);
        let begin = Instant::now();
        let status = wait_for("the agent's end", END, || self.daemon.ended())?;
        ensure!(status.success(), "the agent ended, {status}: {}", self.daemon.last_lines());
        eprintln!("the agent ended in {:?}", begin.elapsed());
        Ok((self.points()?, records(&self.records_dir())?))
    }

    fn outbox(&self) -> PathBuf {
        self.folder.path().join("spool/outbox")
    }
}

/// The resident memory of a process now, without the pages of files; 0 where it has ended.
pub fn anonymous_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// The records in a folder of an agent's, each found by its head.
///
/// # Errors
/// When one is damaged or lacks its head.
pub fn records(dir: &Path) -> Result<Vec<Record>> {
    let found = store::read_heads(dir, |_| true)?;
    ensure!(found.damaged.is_empty(), "{:?}", found.damaged);
    let mut records = Vec::new();
    for (folder, head) in found.heads {
        let record = store::read(&folder.join(head.file.as_ref().context("a head has its file")?))?;
        let is_its = Head::from(&record).file == head.file;
        ensure!(is_its, "{head:?} is not of {record:?}");
        records.push(record);
    }
    Ok(records)
}

/// Tags or fields by name.
pub type Named<T> = BTreeMap<String, T>;

/// Writes the configuration of an agent that lives in `folder`.
fn configure(folder: &Path, settings: &str) -> Result<()> {
    let path = |name: &str| folder.join(name);
    let slots = if settings.contains("slots") { "" } else { "slots = 1000\nspare_slots = 200" };
    let interval = if settings.contains("interval") { "" } else { "interval = \"1s\"" };
    let text = format!(
        "{slots}\n{interval}\n{settings}\n[spool]\ndir = {:?}\n[state]\ndir = {:?}\n[records]\ndir = {:?}\n",
        path("spool"),
        path("state"),
        path("records")
    );
    Ok(fs::write(path(CONFIG), text)?)
}
