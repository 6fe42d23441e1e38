//! The folder of finished files, and `failed` for those that the server refuses.
//!
//! Owns what becomes of a file: it is removed when it is sent, or moved. Refuses to write into the
//! outbox, and to take an absent file for an error: the agent drops the oldest ones above its caps.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result, bail};
use flate2::bufread::MultiGzDecoder;
use rustix::{
    fs::{Access, FlockOperation, Mode, OFlags, access, flock, open},
    io::Errno,
};

/// Ends of the names that are sent.
const ENDS: [&str; 2] = [".lp.gz", ".lp"];
/// What a refused file's name is followed by, for the server's words.
const REASON: &str = ".reason";

/// A folder with finished files.
#[derive(Debug)]
pub struct Outbox {
    dir: PathBuf,
    failed_max_bytes: u64,
    /// Held as long as this lives.
    _lock: Option<File>,
}

/// A file that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// When it was written.
    pub written: SystemTime,
    /// Its name.
    pub name: String,
}

/// Refused files that were removed because too many were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// How many.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

impl Outbox {
    /// The spool in `dir`, to look at.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), failed_max_bytes: u64::MAX, _lock: None }
    }

    /// The spool in `dir`, for nobody else to send from.
    ///
    /// # Errors
    /// When another process sends from it, or it cannot be written to.
    pub fn take(dir: &Path, failed_max_bytes: u64) -> Result<Self> {
        let own = Self { failed_max_bytes, ..Self::new(dir) };
        let (files, failed) = (own.files(), own.failed());
        let cure = "run as root or as a member of its group, as the unit jobtrace-push does; \
                    `systemd-tmpfiles --create jobtrace.conf` creates the agent's folders";
        access(&files, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .with_context(|| format!("cannot take files from {}: {cure}", files.display()))?;
        match fs::create_dir(&failed) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.with_context(|| format!("cannot create {}: {cure}", failed.display()))?,
        }
        access(&failed, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)
            .with_context(|| format!("cannot write to {}: {cure}", failed.display()))?;
        let lock =
            open(&failed, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .with_context(|| format!("cannot open {}", failed.display()))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => bail!(
                "another `jobtrace push` is sending the files of {}: stop it with `systemctl stop jobtrace-push`, or find it with `fuser -v {}`",
                dir.display(),
                failed.display()
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot lock {}", failed.display()));
            }
        }
        own.tidy().with_context(|| format!("cannot clean up {}", failed.display()))?;
        Ok(Self { _lock: Some(lock.into()), ..own })
    }

    /// Removes reasons without a file, which a kill or the agent's caps left behind.
    fn tidy(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.failed())? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(file) = name.to_str().and_then(|name| name.strip_suffix(REASON)) else {
                continue;
            };
            let is_ours = ENDS.iter().any(|end| file.ends_with(end));
            if is_ours && !self.failed().join(file).exists() {
                is_there(fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }

    /// Where the files are: the agent's `outbox`, or the folder itself where it has none, as that of
    /// `jobtrace run --out`.
    pub fn files(&self) -> PathBuf {
        let outbox = self.dir.join("outbox");
        if outbox.is_dir() { outbox } else { self.dir.clone() }
    }

    /// Where refused ones go.
    pub fn failed(&self) -> PathBuf {
        self.dir.join("failed")
    }

    /// What waits, the oldest first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Waiting>> {
        let dir = self.files();
        let told = || format!("cannot read {}", dir.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).with_context(told)? {
            let entry = entry.with_context(told)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') || !ENDS.iter().any(|end| name.ends_with(end)) {
                continue;
            }
            // Gone since, or no file.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push(Waiting { written, name });
            }
        }
        found.sort();
        Ok(found)
    }

    /// The text of a file; `None` where it is gone.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(&self, name: &str) -> io::Result<Option<Box<dyn BufRead>>> {
        // A link could lead anywhere, and a pipe would wait.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.files().join(name));
        let file = match file {
            Ok(file) => BufReader::new(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(if name.ends_with(".gz") {
            Box::new(BufReader::with_capacity(64 << 10, MultiGzDecoder::new(file)))
        } else {
            Box::new(file)
        }))
    }

    /// Removes a file that the server has; whether it was still there.
    ///
    /// # Errors
    /// When the folder refuses.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        is_there(fs::remove_file(self.files().join(name)))
    }

    /// Moves a refused file to `failed`, the reason beside it; whether it was still there. A kill
    /// between the two leaves the file in the outbox, to be refused again under the same name.
    ///
    /// # Errors
    /// When a folder refuses; the file is where it was.
    pub fn fail(&self, name: &str, reason: &str) -> io::Result<bool> {
        let (from, to) = (self.files().join(name), self.failed().join(name));
        let beside = self.failed().join(format!("{name}{REASON}"));
        let tmp = self.failed().join(format!(".{name}{REASON}"));
        let mut file = File::create(&tmp)?;
        file.write_all(reason.as_bytes())?;
        file.sync_all()?;
        fs::rename(&tmp, &beside)?;
        let moved = is_there(fs::rename(from, to));
        if !matches!(moved, Ok(true)) {
            let _ = fs::remove_file(&beside);
        }
        moved
    }

    /// Removes the oldest refused files while there are more bytes than are to be kept.
    ///
    /// # Errors
    /// When the folder refuses.
    pub fn prune(&self) -> io::Result<Pruned> {
        let mut found = Vec::new();
        let mut bytes = 0;
        for entry in fs::read_dir(self.failed())? {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else { continue };
            bytes += metadata.len();
            if !entry.path().to_string_lossy().ends_with(REASON) && metadata.is_file() {
                found.push((metadata.modified()?, entry.path(), metadata.len()));
            }
        }
        found.sort();
        let mut pruned = Pruned::default();
        for (_, path, length) in found {
            if bytes <= self.failed_max_bytes {
                break;
            }
            let mut beside = path.clone().into_os_string();
            beside.push(REASON);
            let words = fs::metadata(&beside).map_or(0, |metadata| metadata.len());
            is_there(fs::remove_file(&path))?;
            is_there(fs::remove_file(&beside))?;
            bytes -= length + words.min(bytes - length);
            pruned.files += 1;
            pruned.bytes += length;
        }
        Ok(pruned)
    }
}

fn is_there(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
