//! `run --out DIR`: line protocol in compressed files that appear whole or not at all.
//!
//! A file is gathered in memory, compressed; when it is due it goes to `DIR/tmp`, is synced and gets
//! its name in `DIR` by a rename. So a reader of `DIR` never sees half a file, and a kill loses at
//! most what [`Rotation`] allows. A full disk costs data, which is counted, and never the run.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};

use super::line;
use crate::model::points::Point;

/// Comments to HTTP and Telegraf, and what `influx -import` wants to see.
const PREAMBLE: &str = "# DML\n# CONTEXT-DATABASE: jobtrace\n";
/// Names tried before giving up.
const TRIES: u32 = 1000;

/// What makes the names of the files unique for ever: `<host>-<boot>-<pid>.<sequence>-<start>.lp.gz`.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Name of the node.
    pub host: String,
    /// `/proc/sys/kernel/random/boot_id`; its first eight hexadecimal digits are used.
    pub boot_id: String,
    /// Process id of the writer.
    pub pid: u32,
}

/// When a file is finished and the next begun.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// At this many bytes of text; a file is at most one line longer.
    pub bytes: usize,
    /// This long after its first point.
    pub span_ns: u64,
}

impl Default for Rotation {
    /// 8 MiB (InfluxDB 1 refuses bodies of 25 MB and is best fed below 10) or a minute.
    fn default() -> Self {
        Self { bytes: 8 << 20, span_ns: 60_000_000_000 }
    }
}

/// The file being gathered.
struct Batch {
    gz: GzEncoder<Vec<u8>>,
    /// Text of points in it, uncompressed.
    bytes: usize,
    start_wall_ns: u64,
    start_monotonic_ns: u64,
}

/// Writes points into files of a folder.
pub struct FileSink {
    dir: PathBuf,
    tmp: PathBuf,
    stem: String,
    rotation: Rotation,
    sequence: u64,
    batch: Option<Batch>,
    lost_bytes: u64,
    failing: bool,
}

impl FileSink {
    /// A sink into `dir`, which is made where it is absent.
    ///
    /// # Errors
    /// When `dir` cannot be made or written to: tried here, so that no run starts in vain.
    pub fn create(dir: &Path, writer: &Writer, rotation: Rotation) -> Result<Self> {
        let stem = format!("{}-{}-{}", file_host(&writer.host), boot8(&writer.boot_id), writer.pid);
        let mut sink = Self {
            dir: dir.to_owned(),
            tmp: dir.join("tmp"),
            stem,
            rotation,
            sequence: 0,
            batch: None,
            lost_bytes: 0,
            failing: false,
        };
        sink.probe().with_context(|| {
            format!("cannot write to {}: name a folder you may write to", dir.display())
        })?;
        Ok(sink)
    }

    /// Writes a file to `dir` and removes it.
    fn probe(&mut self) -> io::Result<()> {
        self.make_tmp()?;
        self.with_free_name(0, |_, file, tmp, done| {
            file.write_all(PREAMBLE.as_bytes())?;
            // Under a name that no reader of the folder looks for.
            let probe = done.with_extension("probe");
            let written = fs::write(&probe, PREAMBLE);
            // Full or not, it must not stay.
            let _ = fs::remove_file(probe);
            written.and_then(|()| fs::remove_file(tmp))
        })
        .inspect_err(|_| drop(fs::remove_dir(&self.tmp)))?;
        self.sequence = 0;
        Ok(())
    }

    /// Takes `points` at the given moment, and writes a file when one is due; call it with no points
    /// too, so that the last ones appear in time.
    ///
    /// # Errors
    /// When a file could not be written, the first time in a row only. Its points are lost and counted
    /// in [`Self::lost_bytes`]; the sink goes on with the next ones.
    pub fn write(&mut self, points: &[Point], wall_ns: u64, monotonic_ns: u64) -> Result<()> {
        let mut result = Ok(());
        let mut text = Vec::new();
        for point in points {
            text.clear();
            line::encode(point, &mut text);
            if text.is_empty() {
                continue;
            }
            if self.append(&text, wall_ns, monotonic_ns) >= self.rotation.bytes {
                result = result.and(self.finish_batch());
            }
        }
        let age = |batch: &Batch| monotonic_ns.saturating_sub(batch.start_monotonic_ns);
        if self.batch.as_ref().is_some_and(|batch| age(batch) >= self.rotation.span_ns) {
            result = result.and(self.finish_batch());
        }
        result
    }

