//! Whether a file found after a crash is whole.
//!
//! Reads it to its end; refuses to mend it.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use super::name::Part;
use crate::lines::{batch::PREAMBLE, hlog};

/// Whether `path` holds all that was written: of line protocol, gzip's own sum is right, the preamble
/// begins and a line feed ends it; of an interval log, its last line is there.
///
/// # Errors
/// When the disk fails; a file that ends early is no error.
pub fn is_whole(path: &Path, part: Part) -> io::Result<bool> {
    let mut file = File::open(path)?;
    match part {
        Part::Hlog => {
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            Ok(text.ends_with(hlog::END.as_bytes()))
        }
        Part::Lines(_) => match ends(&mut MultiGzDecoder::new(file)) {
            Ok((first, last)) => Ok(first == PREAMBLE.as_bytes() && last == Some(b'\n')),
            Err(error) if is_of_gzip(&error) => Ok(false),
            Err(error) => Err(error),
        },
    }
}

/// As many first bytes as the preamble has, and the last one, of all that `reader` gives.
fn ends(reader: &mut impl Read) -> io::Result<(Vec<u8>, Option<u8>)> {
    let (mut first, mut last) = (Vec::new(), None);
    let mut buffer = [0; 64 * 1024];
    loop {
        let length = reader.read(&mut buffer)?;
        let Some(&byte) = buffer[..length].last() else { return Ok((first, last)) };
        let missing = PREAMBLE.len() - first.len();
        first.extend(&buffer[..length.min(missing)]);
        last = Some(byte);
    }
}

/// Whether the content is to blame, and not the disk.
fn is_of_gzip(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), UnexpectedEof | InvalidInput | InvalidData)
}
