//! A recording's lines, compressed or not, with their numbers.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    os::fd::AsFd,
    path::Path,
};

use anyhow::{Context, Result, anyhow};
use flate2::read::MultiGzDecoder;

use crate::files::target::is_standard;

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
    pub(super) name: String,
    input: Box<dyn BufRead>,
    /// Of the line last read, from 1.
    pub(super) number: u64,
}

impl Lines {
    /// The lines of the file at `path`, or of standard input for `-`.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (name, file) = if is_standard(path) {
            let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
            ("standard input".to_owned(), file)
        } else {
            (path.display().to_string(), File::open(path))
        };
        let file = file.with_context(|| format!("cannot open the recording {name}"))?;
        let mut file = BufReader::new(file);
        // By its first bytes, not its name: it may be renamed, or come through a pipe.
        let start = file.fill_buf().with_context(|| format!("cannot read the recording {name}"))?;
        let input: Box<dyn BufRead> = if start.starts_with(&GZIP) {
            Box::new(BufReader::new(MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        };
        Ok(Self { name, input, number: 0 })
    }

    /// `error` with its place.
    pub(super) fn at(&self, error: anyhow::Error) -> anyhow::Error {
        error.context(format!(
            "{}, line {}: damaged or not a recording, record the run again",
            self.name, self.number
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
