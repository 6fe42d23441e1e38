//! The writing side of recordings: whole lines, each readable once it is written.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

use super::{End, EndLine, Header, is_gz};
use crate::model::snapshot::Snapshot;

/// Writes a recording.
pub struct Recorder {
    path: PathBuf,
    /// `None` after an error: a line must not follow half a line.
    out: Option<Out>,
}

enum Out {
    Plain(File),
    Gz(GzEncoder<File>),
}

impl Recorder {
    /// Makes the file, or empties it, and writes `header`.
    ///
    /// # Errors
    /// When `path` cannot be written.
    pub fn create(path: &Path, header: &Header) -> Result<Self> {
        let file = File::create(path).with_context(|| {
            format!("cannot record to {}: name a file you may write", path.display())
        })?;
        let out = match is_gz(path) {
            true => Out::Gz(GzEncoder::new(file, Compression::fast())),
            false => Out::Plain(file),
        };
        let mut recorder = Self { path: path.to_owned(), out: Some(out) };
        recorder.line(header)?;
        Ok(recorder)
    }

    /// Adds a snapshot; a crash of this program after it does not lose it.
    ///
    /// # Errors
    /// When the file cannot be written (disk full), now or before: the recording ends there and what
    /// it holds stays readable.
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.line(snapshot)
    }

    /// Adds the end and closes the file.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn end(mut self, end: End) -> Result<()> {
        self.line(&EndLine { end })?;
        match &mut self.out {
            Some(Out::Gz(gz)) => gz.try_finish().with_context(|| self.cannot()),
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut out = self.out.take().with_context(|| self.cannot())?;
        match &mut out {
            Out::Plain(file) => file.write_all(&text),
            Out::Gz(gz) => gz.write_all(&text).and_then(|()| gz.flush()),
        }
        .with_context(|| self.cannot())?;
        self.out = Some(out);
        Ok(())
    }

    fn cannot(&self) -> String {
        format!("cannot record to {}: free space there or name another file", self.path.display())
    }
}
