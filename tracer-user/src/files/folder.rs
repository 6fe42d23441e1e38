//! A folder held open: its entries are reached through it by their plain names, so that no link and no `..` leads out
//! of it, whoever else may write there.
//!
//! Knows nothing of what the files hold.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::{Path, PathBuf},
};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, renameat, statat, unlinkat},
};

/// Entries that are read at most.
const MOST_ENTRIES: usize = 1_000_000;

/// A folder.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A link, or anything else that is neither read nor entered.
    Other,
}

/// What is known of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its size.
    pub bytes: u64,
    /// When it was changed last, nanoseconds since the Unix epoch.
    pub modified_ns: u64,
    /// When it, its rights or its name were changed last, likewise: nobody can set that.
    pub changed_ns: u64,
}

impl Stat {
    /// Whether the one is a copy of the other, by size and time.
    pub fn is_like(self, other: Self) -> bool {
        self.bytes == other.bytes && self.is_as_old_as(other)
    }

    /// Whether the one has the time of the other, as far as its file system keeps it: some know whole seconds alone
    /// (Lustre).
    pub fn is_as_old_as(self, other: Self) -> bool {
        let second = |ns: u64| ns - ns % 1_000_000_000;
        self.modified_ns == other.modified_ns || self.modified_ns == second(other.modified_ns)
    }
}

impl Folder {
    /// The folder at `path`, whose links are followed: whoever named it meant where they lead.
    ///
    /// # Errors
    /// As for any folder; `NotADirectory` where it is none.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: openat(CWD, path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// The same where the caller may pass through it, whether he may list it or not: only to reach what is in it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn passage(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { fd: openat(CWD, path, flags, Mode::empty())?, path: path.to_owned() })
    }

    /// Where it was found, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and its number there: two paths to one folder have the same.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// The folder `name` in it.
    ///
    /// # Errors
    /// As for any folder; `NotADirectory` where it is a link.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, plain(name)?, flags, Mode::empty())?;
        Ok(Self { fd, path: self.path.join(name) })
    }

    /// The folder `name` in it, made by the umask where it is absent; gives whether it was.
    ///
    /// # Errors
    /// As for any folder.
    pub fn make_folder(&self, name: &str) -> io::Result<(Self, bool)> {
        let is_new = match mkdirat(&self.fd, plain(name)?, Mode::from_raw_mode(0o777)) {
            Ok(()) => true,
            Err(error) if error == rustix::io::Errno::EXIST => false,
            Err(error) => return Err(error.into()),
        };
        Ok((self.folder(name)?, is_new))
    }

    /// The file `name`, emptied or new, to be written.
    ///
    /// # Errors
    /// As for any file; a link is refused.
    pub fn create(&self, name: &str) -> io::Result<File> {
        self.write(name, OFlags::TRUNC)
    }

    /// The file `name`, new where it is absent, to be appended to and read.
    ///
    /// # Errors
    /// As for any file; a link is refused.
    pub fn append(&self, name: &str) -> io::Result<File> {
        self.write(name, OFlags::APPEND)
    }

    fn write(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A pipe that waits for a reader would hang its writer.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(File::from(openat(&self.fd, plain(name)?, flags, Mode::from_raw_mode(0o666))?))
    }

    /// All of the file `name`, of at most `most_bytes`.
    ///
    /// # Errors
    /// As for any file; what is longer, a link, or no file is refused.
    pub fn read(&self, name: &str, most_bytes: u64) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(openat(&self.fd, plain(name)?, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if metadata.len() > most_bytes {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it is longer than {most_bytes} bytes"),
            ));
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        // What is appended meanwhile comes next time; so nobody has to read on to find the end.
        file.take(metadata.len()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// When a name in it came, went or was replaced last, nanoseconds since the Unix epoch.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn modified_ns(&self) -> io::Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)?;
        Ok(nanoseconds(stat.st_mtime, stat.st_mtime_nsec as u64))
    }

    /// Size and time of the file `name`; `None` where there is no such file.
    pub fn stat(&self, name: &str) -> Option<Stat> {
        let stat = statat(&self.fd, plain(name).ok()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let modified_ns = nanoseconds(stat.st_mtime, stat.st_mtime_nsec as u64);
        let changed_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec as u64);
        is_file.then_some(Stat { bytes: stat.st_size as u64, modified_ns, changed_ns })
    }

    /// Moves the file `name` into `to`, in place of the one there.
    ///
    /// # Errors
    /// As for any rename.
    pub fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, plain(name)?, &to.fd, plain(new)?)?)
    }

    /// Removes the file `name`; gives whether there was one.
    ///
    /// # Errors
    /// As for any file, but where it is absent.
    pub fn remove(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.fd, plain(name)?, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(error) if error == rustix::io::Errno::NOENT => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the empty folder `name`.
    ///
    /// # Errors
    /// When it is not empty, or cannot be removed.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, plain(name)?, AtFlags::REMOVEDIR)?)
    }

    /// The names in it, in their order, with what they stand for. What is no text is left out: no file of ours.
    ///
    /// # Errors
    /// When it cannot be read, or has more than a million.
    pub fn entries(&self) -> io::Result<Vec<(String, Kind)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if entries.len() >= MOST_ENTRIES {
                return Err(io::Error::other("it has more than a million entries"));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => self.kind(name),
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Folder,
                _ => Kind::Other,
            };
            if !matches!(name, "." | "..") {
                entries.push((name.to_owned(), kind));
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// Where the file system does not say it with the names.
    fn kind(&self, name: &str) -> Kind {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => Kind::File,
            Ok(FileType::Directory) => Kind::Folder,
            _ => Kind::Other,
        }
    }

    /// Sees that the names in it are on the disk. Some network file systems cannot; the files are in place all the
    /// same.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.fd) {
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => Ok(()),
            synced => Ok(synced?),
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A file's time; before 1970 it is none.
fn nanoseconds(s: i64, ns: u64) -> u64 {
    (s.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(ns)
}

/// Whether `file` ends within a line.
///
/// # Errors
/// When it cannot be read.
pub fn is_torn(file: &File) -> io::Result<bool> {
    let (mut last, length) = ([0], file.metadata()?.len());
    if length == 0 {
        return Ok(false);
    }
    file.read_exact_at(&mut last, length - 1)?;
    Ok(last != *b"\n")
}

/// `name`, where it is an entry of a folder and no way elsewhere.
fn plain(name: &str) -> io::Result<&OsStr> {
    let is_plain = !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']);
    is_plain
        .then(|| OsStr::from_bytes(name.as_bytes()))
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests;
