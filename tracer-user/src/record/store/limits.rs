//! What of a node's records has to go, found and removed in small steps: records that wait to be saved come between.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
};

use anyhow::Result;

use super::{super::name, Store};
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
    /// Bytes of these records.
    pub bytes: u64,
}

/// A record, by its age.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    seen_ns: u64,
    name: String,
    owner: String,
    day: String,
    bytes: u64,
}

/// A look at all files, and their removal.
#[derive(Debug)]
pub struct Enforcing {
    most_bytes: u64,
    oldest_ns: u64,
    /// Folders to be looked at, by owner and day; `None` before the first step.
    folders: Option<VecDeque<(String, String)>>,
    /// What was found in them.
    found: Vec<Found>,
    /// Size of all that stays, heads included.
    bytes: u64,
    /// Folders whose heads tell of records that are gone.
    touched: BTreeSet<(String, String)>,
    /// What went so far.
    pub dropped: Dropped,
}

impl Enforcing {
    pub(super) fn new(limits: Limits, wall_ns: u64) -> Self {
        Self {
            most_bytes: limits.bytes,
            oldest_ns: wall_ns.saturating_sub(limits.age_ns),
            folders: None,
            found: Vec::new(),
            bytes: 0,
            touched: BTreeSet::new(),
            dropped: Dropped::default(),
        }
    }

    /// All steps, in `store`.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(mut self, store: &Store) -> Result<Dropped> {
        while !self.step(store)? {}
        Ok(self.dropped)
    }

    /// Looks at one folder of `store`, or removes some files; gives whether that was all.
    ///
    /// # Errors
    /// When a folder cannot be read or a file not be removed.
    pub fn step(&mut self, store: &Store) -> Result<bool> {
        match self.try_step(store) {
            // Somebody else removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            result => store.told(result, "remove old records of"),
        }
    }

    fn try_step(&mut self, store: &Store) -> io::Result<bool> {
        let root = match Folder::open(&store.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            opened => opened?,
        };
        let Some(folders) = &mut self.folders else {
            self.folders = Some(all_days(&root)?);
            return Ok(false);
        };
        if let Some((owner, day)) = folders.pop_front() {
            self.look_at(store, &root, owner, day)?;
            return Ok(false);
        }
        if self.found.is_empty() || self.bytes <= self.most_bytes {
            let Some((owner, day)) = self.touched.pop_first() else { return Ok(true) };
            store.rewrite_heads(&root, &owner, &day)?;
            return Ok(false);
        }
        // The newest first: the oldest are taken off the end. Sorted already, this costs little.
        self.found.sort_by(|a, b| b.cmp(a));
        for _ in 0..AT_ONCE {
            if self.bytes <= self.most_bytes {
                break;
            }
            let Some(found) = self.found.pop() else { break };
            let folder = root.folder(&found.owner)?.folder(&found.day)?;
            if folder.remove(&found.name)? {
                self.dropped.beyond += 1;
                self.dropped.bytes += found.bytes;
            }
            self.bytes -= found.bytes;
            self.touched.insert((found.owner, found.day));
        }
        Ok(false)
    }

    /// Removes what is too old in a day's folder, and notes the rest.
    fn look_at(
        &mut self,
        store: &Store,
        root: &Folder,
        owner: String,
        day: String,
    ) -> io::Result<()> {
        let folder = root.folder(&owner)?.folder(&day)?;
        for (name, _) in folder.entries()? {
            let Some(stat) = folder.stat(&name) else { continue };
            if name == name::heads(&store.host) {
                self.bytes += stat.bytes;
            }
            if name::begin_ns(&store.host, &name).is_none() {
                continue;
            }
            let (seen_ns, bytes) = (stat.modified_ns, stat.bytes);
            if seen_ns >= self.oldest_ns {
                self.bytes += bytes;
                let (owner, day) = (owner.clone(), day.clone());
                self.found.push(Found { seen_ns, name, owner, day, bytes });
            } else if folder.remove(&name)? {
                self.dropped.old += 1;
                self.dropped.bytes += bytes;
                self.touched.insert((owner.clone(), day.clone()));
            }
        }
        Ok(())
    }
}

/// All folders of days.
pub(super) fn all_days(root: &Folder) -> io::Result<VecDeque<(String, String)>> {
    let mut all = VecDeque::new();
    let owners = root.entries()?.into_iter();
    for (owner, _) in owners.filter(|(name, kind)| *kind == Kind::Folder && name::is_owner(name)) {
        // One that is not the agent's is not its to tidy.
        let Ok(days) = root.folder(&owner).and_then(|folder| folder.entries()) else { continue };
        let days =
            days.into_iter().filter(|(name, kind)| *kind == Kind::Folder && name::is_day(name));
        all.extend(days.map(|(day, _)| (owner.clone(), day)));
    }
    Ok(all)
}
