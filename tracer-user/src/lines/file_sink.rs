//! `run --out DIR`: line protocol in compressed files that appear whole or not at all.
//!
//! A file is gathered in memory, compressed; when it is due it goes to `DIR/tmp`, is synced and gets
//! its name in `DIR` by a rename. So a reader of `DIR` never sees half a file, and a kill loses at
//! most what [`Rotation`] allows. A full disk costs data, which is counted, and never the run.

use std::{fs, io, path::Path};

use anyhow::{Context, Result};

pub use super::writer::Writer;
use super::{
    batch::{Batch, PREAMBLE},
    line,
};
use crate::{
    files::publish::{Stage, TRIES, cure},
    model::point::Point,
};

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
struct Gathered {
    batch: Batch,
    start_wall_ns: u64,
    start_monotonic_ns: u64,
}

/// Writes points into files `<host>-<boot>-<pid>.<sequence>-<start>.lp.gz` of a folder.
pub struct FileSink {
    stage: Stage,
    stem: String,
    rotation: Rotation,
    sequence: u64,
    gathered: Option<Gathered>,
    lost_bytes: u64,
    failing: bool,
}

impl FileSink {
    /// A sink into `dir`, which is made where it is absent.
    ///
    /// # Errors
    /// When `dir` cannot be made or written to: tried here, so that no run starts in vain.
    pub fn create(dir: &Path, writer: &Writer, rotation: Rotation) -> Result<Self> {
        let stem = format!("{}-{}-{}", writer.file_host(), writer.boot8(), writer.pid);
        let mut sink = Self {
            stage: Stage { tmp: dir.join("tmp"), done: dir.to_owned() },
            stem,
            rotation,
            sequence: 0,
            gathered: None,
            lost_bytes: 0,
            failing: false,
        };
        sink.probe().with_context(|| {
            format!("cannot write to {}: name a folder you may write to", dir.display())
        })?;
        Ok(sink)
    }

    /// Writes a file to the folder and removes it.
    fn probe(&mut self) -> io::Result<()> {
        self.stage.make()?;
        self.prepare(0, PREAMBLE.as_bytes())
            .and_then(|name| {
                // Under a name that no reader of the folder looks for.
                let probe = self.stage.done.join(&name).with_extension("probe");
                let written = fs::write(&probe, PREAMBLE);
                // Full or not, it must not stay.
                let _ = fs::remove_file(probe);
                written.and_then(|()| fs::remove_file(self.stage.tmp.join(name)))
            })
            .inspect_err(|_| drop(fs::remove_dir(&self.stage.tmp)))?;
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
        let age = |gathered: &Gathered| monotonic_ns.saturating_sub(gathered.start_monotonic_ns);
        if self.gathered.as_ref().is_some_and(|file| age(file) >= self.rotation.span_ns) {
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
        let _ = fs::remove_dir(&self.stage.tmp);
        result
    }

    /// Bytes of text that could not be written.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Adds `text` to the file being gathered and says how much is in it.
    fn append(&mut self, text: &[u8], wall_ns: u64, monotonic_ns: u64) -> usize {
        let gathered = self.gathered.get_or_insert_with(|| Gathered {
            batch: Batch::default(),
            start_wall_ns: wall_ns,
            start_monotonic_ns: monotonic_ns,
        });
        gathered.batch.push(text);
        gathered.batch.bytes()
    }

    fn finish_batch(&mut self) -> Result<()> {
        let Some(Gathered { batch, start_wall_ns, .. }) = self.gathered.take() else {
            return Ok(());
        };
        let bytes = batch.bytes();
        let written = batch.finish().and_then(|gz| self.publish(&gz, start_wall_ns));
        let was_failing = std::mem::replace(&mut self.failing, written.is_err());
        match written {
            Ok(()) => Ok(()),
            Err(error) => {
                self.lost_bytes += bytes as u64;
                if was_failing {
                    return Ok(());
                }
                let (dir, cure) = (self.stage.done.display(), cure(&error));
                let message = format!("cannot write to {dir}, points are lost: {cure}");
                Err(error).context(message)
            }
        }
    }

    /// Puts `gz` into the folder under a name that no other file has.
    fn publish(&mut self, gz: &[u8], start_wall_ns: u64) -> io::Result<()> {
        let name = self.prepare(start_wall_ns, gz)?;
        self.stage.publish(&name).inspect_err(|_| self.stage.discard(&name))
    }

    /// Writes `bytes` to tmp under the next free name, and gives it.
    fn prepare(&mut self, start_wall_ns: u64, bytes: &[u8]) -> io::Result<String> {
        for _ in 0..TRIES {
            let name = format!("{}.{}-{start_wall_ns}.lp.gz", self.stem, self.sequence);
            self.sequence += 1;
            match self.stage.prepare(&name, bytes) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                prepared => return prepared.map(|()| name),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        // For a run that ended before it began.
        let _ = fs::remove_dir(&self.stage.tmp);
    }
}
