//! Reading folders of records, whoever wrote them: an agent's, that of `run --save`, or one that a cluster shares.
//!
//! Nothing there is trusted: links are not followed, sizes are bounded. What is damaged is named, skipped and counted;
//! what only others may read is counted apart.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    Record,
    days::{Days, Wanted},
    file,
    head::Head,
    name,
    store::LONGEST_BYTES,
};
use crate::files::folder::Folder;

/// What was not read, or left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files and lines that are damaged, each with its place and why.
    pub damaged: Vec<String>,
    /// Folders that the caller may not read: other users' records.
    pub closed: u64,
    /// Records that are in more than one folder and were given once: a hash of each one's file.
    pub repeated: BTreeSet<u64>,
}

/// The heads in some folders.
#[derive(Debug, Default)]
pub struct Heads {
    /// Each with the folder that its record is in, by day, owner and file.
    pub heads: Vec<(PathBuf, Head)>,
    /// Files and lines that are damaged, each with its place and why.
    pub damaged: Vec<String>,
    /// Folders that the caller may not read: other users' records.
    pub closed: u64,
}

/// The heads of all nodes in `dir`, of the days (`2026-11-22`) that `wanted` wants: of the begin of a job's record.
///
/// # Errors
/// When there is no such folder, or it cannot be read.
pub fn read_heads(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Heads> {
    let (mut days, mut skipped) = Days::list(&[dir])?;
    days.retain(wanted);
    let mut heads = Vec::new();
    skipped.add(days.fold(
        &Wanted::default(),
        Vec::new,
        |of_one, folder, head| {
            of_one.push((folder.to_owned(), Head::from(head)));
            true
        },
        |of_one| heads.extend(of_one),
    ));
    let Skipped { damaged, closed, .. } = skipped;
    Ok(Heads { heads, damaged, closed })
}

/// The records of `job`, of all nodes and times, and of its steps, in `dirs`: in the order of their names there.
///
/// # Errors
/// When one of the folders is absent or cannot be read.
pub fn records_of(dirs: &[impl AsRef<Path>], job: &str) -> Result<(Vec<Record>, Skipped)> {
    let (days, mut skipped) = Days::list(dirs)?;
    let mut records = Vec::new();
    for path in days.folders(&Wanted::default()).iter().map(|folder| &folder.path) {
        let names = Folder::open(path).and_then(|folder| Ok((folder.entries()?, folder)));
        let Some((names, folder)) = skipped.take(path, names) else { continue };
        for (name, _) in names.iter().filter(|(name, _)| name::is_record(name)) {
            if !name::may_be_of(job, name) {
                continue;
            }
            match record_in(&folder, name) {
                Ok(record) if record.job().job == job => records.push(record),
                Ok(_) => {}
                Err(error) => skipped.damaged.push(format!("{error:#}")),
            }
        }
    }
    Ok((records, skipped))
}

/// The record of `head`, which is in `folder`.
///
/// # Errors
/// As [`read`].
pub fn read_of(folder: &Path, head: &Head) -> Result<Record> {
    let cannot = || format!("cannot read the record of a job in {}", folder.display());
    let name = head.file.as_deref().filter(|name| name::is_record(name)).with_context(cannot)?;
    record_in(&Folder::open(folder).with_context(cannot)?, name)
}

/// The record in the file at `path`, which may be a link: whoever names it means it.
///
/// # Errors
/// When it cannot be read, is damaged or of a later version; the message names the file.
pub fn read(path: &Path) -> Result<Record> {
    let cannot = || format!("cannot read {}", path.display());
    let path = std::fs::canonicalize(path).with_context(cannot)?;
    let parts = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
    let (parent, name) = parts.with_context(cannot)?;
    record_in(&Folder::open(parent).with_context(cannot)?, name)
}

fn record_in(folder: &Folder, name: &str) -> Result<Record> {
    let path = folder.path().join(name);
    let bytes = folder.read(name, LONGEST_BYTES);
    let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
    file::decode(&bytes).with_context(|| path.display().to_string())
}

impl Skipped {
    /// Adds `more`.
    pub(super) fn add(&mut self, more: Self) {
        self.damaged.extend(more.damaged);
        self.closed += more.closed;
        self.repeated.extend(more.repeated);
    }

    /// What was found in the file `name` at `path`, if it could be read.
    pub(super) fn take_in<T>(
        &mut self,
        path: &Path,
        name: &str,
        found: io::Result<T>,
    ) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => self.take(&path.join(name), Err(error)),
        }
    }

    /// What was found at `path`, if it could be read.
    pub(super) fn take<T>(&mut self, path: &Path, found: io::Result<T>) -> Option<T> {
        match found {
            Ok(found) => return Some(found),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => self.closed += 1,
            // It was removed meanwhile: too old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.damaged.push(format!("{}: {error}", path.display())),
        }
        None
    }
}
