//! The last time stamp given, kept beyond an agent's life: the next agent's stamps are later ones, also where the
//! clock was set back in between or stamps are whole seconds. A data base would keep one of two points with one stamp.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::OFlags;

/// Name of the file in the state folder.
const FILE: &str = "last-stamp";
/// More than a stamp's line has.
const MOST_BYTES: u64 = 64;

/// The file. Its holder has the node's lock.
#[derive(Clone, Debug)]
pub struct LastStamp {
    path: PathBuf,
}

impl LastStamp {
    /// The one in `state_dir`.
    #[must_use]
    pub fn in_folder(state_dir: &Path) -> Self {
        Self { path: state_dir.join(FILE) }
    }

    /// The stamp, nanoseconds since the Unix epoch; 0 where there is none. What is no number is none:
    /// then a stamp may come twice, which is no reason not to measure.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> Result<u64> {
        match self.read_line() {
            Ok(line) => {
                Ok(str::from_utf8(&line).map_or(0, |text| text.trim().parse().unwrap_or(0)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => {
                Err(error).with_context(|| format!("cannot read {}", self.path.display()))
            }
        }
    }

    /// As much of the file as a stamp is long, to the first line's end.
    fn read_line(&self) -> io::Result<Vec<u8>> {
        let (file, mut line) = (self.open(File::options().read(true))?, Vec::new());
        file.take(MOST_BYTES).read_to_end(&mut line)?;
        line.truncate(line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len()));
        Ok(line)
    }

    /// Opens it without waiting: whoever opens a fifo waits for who opens its other end.
    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&self.path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is no file; remove it")),
        }
    }

    /// Keeps `stamp_ns`, in place and not synced: after another boot the clock is past it. A new file under the name
    /// would have ext4 write it to the disk each time.
    ///
    /// # Errors
    /// When the disk refuses; the old stamp stays.
    pub fn write(&self, stamp_ns: u64) -> Result<()> {
        // As wide as any: the kernel takes so little as a whole, and nothing is left of the one before.
        let line = format!("{stamp_ns:020}\n");
        let file = self.open(File::options().write(true).create(true).truncate(false));
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn it_is_kept_and_what_is_none_is_zero() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = LastStamp::in_folder(dir.path());
        assert_eq!(stamp.read().unwrap(), 0);
        stamp.write(1_700_000_000_000_000_000).unwrap();
        assert_eq!(LastStamp::in_folder(dir.path()).read().unwrap(), 1_700_000_000_000_000_000);
        stamp.write(9).unwrap();
        assert_eq!(stamp.read().unwrap(), 9);
        fs::write(dir.path().join(FILE), "").unwrap();
        assert_eq!(stamp.read().unwrap(), 0);
        fs::write(dir.path().join(FILE), "1700000000000000000000000\nof another program's\n")
            .unwrap();
        assert_eq!(stamp.read().unwrap(), 0);
        stamp.write(8).unwrap();
        assert_eq!(stamp.read().unwrap(), 8);
        fs::write(dir.path().join(FILE), b"17\xff").unwrap();
        assert_eq!(stamp.read().unwrap(), 0);
        fs::remove_file(dir.path().join(FILE)).unwrap();
        mknodat(CWD, dir.path().join(FILE), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(format!("{:#}", stamp.read().unwrap_err()).ends_with("it is no file; remove it"));
        assert!(stamp.write(1).is_err(), "nobody waits for who reads a fifo");
        assert!(LastStamp::in_folder(&dir.path().join("absent")).write(1).is_err());
    }
}