    /// Writes what is left, and removes `DIR/tmp` unless another run has files there.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&mut self) -> Result<()> {
        let result = self.finish_batch();
        // Another run's files keep the folder, which is as it should be.
        let _ = fs::remove_dir(&self.tmp);
        result
    }

    /// Bytes of text that could not be written.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Adds `text` to the file being gathered and says how much is in it.
    fn append(&mut self, text: &[u8], wall_ns: u64, monotonic_ns: u64) -> usize {
        let batch = self.batch.get_or_insert_with(|| Batch {
            gz: GzEncoder::new(Vec::new(), Compression::fast()),
            bytes: 0,
            start_wall_ns: wall_ns,
            start_monotonic_ns: monotonic_ns,
        });
        // Writing to memory does not fail.
        if batch.bytes == 0 {
            let _ = batch.gz.write_all(PREAMBLE.as_bytes());
        }
        let _ = batch.gz.write_all(text);
        batch.bytes += text.len();
        batch.bytes
    }

    fn finish_batch(&mut self) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        let bytes = batch.bytes;
        let written = batch.gz.finish().and_then(|gz| self.publish(&gz, batch.start_wall_ns));
        let was_failing = std::mem::replace(&mut self.failing, written.is_err());
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                self.lost_bytes += bytes as u64;
                if was_failing {
                    return Ok(());
                }
                Err(error).with_context(|| {
                    let dir = self.dir.display();
                    format!("cannot write to {dir}, points are lost: free space there")
                })
            }
        }
    }

    /// Puts `gz` into the folder under a name that no other file has.
    fn publish(&mut self, gz: &[u8], start_wall_ns: u64) -> io::Result<()> {
        self.with_free_name(start_wall_ns, |sink, file, tmp, done| {
            file.write_all(gz)?;
            file.sync_all()?;
            fs::rename(tmp, done)?;
            // Some network file systems cannot sync a folder; the file is in place all the same.
            let _ = File::open(&sink.dir).and_then(|dir| dir.sync_all());
            Ok(())
        })
    }

    /// Makes `DIR/tmp`. Another run may remove it, empty, between the kernel's "exists" and the look at
    /// it, which `create_dir_all` then takes for a file in the way.
    fn make_tmp(&self) -> io::Result<()> {
        for _ in 0..TRIES {
            match fs::create_dir_all(&self.tmp) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && !self.tmp.is_file() => {}
                done => return done,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Runs `action` with a new file in tmp and the free name in `dir` that goes with it.
    fn with_free_name(
        &mut self,
        start_wall_ns: u64,
        action: impl Fn(&Self, &mut File, &Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        for _ in 0..TRIES {
            let name = format!("{}.{}-{start_wall_ns}.lp.gz", self.stem, self.sequence);
            let (tmp, done) = (self.tmp.join(&name), self.dir.join(&name));
            let mut file = match OpenOptions::new().write(true).create_new(true).open(&tmp) {
                Ok(file) => file,
                // Another run has ended and removed tmp, empty at that moment.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.make_tmp()?;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.sequence += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.sequence += 1;
            // The name in tmp is ours alone from here, so nobody makes `done` after the look at it.
            let result = match fs::exists(&done) {
                Ok(true) => Err(io::ErrorKind::AlreadyExists.into()),
                Ok(false) => action(self, &mut file, &tmp, &done),
                Err(error) => Err(error),
            };
            match result {
                Ok(()) => return Ok(()),
                Err(error) => {
                    let _ = fs::remove_file(&tmp);
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(error);
                    }
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // For a run that ended before it began.
        let _ = fs::remove_dir(&self.tmp);
    }
}

/// `host` as a part of a file name.
fn file_host(host: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = host.chars().take(64).map(safe).collect();
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "unknown".to_owned(),
        None => name,
    }
}

/// The first eight hexadecimal digits of a boot id.
fn boot8(boot_id: &str) -> String {
    let digits: String = boot_id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    format!("{digits:0<8}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_become_file_names() {
        for (host, expected) in [
            ("cn-042.cluster.example", "cn-042.cluster.example"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            (".hidden", "_hidden"),
            ("a b\nc", "a_b_c"),
            ("knötchen", "kn_tchen"),
            ("", "unknown"),
        ] {
            assert_eq!(file_host(host), expected, "{host:?}");
        }
        assert_eq!(file_host(&"h".repeat(300)).len(), 64);
    }

    #[test]
    fn boot_ids_become_eight_digits() {
        for (id, expected) in [
            ("3FD2A9b1-77aa-4cde-9000-000000000000\n", "3fd2a9b1"),
            ("12", "12000000"),
            ("", "00000000"),
        ] {
            assert_eq!(boot8(id), expected, "{id:?}");
        }
    }
}
