//! Reading folders of records, whoever wrote them: an agent's, that of `run --save`, or one that a cluster shares.
//!
//! Nothing there is trusted: links are not followed, sizes are bounded. What is damaged is named, skipped and counted;
//! what only others may read is counted apart.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::sync_channel,
    },
    thread,
};

use anyhow::{Context, Result};

use super::{
    Record, file,
    head::Head,
    name,
    store::{HEADS_LONGEST_BYTES, LONGEST_BYTES},
};
use crate::files::folder::{Folder, Kind};

/// Files of heads that are read at the same time.
const MOST_AT_ONCE: usize = 4;

/// What was not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Files and lines that are damaged, each with its place and why.
    pub damaged: Vec<String>,
    /// Folders that the caller may not read: other users' records.
    pub closed: u64,
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
    let mut heads = Vec::new();
    let Skipped { damaged, closed } =
        visit_heads(&[dir], wanted, |folder, head| heads.push((folder.to_owned(), head)))?;
    Ok(Heads { heads, damaged, closed })
}

/// Gives each head in `dirs` to `visit`, with the folder that its record is in, by day, owner and file: as
/// [`read_heads`], of several folders, and without holding them all.
///
/// # Errors
/// When one of the folders is absent or cannot be read.
pub fn visit_heads(
    dirs: &[impl AsRef<Path>],
    wanted: impl Fn(&str) -> bool,
    mut visit: impl FnMut(&Path, Head),
) -> Result<Skipped> {
    let mut skipped = Skipped::default();
    let days = days(dirs, wanted, &mut skipped)?;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (give, given) = sync_channel(MOST_AT_ONCE);
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(MOST_AT_ONCE) {
            let (give, days, next) = (give.clone(), &days, &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(folder) = days.get(at) else { break };
                    if give.send((at, heads_of(folder))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(give);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (at, found) in given {
            early.insert(at, found);
            while let Some((heads, of_day)) = early.remove(&due) {
                heads.into_iter().for_each(|head| visit(&days[due], head));
                skipped.damaged.extend(of_day.damaged);
                skipped.closed += of_day.closed;
                due += 1;
            }
        }
    });
    Ok(skipped)
}

/// The records of `job`, of all nodes and times, and of its steps, in `dirs`: in the order of their names there.
///
/// # Errors
/// When one of the folders is absent or cannot be read.
pub fn records_of(dirs: &[impl AsRef<Path>], job: &str) -> Result<(Vec<Record>, Skipped)> {
    let mut skipped = Skipped::default();
    let mut records = Vec::new();
    for path in days(dirs, |_| true, &mut skipped)? {
        let names = Folder::open(&path).and_then(|folder| Ok((folder.entries()?, folder)));
        let Some((names, folder)) = skipped.take(&path, names) else { continue };
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

/// The folders of the days that are wanted, by day and owner.
fn days(
    dirs: &[impl AsRef<Path>],
    wanted: impl Fn(&str) -> bool,
    skipped: &mut Skipped,
) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for dir in dirs.iter().map(AsRef::as_ref) {
        let cannot = || format!("cannot read the records in {}", dir.display());
        let root = Folder::passage(dir).with_context(cannot)?;
        for owner in owners(dir).with_context(cannot)? {
            let path = dir.join(&owner);
            let days = root.folder(&owner).and_then(|folder| folder.entries());
            for (day, kind) in skipped.take(&path, days).into_iter().flatten() {
                if kind == Kind::Folder && name::is_day(&day) && wanted(&day) {
                    all.push((day.clone(), owner.clone(), path.join(day)));
                }
            }
        }
    }
    all.sort();
    Ok(all.into_iter().map(|(_, _, path)| path).collect())
}

/// The owners who have folders in `dir`; of those that the caller may not list, himself.
fn owners(dir: &Path) -> io::Result<Vec<String>> {
    let is_owner = |(name, kind): &(String, Kind)| *kind == Kind::Folder && name::is_owner(name);
    match Folder::open(dir).and_then(|root| root.entries()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(vec![rustix::process::getuid().as_raw().to_string()])
        }
        all => Ok(all?.into_iter().filter(is_owner).map(|(name, _)| name).collect()),
    }
}

/// The heads of all nodes in a day's folder.
fn heads_of(path: &Path) -> (Vec<Head>, Skipped) {
    let (mut found, mut skipped) = (Vec::new(), Skipped::default());
    let names = Folder::open(path).and_then(|folder| Ok((folder.entries()?, folder)));
    let Some((names, folder)) = skipped.take(path, names) else { return (found, skipped) };
    for (name, _) in names.iter().filter(|(name, _)| name::is_heads(name)) {
        let path = path.join(name);
        let Some(text) = skipped.take(&path, folder.read(name, HEADS_LONGEST_BYTES)) else {
            continue;
        };
        let (heads, lines) = Head::parse(&text);
        found.extend(heads.into_values());
        let damaged =
            lines.iter().map(|line| format!("{}: line {line} is damaged", path.display()));
        skipped.damaged.extend(damaged);
    }
    (found, skipped)
}

impl Skipped {
    /// What was found at `path`, if it could be read.
    fn take<T>(&mut self, path: &Path, found: io::Result<T>) -> Option<T> {
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
