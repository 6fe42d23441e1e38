//! What of a node's records has to go, found and removed in small steps: records that wait to be saved come between.

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{super::name, cure};
use crate::files::folder::{Folder, Kind};

/// Files that are removed in one step.
const AT_ONCE: usize = 256;

/// What may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time since a job was seen last.
    pub age_ns: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// What had to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Records that were too old.
    pub old: u64,
    /// Records beyond the size.
    pub beyond: u64,
    /// Bytes of all files that went.
    pub bytes: u64,
}

/// A record, by its age.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    seen_ns: u64,
    name: String,
    day: String,
    bytes: u64,
}

/// A look at all files, and their removal.
#[derive(Debug)]
pub struct Enforcing {
    dir: PathBuf,
    host: String,
    most_bytes: u64,
    oldest_ns: u64,
    /// Folders to be looked at; `None` before the first step.
    days: Option<VecDeque<String>>,
    /// What was found in them.
    found: Vec<Found>,
    /// Size of all that stays, heads included.
    bytes: u64,
    /// Folders to be removed if they are empty.
    emptied: Vec<String>,
    /// What went so far.
    pub dropped: Dropped,
}

impl Enforcing {
    pub(super) fn new(dir: &Path, host: &str, limits: Limits, wall_ns: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            host: host.to_owned(),
            most_bytes: limits.bytes,
            oldest_ns: wall_ns.saturating_sub(limits.age_ns),
            days: None,
            found: Vec::new(),
            bytes: 0,
            emptied: Vec::new(),
            dropped: Dropped::default(),
        }
    }

    /// All steps.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(mut self) -> Result<Dropped> {
        while !self.step()? {}
        Ok(self.dropped)
    }

    /// Looks at one folder, or removes some files; gives whether that was all.
    ///
    /// # Errors
    /// When a folder cannot be read or a file not be removed.
    pub fn step(&mut self) -> Result<bool> {
        self.try_step().map_err(|error| {
            let cure = cure(&error);
            let message = format!("cannot remove old records of {}: {cure}", self.dir.display());
            anyhow::Error::new(error).context(message)
        })
    }

    fn try_step(&mut self) -> io::Result<bool> {
        let root = match Folder::open(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => opened?,
        };
        let Some(days) = &mut self.days else {
            let days = root.entries()?.into_iter();
            let days = days.filter(|(name, kind)| *kind == Kind::Folder && name::is_day(name));
            self.days = Some(days.map(|(day, _)| day).collect());
            return Ok(false);
        };
        if let Some(day) = days.pop_front() {
            self.look_at(&root, day)?;
            if self.days.as_ref().is_some_and(VecDeque::is_empty) {
                // The newest first: the oldest are taken off the end.
                self.found.sort_unstable_by(|a, b| b.cmp(a));
            }
            return Ok(false);
        }
        for _ in 0..AT_ONCE {
            if self.bytes <= self.most_bytes {
                break;
            }
            let Some(found) = self.found.pop() else { break };
            if root.folder(&found.day)?.remove(&found.name)? {
                self.dropped.beyond += 1;
                self.dropped.bytes += found.bytes;
            }
            self.bytes -= found.bytes;
            self.emptied.push(found.day);
        }
        let is_done = self.bytes <= self.most_bytes || self.found.is_empty();
        if is_done {
            self.emptied.sort();
            self.emptied.dedup();
            for day in std::mem::take(&mut self.emptied) {
                self.clear(&root, &day)?;
            }
        }
        Ok(is_done)
    }

    /// Removes what is too old of a day's folder, and notes the rest.
    fn look_at(&mut self, root: &Folder, day: String) -> io::Result<()> {
        let folder = root.folder(&day)?;
        let mut is_emptied = false;
        for (name, _) in folder.entries()? {
            let Some(stat) = folder.stat(&name) else { continue };
            if name == name::heads(&self.host) {
                self.bytes += stat.bytes;
            }
            if name::begin_ns(&self.host, &name).is_none() {
                continue;
            }
            if stat.modified_ns >= self.oldest_ns {
                self.bytes += stat.bytes;
                let seen_ns = stat.modified_ns;
                self.found.push(Found { seen_ns, name, day: day.clone(), bytes: stat.bytes });
            } else if folder.remove(&name)? {
                self.dropped.old += 1;
                self.dropped.bytes += stat.bytes;
                is_emptied = true;
            }
        }
        if is_emptied {
            self.emptied.push(day);
        }
        Ok(())
    }

    /// Removes the heads of a day of which no record is left, and its folder where nothing of another node's is in it.
    fn clear(&mut self, root: &Folder, day: &str) -> io::Result<()> {
        let folder = root.folder(day)?;
        let mut names = folder.entries()?.into_iter();
        if names.any(|(name, _)| name::begin_ns(&self.host, &name).is_some()) {
            return Ok(());
        }
        let heads = name::heads(&self.host);
        let bytes = folder.stat(&heads).map_or(0, |stat| stat.bytes);
        if folder.remove(&heads)? {
            self.dropped.bytes += bytes;
        }
        let _ = root.remove_folder(day);
        Ok(())
    }
}
