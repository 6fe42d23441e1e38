//! The kernel's files that are read again and again, such as a cgroup's: they stay open, so that a reading is one call and
//! not three, and no path is looked up. An open one stays with its cgroup or device, whatever that is called by then.

use std::{fs::File, io::ErrorKind, mem::MaybeUninit, str};

use rustix::io::pread;

use super::{
    directory::Directory,
    spared::{Kind, Spared},
};

/// More than `memory.stat` has, the longest that each job has.
const ROOM_BYTES: usize = 8 << 10;
/// Those of some two hundred jobs: the kernel has a page for each.
static KEPT: Kind = Kind::new(2_048);

/// A file that was not there at so many readings in a row is looked for at each eighth alone: most belong to
/// controllers that the other version of cgroups has.
const SURE: u32 = 4;
const SELDOM: u32 = 8;

/// A file that the kernel makes as it is read: those of one directory share that.
pub struct KeptFile {
    directory: Directory,
    name: &'static str,
    open: Option<Spared<File>>,
    /// Readings in a row that did not find it.
    absent: u32,
}

impl KeptFile {
    /// The file `name` of `directory`, whether or not it is there.
    pub fn new(directory: impl Into<Directory>, name: &'static str) -> Self {
        Self { directory: directory.into(), name, open: None, absent: 0 }
    }

    /// What `parse` makes of its text now; `None` also where it is missing or refused (pressure files answer
    /// EOPNOTSUPP where PSI is off). Not for lists of tasks, which the kernel gives in pieces and v1 keeps for a second
    /// in an open file.
    pub fn read<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let parsed = |text: &[u8]| parse(str::from_utf8(text).ok()?);
        self.with(|file| {
            let mut room = [MaybeUninit::uninit(); ROOM_BYTES];
            let begin = pread(file, &mut room, 0).ok()?.0;
            // The kernel makes it as a whole, for as much room as there is.
            if begin.len() < ROOM_BYTES {
                return Some(parsed(begin));
            }
            let mut text = begin.to_vec();
            loop {
                let mut room = [MaybeUninit::uninit(); ROOM_BYTES];
                match pread(file, &mut room, text.len() as u64).ok()?.0 {
                    [] => return Some(parsed(&text)),
                    more => text.extend_from_slice(more),
                }
            }
        })?
    }

    /// Closes it until it is read again.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// What `look` finds in the file, which it says is gone by `None`.
    fn with<T>(&mut self, look: impl Fn(&File) -> Option<T>) -> Option<T> {
        if let Some(found) = self.open.as_ref().and_then(|open| look(open)) {
            return Some(found);
        }
        // Its cgroup or device may be gone, and another be there by now.
        self.open = None;
        if self.absent >= SURE && !self.absent.is_multiple_of(SELDOM) {
            self.absent = self.absent.wrapping_add(1);
            return None;
        }
        let opened = self.directory.open(self.name);
        // One that is refused, or that there is no descriptor for, may be there the next time.
        let is_absent = opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        self.absent = if is_absent { self.absent.wrapping_add(1) } else { 0 };
        let file = opened.ok()?;
        let found = look(&file)?;
        self.open = KEPT.keep(file);
        Some(found)
    }
}

/// Whether no more may be kept open: who does not read one for a while closes it.
pub fn are_all_kept() -> bool {
    KEPT.is_full()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_is_never_there_is_looked_for_seldom_and_found_when_it_comes() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = KeptFile::new(folder.path(), "memory.peak");
        let mut read = || file.read(|text| text.trim().parse::<u64>().ok());
        assert!((0..SELDOM * 3 + 1).all(|_| read().is_none()));
        fs::write(folder.path().join("memory.peak"), "7\n").unwrap();
        let found: Vec<_> = (0..SELDOM * 2).map(|_| read()).collect();
        let first = found.iter().position(Option::is_some).expect("it is there");
        assert_eq!(first as u32, SELDOM - 1);
        assert!(found[first..].iter().all(|value| *value == Some(7)), "{found:?}");
        fs::write(folder.path().join("memory.peak"), "8\n").unwrap();
        assert_eq!(read(), Some(8));
        // What is there and tells nothing is asked each time.
        fs::write(folder.path().join("memory.peak"), "max\n").unwrap();
        assert!((0..SELDOM * 3 + 1).all(|_| read().is_none()));
        fs::write(folder.path().join("memory.peak"), "9\n").unwrap();
        assert_eq!(read(), Some(9));
    }
}
