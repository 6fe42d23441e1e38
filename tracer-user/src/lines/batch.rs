//! The text of points, compressed: what goes into a `.lp.gz` file.
//!
//! Pure: it touches no disk and names no file.

use std::io::{self, Write};

use flate2::{Compression, write::GzEncoder};

/// Comments to HTTP and Telegraf, and what `influx -import` wants to see: the begin of each file.
pub const PREAMBLE: &str = "# DML\n# CONTEXT-DATABASE: jobtrace\n";

/// Text being gathered for one file.
pub struct Batch {
    gz: GzEncoder<Vec<u8>>,
    bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory does not fail.
        let _ = gz.write_all(PREAMBLE.as_bytes());
        Self { gz, bytes: 0 }
    }
}

impl Batch {
    /// Adds whole lines.
    pub fn push(&mut self, lines: &[u8]) {
        let _ = self.gz.write_all(lines);
        self.bytes += lines.len();
    }

    /// Bytes of text of points in it, uncompressed.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The file's content.
    ///
    /// # Errors
    /// None that its input could cause.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.gz.finish()
    }
}
