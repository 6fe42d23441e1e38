//! A directory of the kernel's, such as a cgroup's, whose files are opened again and again. Where its files cannot stay open
//! it may itself, so that of their path the name alone is looked up: a directory that is open takes no page of the kernel's.

use std::{
    fs::File,
    io,
    mem::MaybeUninit,
    ops::Deref,
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{
    fs::{CWD, Mode, OFlags, fstat, openat},
    io::read,
};

use super::{
    kept,
    spared::{Kind, Spared},
};

/// Room for a piece of a list, which the kernel gives in pages that hold as many lines as fit: a smaller one is the last.
const ROOM_BYTES: usize = 8 << 10;
const LAST_BYTES: usize = (4 << 10) - 64;
/// Those of a thousand jobs with a step and a task.
static KEPT: Kind = Kind::new(8 << 10);

/// A directory by its path, and the directory itself as long as it is open. Clones share both.
#[derive(Clone, Debug)]
pub struct Directory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: Box<Path>,
    open: Mutex<Option<Spared<OwnedFd>>>,
}

impl Directory {
    /// That at `path`, whether or not it is there.
    pub fn new(path: impl Into<Box<Path>>) -> Self {
        Self(Arc::new(Shared { path: path.into(), open: Mutex::default() }))
    }

    /// Closes it until it is asked again.
    pub fn close(&self) {
        *self.opened() = None;
    }

    /// Its file `name`, to be read. The directory stays open where files cannot.
    ///
    /// # Errors
    /// Where it is missing, or refused.
    pub fn open(&self, name: &str) -> io::Result<File> {
        if kept::are_all_kept() {
            return self.with(|directory| file_in(directory, name));
        }
        File::open(self.join(name))
    }

    /// Lines of its file `name`, and the links of the directory, which stays open: one for each below it, and two. `None`
    /// where it is gone or refused.
    pub fn count(&self, name: &str) -> Option<(u64, u64)> {
        // A u32 on 64-bit ARM.
        #[allow(clippy::useless_conversion, reason = "not on every machine")]
        let links = |directory: &OwnedFd| fstat(directory).map(|stat| u64::from(stat.st_nlink));
        self.with(|directory| Ok((count_lines(file_in(directory, name)?)?, links(directory)?))).ok()
    }

    fn opened(&self) -> MutexGuard<'_, Option<Spared<OwnedFd>>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `look` finds in it.
    fn with<T>(&self, look: impl Fn(&OwnedFd) -> io::Result<T>) -> io::Result<T> {
        let mut open = self.opened();
        if let Some(Ok(found)) = open.as_ref().map(|open| look(open)) {
            return Ok(found);
        }
        // Its cgroup may be gone, and another be there by now.
        *open = None;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, &*self.0.path, flags, Mode::empty())?;
        let found = look(&directory);
        // What is not in it may be in it later: others look for theirs.
        *open = KEPT.keep(directory);
        found
    }
}

impl<P: Into<Box<Path>>> From<P> for Directory {
    fn from(path: P) -> Self {
        Self::new(path)
    }
}

impl Deref for Directory {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0.path
    }
}

impl AsRef<Path> for Directory {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl PartialEq for Directory {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for Directory {}

fn file_in(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let file = openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(file.into())
}

/// Lines of `file`.
fn count_lines(file: File) -> io::Result<u64> {
    let mut lines = 0;
    loop {
        let mut room = [MaybeUninit::uninit(); ROOM_BYTES];
        let (text, _) = read(&file, &mut room)?;
        lines += memchr::memchr_iter(b'\n', text).count() as u64;
        if text.len() < LAST_BYTES {
            return Ok(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read};

    use super::*;

    #[test]
    fn one_that_stays_open_is_found_again_when_another_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job");
        let make = |tasks: &str| {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("tasks"), tasks).unwrap();
        };
        let directory = Directory::new(path.clone());
        let lines = || Some(directory.count("tasks")?.0);
        let text = || {
            let mut text = String::new();
            let mut file = directory.with(|directory| file_in(directory, "tasks")).ok()?;
            file.read_to_string(&mut text).unwrap();
            Some(text)
        };
        assert_eq!((lines(), text()), (None, None));
        make("1\n2\n");
        assert_eq!((lines(), text().as_deref()), (Some(2), Some("1\n2\n")));
        assert!(directory.opened().is_some());
        fs::remove_dir_all(&path).unwrap();
        assert_eq!((lines(), text()), (None, None));
        assert!(directory.opened().is_none(), "what is gone is let go");
        make("3\n");
        assert_eq!((lines(), text().as_deref()), (Some(1), Some("3\n")));
        directory.close();
        assert!(directory.opened().is_none());
    }
}
