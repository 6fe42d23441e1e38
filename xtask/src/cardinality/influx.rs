//! An InfluxDB 1.x of its own, with a folder, ports and an end of its own: takes lines, tells how many
//! series and bytes it made of them.
//!
//! The live tests' rig (`tests/src/rig/influx.rs`) reads points back; this one measures.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use ureq::Agent;

use crate::process::find;

/// Database of the lines.
const DB: &str = "jobtrace";
/// How long a start may take, and a request.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest wait for compactions.
const COMPACTION: Duration = Duration::from_secs(600);
/// How long nothing may change on the disk until all is taken for compacted.
const STILL: Duration = Duration::from_secs(15);

/// The server.
pub struct Influx {
    child: Child,
    url: String,
    agent: Agent,
    folder: TempDir,
}

/// Bytes on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Values: the .tsm files.
    pub values: u64,
    /// Series and index: what each series costs, however few points it has.
    pub index: u64,
    /// Not compacted yet.
    pub wal: u64,
}

impl Disk {
    /// Everything.
    pub fn all(self) -> u64 {
        self.values + self.index + self.wal
    }
}

impl Influx {
    /// Starts a server with `index-version = "tsi1"` that compacts as soon as nothing comes.
    ///
    /// # Errors
    /// When InfluxDB is not installed or does not start.
    pub fn start(scratch: &Path) -> Result<Self> {
        let program =
            find("influxd").context("influxd is not installed: apt-get install influxdb")?;
        let folder = tempfile::Builder::new().prefix("influx-").tempdir_in(scratch)?;
        let (port, rpc) = (free_port()?, free_port()?);
        let settings = folder.path().join("influxdb.conf");
        fs::write(&settings, configuration(folder.path(), port, rpc))?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg("-config").arg(&settings);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // It would go on after a signal that ends this program.
        let die = || match rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        };
        // SAFETY: one system call and no allocation.
        unsafe { command.pre_exec(die) };
        let child = command.spawn().context("start influxd")?;
        let config = Agent::config_builder().http_status_as_error(false);
        let config = config.timeout_global(Some(PATIENCE)).proxy(None);
        let agent = Agent::new_with_config(config.build());
        let mut influx = Self { child, url: format!("http://127.0.0.1:{port}"), agent, folder };
        influx.wait_until_up()?;
        influx.ask(&format!("CREATE DATABASE {DB}"))?;
        Ok(influx)
    }

    fn wait_until_up(&mut self) -> Result<()> {
        let begin = Instant::now();
        while self.agent.get(format!("{}/ping", self.url)).call().is_err() {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let last = log.lines().next_back().unwrap_or_default();
                bail!("influxd ended, {status}: {last}");
            }
            ensure!(begin.elapsed() < PATIENCE, "influxd does not answer");
            sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    /// Posts lines, packed by gzip, and gives how long the server took.
    ///
    /// # Errors
    /// When it does not store all of them.
    pub fn post(&self, gzip: &[u8]) -> Result<Duration> {
        let begin = Instant::now();
        let request = self.agent.post(format!("{}/write?precision=ns&db={DB}", self.url));
        let mut response = request.header("Content-Encoding", "gzip").send(gzip)?;
        if response.status() != 204 {
            bail!("InfluxDB refuses lines: {}", response.body_mut().read_to_string()?);
        }
        Ok(begin.elapsed())
    }

    /// Number of series by the server's own count.
    ///
    /// # Errors
    /// When it gives none.
    pub fn series(&self) -> Result<u64> {
        // One row for each measurement.
        self.sum("SHOW SERIES EXACT CARDINALITY")
    }

    /// Number of points of `measurement`, all of which have `field`.
    ///
    /// # Errors
    /// When it gives none.
    pub fn points(&self, measurement: &str, field: &str) -> Result<u64> {
        self.sum(&format!("SELECT count({field}) FROM {measurement}"))
    }

    /// The last columns of all rows of `query`, added up.
    fn sum(&self, query: &str) -> Result<u64> {
        let answer = self.ask(query)?;
        let series = answer["results"][0]["series"].as_array().cloned().unwrap_or_default();
        let rows =
            series.iter().flat_map(|series| series["values"].as_array().into_iter().flatten());
        let counts = rows.map(|row| row.as_array()?.last()?.as_u64());
        counts.sum::<Option<u64>>().with_context(|| format!("InfluxDB answers {answer} to {query}"))
    }

    /// Waits until it has compacted, and gives what it has on the disk.
    ///
    /// # Errors
    /// When that takes ten minutes, or its folder cannot be read.
    pub fn compacted(&self) -> Result<Disk> {
        let begin = Instant::now();
        let (mut last, mut since) = (Disk::default(), Instant::now());
        while begin.elapsed() < COMPACTION {
            let now = self.disk()?;
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > STILL {
                return Ok(now);
            }
            sleep(Duration::from_secs(1));
        }
        bail!("InfluxDB still compacts after {} s: {last:?}", COMPACTION.as_secs())
    }

    fn disk(&self) -> Result<Disk> {
        let folder = self.folder.path();
        let mut disk = Disk { wal: 0, ..Disk::default() };
        for (path, bytes) in files(&folder.join("data"))? {
            let is_values = path.ends_with(".tsm") || path.ends_with(".tombstone");
            *(if is_values { &mut disk.values } else { &mut disk.index }) += bytes;
        }
        disk.wal = files(&folder.join("wal"))?.iter().map(|(_, bytes)| bytes).sum();
        Ok(disk)
    }

    /// Bytes of memory that no file backs, now; and the most that was resident.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kib = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let both = kib("RssAnon:").zip(kib("VmHWM:"));
        let (anonymous, most) = both.context("influxd's memory is unknown")?;
        Ok((anonymous << 10, most << 10))
    }

    /// Its version.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn version(&self) -> Result<String> {
        let response = self.agent.get(format!("{}/ping", self.url)).call()?;
        let version = response.headers().get("X-Influxdb-Version");
        Ok(version.and_then(|v| v.to_str().ok()).unwrap_or("unknown").to_owned())
    }

    fn ask(&self, query: &str) -> Result<Value> {
        let form = [("db", DB), ("q", query)];
        let mut response = self.agent.post(format!("{}/query", self.url)).send_form(form)?;
        let answer: Value = serde_json::from_str(&response.body_mut().read_to_string()?)?;
        let error = answer.get("error").or_else(|| answer["results"][0].get("error"));
        ensure!(error.is_none(), "InfluxDB refuses {query}: {answer}");
        Ok(answer)
    }
}

impl Drop for Influx {
    fn drop(&mut self) {
        // Its data goes with its folder: nothing to end politely.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// All files below `folder` with their blocks' bytes; files that vanish meanwhile are none.
fn files(folder: &Path) -> Result<Vec<(String, u64)>> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries.with_context(|| format!("read {}", folder.display()))?,
    };
    for entry in entries {
        let path = entry?.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            found.extend(files(&path)?);
        } else {
            // The series files are made larger than what is in them.
            let bytes = metadata.len().min(metadata.blocks() * 512);
            found.push((path.display().to_string(), bytes));
        }
    }
    Ok(found)
}

fn configuration(folder: &Path, port: u16, rpc: u16) -> String {
    let folder = folder.display();
    format!(
        r#"reporting-enabled = false
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  index-version = "tsi1"
  # At once instead of after minutes and hours, so that the size at rest can be seen.
  cache-snapshot-write-cold-duration = "3s"
  compact-full-write-cold-duration = "5s"
[coordinator]
  # A machine that is busy otherwise makes the server slow, not wrong.
  write-timeout = "120s"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
"#
    )
}
