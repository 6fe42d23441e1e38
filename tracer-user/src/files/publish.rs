//! Files that appear whole or not at all: written and synced in one folder, then renamed into another
//! of the same file system.
//!
//! Owns the two phases and the words for what can go wrong there; refuses to choose names, to look into a file,
//! and, but for [`Stage::replace`], to write over one that is there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Attempts against another process that makes and removes the same folders.
pub const TRIES: u32 = 1000;

/// Where files are written, and where they appear.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Files not yet whole.
    pub tmp: PathBuf,
    /// Files that are.
    pub done: PathBuf,
}

impl Stage {
    /// Makes both folders where they are absent.
    ///
    /// # Errors
    /// As for any folder; [`cure`] has the words.
    pub fn make(&self) -> io::Result<()> {
        make_folder(&self.done)?;
        make_folder(&self.tmp)
    }

    /// First phase: a new file `name` in tmp, all of its `bytes` on the disk. Its name is only there once
    /// [`Stage::publish`] was tried; up to then it is the caller's alone.
    ///
    /// # Errors
    /// `AlreadyExists` where tmp or done has the name; else what the disk says. No file is left behind.
    pub fn prepare(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let tmp = self.tmp.join(name);
        let mut file = self.new_file(&tmp)?;
        // With the name in tmp ours, nobody makes the one in done after this look at it.
        let written = match fs::exists(self.done.join(name)) {
            Ok(true) => Err(io::ErrorKind::AlreadyExists.into()),
            Ok(false) => file.write_all(bytes).and_then(|()| file.sync_all()),
            Err(error) => Err(error),
        };
        written.inspect_err(|_| drop(fs::remove_file(&tmp)))
    }

    /// Second phase: the file appears under its name.
    ///
    /// # Errors
    /// As for any rename; the file then stays in tmp. `NotFound` where it is not there any more.
    pub fn publish(&self, name: &str) -> io::Result<()> {
        let (tmp, done) = (self.tmp.join(name), self.done.join(name));
        let renamed = match fs::rename(&tmp, &done) {
            // Either the file or the folder it goes to; with the folder there it is the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(&self.done).and_then(|()| fs::rename(&tmp, &done))
            }
            renamed => renamed,
        };
        // The name where the file is to be found after a loss of power.
        sync_folder(if renamed.is_ok() { &self.done } else { &self.tmp });
        renamed
    }

    /// Both phases for a file that may take the place of an earlier one: readers see the one or the other, whole.
    /// The name is the caller's alone.
    ///
    /// # Errors
    /// As for any file; the earlier one then stands.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.make()?;
        let tmp = self.tmp.join(name);
        let written = File::create(&tmp).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.inspect_err(|_| drop(fs::remove_file(&tmp)))?;
        self.publish(name)
    }

    /// Removes a prepared file that is not to appear.
    pub fn discard(&self, name: &str) {
        // What cannot be removed now is found at the next start.
        let _ = fs::remove_file(self.tmp.join(name));
    }

    /// A new file at `path` in tmp, whose folder another process may remove at any moment.
    fn new_file(&self, path: &Path) -> io::Result<File> {
        for _ in 0..TRIES {
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => make_folder(&self.tmp)?,
                opened => return opened,
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Makes a folder with its parents. Another process may remove it, empty, between the kernel's "exists"
/// and the look at it, which `create_dir_all` then takes for a file in the way.
fn make_folder(dir: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        match fs::create_dir_all(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if dir.is_file() {
                    break;
                }
            }
            done => return done,
        }
    }
    Err(io::ErrorKind::NotADirectory.into())
}

/// Sees that the names in `dir` are on the disk. Some network file systems cannot; the files are in
/// place all the same.
fn sync_folder(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}

/// What helps against `error`, as the end of a message.
pub fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "free space there",
        io::ErrorKind::FileTooLarge => "raise the limit on the size of a file (ulimit -f)",
        io::ErrorKind::QuotaExceeded => "raise the quota or free space there",
        io::ErrorKind::ReadOnlyFilesystem => "mount it writable or name another folder",
        io::ErrorKind::PermissionDenied => "name a folder you may write to",
        io::ErrorKind::WouldBlock => "make sure that its reader keeps reading",
        io::ErrorKind::BrokenPipe => "keep its reader running",
        io::ErrorKind::NotADirectory => "remove the file that is in the way or name another folder",
        _ => "check that file system or name another folder",
    }
}
