//! The heads of many records, read day by day: every list and sum goes through here.
//!
//! Nothing there is trusted, as in `find`.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use memchr::memmem;

use super::{find::Skipped, head::HeadIn, name, store::HEADS_LONGEST_BYTES};
use crate::{
    base::in_order::in_order,
    files::folder::{Folder, Kind},
};

/// A job is seen at a node's clock, a folder changed at its file server's: they may differ by this.
const CLOCKS_APART_NS: u64 = 86_400_000_000_000;

/// The folders of days below some folders, listed once.
#[derive(Clone, Debug, Default)]
pub struct Days {
    /// By day, owner and path: the day (`2026-11-22`) of the begin of a job's record, and its folder.
    folders: Vec<(String, PathBuf)>,
}

/// Which heads are wanted; by default all.
#[derive(Clone, Debug, Default)]
pub struct Wanted<'a> {
    /// Of this day and later ones.
    pub first: Option<&'a str>,
    /// Of this day and earlier ones.
    pub last: Option<&'a str>,
    /// Those of jobs that were seen from then on, and some of others.
    pub since_ns: u64,
    /// Those with one of these texts in their line, and some of others; without any, all.
    pub texts: Vec<&'a str>,
}

impl Days {
    /// Those in `dirs`, and what could not be listed.
    ///
    /// # Errors
    /// When one of `dirs` is absent or cannot be read.
    pub fn list(dirs: &[impl AsRef<Path>]) -> Result<(Self, Skipped)> {
        let (mut skipped, mut folders) = (Skipped::default(), Vec::new());
        for dir in dirs.iter().map(AsRef::as_ref) {
            let cannot = || format!("cannot read the records in {}", dir.display());
            let root = Folder::passage(dir).with_context(cannot)?;
            for owner in owners(dir).with_context(cannot)? {
                let path = dir.join(&owner);
                let days = root.folder(&owner).and_then(|folder| folder.entries());
                for (day, kind) in skipped.take(&path, days).into_iter().flatten() {
                    if kind == Kind::Folder && name::is_day(&day) {
                        folders.push((day.clone(), owner.clone(), path.join(day)));
                    }
                }
            }
        }
        folders.sort();
        let folders = folders.into_iter().map(|(day, _, path)| (day, path)).collect();
        Ok((Self { folders }, skipped))
    }

    /// Leaves those out that `wanted` does not want.
    pub(super) fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.folders.retain(|(day, _)| wanted(day));
    }

    /// The days, the newest first.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.folders.iter().rev().map(|(day, _)| &**day).collect();
        names.dedup();
        names
    }

    /// The folders of the days that are wanted, each with its day.
    pub fn folders(&self, wanted: &Wanted) -> &[(String, PathBuf)] {
        let count = |is_before: &dyn Fn(&str) -> bool| {
            self.folders.partition_point(|(day, _)| is_before(day))
        };
        let end = count(&|day| wanted.last.is_none_or(|last| day <= last));
        let begin = count(&|day| wanted.first.is_some_and(|first| day < first));
        &self.folders[begin.min(end)..end]
    }

    /// Adds up the heads that are wanted, a folder at a time: `add` gets each head with the folder of its record, by
    /// owner and file, and something `new` for each folder; `take` what became of it, by day.
    pub fn fold<T: Send>(
        &self,
        wanted: &Wanted,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Path, &HeadIn) + Sync,
        mut take: impl FnMut(T),
    ) -> Skipped {
        let mut skipped = Skipped::default();
        let texts: Vec<_> = wanted.texts.iter().map(memmem::Finder::new).collect();
        let is_wanted =
            |bytes: &[u8]| texts.is_empty() || texts.iter().any(|text| text.find(bytes).is_some());
        let work = |(_, path): &(String, PathBuf)| {
            let mut sum = new();
            let visit = |head: &HeadIn| add(&mut sum, path, head);
            let skipped = visit_folder(path, wanted.since_ns, is_wanted, visit);
            (sum, skipped)
        };
        in_order(self.folders(wanted), work, |(sum, of_one)| {
            take(sum);
            skipped.add(of_one);
        });
        skipped
    }
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

/// Gives `visit` each head in the folder of a day, by file; gives what could not be read. Files whose bytes are not
/// `is_wanted`, and folders in which nothing changed since, may be left out.
fn visit_folder(
    path: &Path,
    since_ns: u64,
    is_wanted: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(&HeadIn),
) -> Skipped {
    let mut skipped = Skipped::default();
    let Some(folder) = skipped.take(path, Folder::open(path)) else { return skipped };
    // A record that is saved again is a new file under its name, so its folder changes.
    if since_ns > 0
        && let Some(changed_ns) = skipped.take(path, folder.modified_ns())
        && changed_ns.saturating_add(CLOCKS_APART_NS) < since_ns
    {
        return skipped;
    }
    let names = skipped.take(path, folder.entries()).unwrap_or_default();
    for (name, _) in names.iter().filter(|(name, _)| name::is_heads(name)) {
        let Some(bytes) = skipped.take_in(path, name, folder.read(name, HEADS_LONGEST_BYTES))
        else {
            continue;
        };
        // A line that is torn may be anybody's.
        if !is_wanted(&bytes) && is_whole(&bytes) {
            continue;
        }
        let (heads, lines) = HeadIn::parse(&bytes);
        heads.iter().for_each(&mut visit);
        let damaged = lines
            .iter()
            .map(|line| format!("{}: line {line} is damaged", path.join(name).display()));
        skipped.damaged.extend(damaged);
    }
    skipped
}

/// Whether each line ends as one that was written whole.
fn is_whole(bytes: &[u8]) -> bool {
    let is_end = |at: usize| at == 0 || matches!(bytes[at - 1], b'}' | b'\n');
    bytes.last().is_none_or(|byte| *byte == b'\n') && memchr::memchr_iter(b'\n', bytes).all(is_end)
}
