//! A record as a file holds it: its document, compressed.

use std::io::{Read, Write};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};

use super::{Record, document::document, parse};

/// Longest document that is read: no program wrote one a tenth as long.
const LONGEST_BYTES: u64 = 16 << 20;

/// `record` as the bytes of a file.
///
/// # Errors
/// None that its input could cause.
pub fn encode(record: &Record) -> Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    file.write_all(document(record)?.as_bytes()).context("cannot compress a record")?;
    file.finish().context("cannot compress a record")
}

/// The record in the bytes of a file.
///
/// # Errors
/// When it is damaged, or of a later version; the message says which, and where.
pub fn decode(bytes: &[u8]) -> Result<Record> {
    // What `--json` writes is the same, not compressed.
    if bytes.first() == Some(&b'{') {
        return parse(bytes);
    }
    let mut text = Vec::new();
    let unpacked = GzDecoder::new(bytes).take(LONGEST_BYTES + 1).read_to_end(&mut text);
    unpacked.context("the record is damaged: it is no whole gzip file")?;
    ensure!(text.len() as u64 <= LONGEST_BYTES, "the record is damaged: it is too long");
    parse(&text)
}
