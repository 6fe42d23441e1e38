//! What an InfluxDB 1.x makes of the lines it is sent: series, points, bytes on the disk, memory. The server is
//! the live tests' rig.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use jobtrace_tests::rig::influx::{Influx, configuration};

/// Database of the lines.
const DB: &str = "jobtrace";
/// The longest wait for compactions.
const COMPACTION: Duration = Duration::from_secs(600);
/// How long nothing may change on the disk until all is taken for compacted.
const STILL: Duration = Duration::from_secs(15);

/// The server.
pub struct Server(Influx);

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

impl Server {
    /// Starts one with `index-version = "tsi1"` that compacts as soon as nothing comes.
    ///
    /// # Errors
    /// When InfluxDB is not installed or does not start.
    pub fn start() -> Result<Self> {
        let influx = Influx::start_as(settings)?;
        influx.create_db(DB)?;
        Ok(Self(influx))
    }

    /// Posts lines, packed by gzip, and gives how long the server took.
    ///
    /// # Errors
    /// When it does not store all of them.
    pub fn post(&self, gzip: &[u8]) -> Result<Duration> {
        let begin = Instant::now();
        let answer = self.0.write_packed(DB, gzip)?;
        ensure!(answer.status == 204, "InfluxDB refuses lines: {}", answer.body);
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

    /// The counts of all rows of `query`, added up.
    fn sum(&self, query: &str) -> Result<u64> {
        let rows = self.0.query(DB, query)?;
        let counts = rows.iter().map(|row| row.get("count")?.as_u64());
        counts.sum::<Option<u64>>().with_context(|| format!("InfluxDB answers {rows:?} to {query}"))
    }

    /// Its version.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn version(&self) -> Result<String> {
        self.0.version()
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
        let folder = self.0.folder();
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
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.pid()))?;
        let kib = |key: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let both = kib("RssAnon:").zip(kib("VmHWM:"));
        let (anonymous, most) = both.context("influxd's memory is unknown")?;
        Ok((anonymous << 10, most << 10))
    }
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

/// The rig's, but for compacting at once instead of after minutes and hours, so that the size at rest can be
/// seen; and a machine that is busy otherwise makes the server slow, not wrong.
fn settings(folder: &Path, port: u16, rpc: u16) -> String {
    let data = "[data]\n  cache-snapshot-write-cold-duration = \"3s\"\n  \
                compact-full-write-cold-duration = \"5s\"";
    configuration(folder, port, rpc).replace("[data]", data)
        + "[coordinator]\n  write-timeout = \"120s\"\n"
}
