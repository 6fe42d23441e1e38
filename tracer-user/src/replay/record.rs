//! The writing side of recordings: whole lines, each readable once it is written.

use std::io::{self, Write};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

use super::{End, EndLine, Header, is_gz};
use crate::{
    files::{publish::cure, target::Target},
    model::snapshot::Snapshot,
};

/// Writes a recording.
pub struct Recorder {
    name: String,
    /// `None` after an error: a line must not follow half a line.
    out: Option<Out>,
}

enum Out {
    Plain(Target),
    Gz(Box<GzEncoder<Target>>),
}

impl Recorder {
    /// Empties `target` and writes `header`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(mut target: Target, header: &Header) -> Result<Self> {
        let name = target.name();
        target.begin().map_err(|error| cannot(&name, error))?;
        // Each line of it is readable from now on.
        target.keep();
        let out = if is_gz(target.path()) {
            Out::Gz(Box::new(GzEncoder::new(target, Compression::fast())))
        } else {
            Out::Plain(target)
        };
        let mut recorder = Self { name, out: Some(out) };
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

    /// Adds the end, and gives the file back.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn end(mut self, end: End) -> Result<Target> {
        self.line(&EndLine { end })?;
        match self.out()? {
            Out::Gz(gz) => gz.finish().map_err(|error| cannot(&self.name, error)),
            Out::Plain(file) => Ok(file),
        }
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut out = self.out()?;
        match &mut out {
            Out::Plain(file) => file.write_all(&text),
            Out::Gz(gz) => gz.write_all(&text).and_then(|()| gz.flush()),
        }
        .map_err(|error| cannot(&self.name, error))?;
        self.out = Some(out);
        Ok(())
    }

    fn out(&mut self) -> Result<Out> {
        let gone = || format!("cannot record to {}: an earlier write failed", self.name);
        self.out.take().with_context(gone)
    }
}

fn cannot(name: &str, error: io::Error) -> anyhow::Error {
    let message = format!("cannot record to {name}: {}", cure(&error));
    anyhow::Error::new(error).context(message)
}
