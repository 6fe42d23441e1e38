//! A recording's lines, compressed or not, with their numbers.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use flate2::read::MultiGzDecoder;

/// Longest line: a snapshot of a full node takes a tenth of this.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// What every gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A line of the file, or what stands in its place.
pub(super) enum Line {
    Whole(Vec<u8>),
    /// The file stops inside it, as it does after a crash.
    Cut,
    None,
}

/// The lines of a file, counted.
pub(super) struct Lines {
    pub(super) path: PathBuf,
    input: Box<dyn BufRead>,
    /// Of the line last read, from 1.
    pub(super) number: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)
            .with_context(|| format!("cannot open the recording {}", path.display()))?;
        let mut file = BufReader::new(file);
        // By its first bytes, not its name: it may be renamed, or come through a pipe.
        let start = file.fill_buf();
        let start =
            start.with_context(|| format!("cannot read the recording {}", path.display()))?;
        let input: Box<dyn BufRead> = match start.starts_with(&GZIP) {
            true => Box::new(BufReader::new(MultiGzDecoder::new(file))),
            false => Box::new(file),
        };
        Ok(Self { path: path.to_owned(), input, number: 0 })
    }

    /// `error` with its place.
    pub(super) fn at(&self, error: anyhow::Error) -> anyhow::Error {
        error.context(format!(
            "{}, line {}: damaged or foreign, record the run anew",
            self.path.display(),
            self.number
        ))
    }

    pub(super) fn next(&mut self) -> Result<Line> {
        let mut text = Vec::new();
        self.number += 1;
        let read = self.input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut text);
        match read {
            // A crash leaves gzip without its end, perhaps without a piece of the text.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(if text.is_empty() { Line::None } else { Line::Cut })
            }
            Err(error) => Err(self.at(error.into())),
            Ok(0) => Ok(Line::None),
            Ok(_) if text.ends_with(b"\n") => Ok(Line::Whole(text)),
            Ok(_) if text.len() as u64 == MAX_LINE_BYTES => {
                Err(self.at(anyhow!("a line of more than {MAX_LINE_BYTES} bytes")))
            }
            Ok(_) => Ok(Line::Cut),
        }
    }
}
