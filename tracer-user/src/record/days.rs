//! The heads of many records, read day by day: every list and sum goes through here.
//!
//! Nothing there is trusted, as in `find`.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use memchr::memmem;

use super::{find::Skipped, head::HeadIn, name, store::HEADS_LONGEST_BYTES};
use crate::{
    base::{clock::wall_ns, in_order::in_order},
    files::folder::{Folder, Kind},
};

/// A job is seen at a node's clock, a folder changed at its file server's: they may differ by this.
const CLOCKS_APART_NS: u64 = 86_400_000_000_000;

/// Records are saved before their heads: what changed so lately may lack them for a moment.
const SAVING_NS: u64 = 60_000_000_000;

/// The folders of days below some folders, listed once.
#[derive(Clone, Debug, Default)]
pub struct Days {
    /// When they were listed, nanoseconds since the Unix epoch.
    listed_ns: u64,
    /// By day and owner; of one day and owner in the order of the folders they are in.
    folders: Vec<DayOfOwner>,
}

/// The folder of an owner's records of a day.
#[derive(Clone, Debug)]
pub(super) struct DayOfOwner {
    /// Of the begin of the jobs' records: `2026-11-22`.
    day: String,
    owner: String,
    pub path: PathBuf,
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
    /// With what they ran: a database has lines of its own for that.
    pub with_software: bool,
}

impl Days {
    /// Those in `dirs`, each of which is read once, however it is named; and what could not be listed.
    ///
    /// # Errors
    /// When one of `dirs` is absent or cannot be read.
    pub fn list(dirs: &[impl AsRef<Path>]) -> Result<(Self, Skipped)> {
        let (mut skipped, mut folders) = (Skipped::default(), Vec::new());
        let mut known = BTreeSet::new();
        for dir in dirs.iter().map(AsRef::as_ref) {
            let cannot = || format!("cannot read the records in {}", dir.display());
            let root = Folder::passage(dir).with_context(cannot)?;
            if !known.insert(root.id().with_context(cannot)?) {
                continue;
            }
            let (owners, besides) = owners(dir).with_context(cannot)?;
            skipped.damaged.extend(besides);
            for owner in owners {
                let path = dir.join(&owner);
                let days = root.folder(&owner).and_then(|folder| folder.entries());
                for (day, kind) in skipped.take(&path, days).into_iter().flatten() {
                    match kind {
                        _ if !name::is_day(&day) => {}
                        Kind::Folder => {
                            let (owner, path) = (owner.clone(), path.join(&day));
                            folders.push(DayOfOwner { day, owner, path });
                        }
                        _ => skipped.damaged.push(no_folder(&path, &day)),
                    }
                }
            }
        }
        folders.sort_by(|a, b| (&a.day, &a.owner).cmp(&(&b.day, &b.owner)));
        Ok((Self { listed_ns: wall_ns(), folders }, skipped))
    }

    /// Leaves those out that `wanted` does not want.
    pub(super) fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.folders.retain(|folder| wanted(&folder.day));
    }

    /// The days, the newest first.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.folders.iter().rev().map(|folder| &*folder.day).collect();
        names.dedup();
        names
    }

    /// The folders of the days that are wanted.
    pub(super) fn folders(&self, wanted: &Wanted) -> &[DayOfOwner] {
        let count = |is_before: &dyn Fn(&str) -> bool| {
            self.folders.partition_point(|folder| is_before(&folder.day))
        };
        let end = count(&|day| wanted.last.is_none_or(|last| day <= last));
        let begin = count(&|day| wanted.first.is_some_and(|first| day < first));
        &self.folders[begin.min(end)..end]
    }

    /// The same, those of one day and owner together: a record that is in several of the folders named is in one of
    /// these, in all of them.
    pub(super) fn parts(&self, wanted: &Wanted) -> Vec<&[DayOfOwner]> {
        let is_same = |a: &DayOfOwner, b: &DayOfOwner| (&a.day, &a.owner) == (&b.day, &b.owner);
        self.folders(wanted).chunk_by(is_same).collect()
    }

    /// Adds up the heads that are wanted, a day of an owner at a time: `add` gets each head with the folder of its
    /// record, by owner, node and file, and something `new` for each part, and gives whether it counts; `take` what
    /// became of it, by day. A record that is in several folders is given once, as it was seen last.
    pub fn fold<T: Send>(
        &self,
        wanted: &Wanted,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Path, &HeadIn) -> bool + Sync,
        mut take: impl FnMut(T),
    ) -> Skipped {
        let mut skipped = Skipped::default();
        let texts: Vec<_> = wanted.texts.iter().map(memmem::Finder::new).collect();
        let is_wanted =
            |bytes: &[u8]| texts.is_empty() || texts.iter().any(|text| text.find(bytes).is_some());
        let work = |part: &&[DayOfOwner]| {
            let mut sum = new();
            let owned = self.owned_beside(part);
            let visit = |path: &Path, name: &str, head: &HeadIn| {
                !is_owned(&owned, name, head) && add(&mut sum, path, head)
            };
            let saved_ns = self.listed_ns.saturating_sub(SAVING_NS);
            let skipped = visit_part(part, [wanted.since_ns, saved_ns], is_wanted, visit);
            (sum, skipped)
        };
        in_order(&self.parts(wanted), work, |(sum, of_one)| {
            take(sum);
            skipped.add(of_one);
        });
        skipped
    }

    /// The records of known owners on the day of `part`, where that is of jobs whose owner is not known: the folder
    /// and the files' names. When an owner comes to light his record moves, and a copy stays until the next push.
    fn owned_beside(&self, part: &[DayOfOwner]) -> Vec<(&Path, BTreeSet<String>)> {
        let Some(first) = part.first().filter(|first| first.owner == name::NO_OWNER) else {
            return Vec::new();
        };
        let of_day = self.folders.iter().filter(|one| one.day == first.day);
        let owned = of_day.filter(|one| one.owner != name::NO_OWNER).filter_map(|one| {
            // What the caller may not read does not count for him elsewhere either.
            let entries = Folder::open(&one.path).and_then(|folder| folder.entries()).ok()?;
            let files = entries.into_iter().map(|(name, _)| name);
            Some((&*one.path, files.filter(|name| name::is_record(name)).collect()))
        });
        owned.collect()
    }
}

/// Whether the record of `head`, which is in a file of heads called `name`, is among the `owned`: there by itself and by
/// its head.
fn is_owned(owned: &[(&Path, BTreeSet<String>)], name: &str, head: &HeadIn) -> bool {
    let Some(file) = head.file.as_deref() else { return false };
    owned.iter().filter(|(_, files)| files.contains(file)).any(|(path, _)| {
        let bytes = Folder::open(path).and_then(|folder| folder.read(name, HEADS_LONGEST_BYTES));
        let is_same = |head: &HeadIn| head.file.as_deref() == Some(file);
        bytes.is_ok_and(|bytes| HeadIn::parse(&bytes).0.iter().any(is_same))
    })
}

/// The owners who have folders in `dir`, of those that the caller may not list himself; and what is to be said of what lies
/// beside the folders.
fn owners(dir: &Path) -> io::Result<(Vec<String>, Vec<String>)> {
    match Folder::open(dir).and_then(|root| root.entries()) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok((vec![rustix::process::getuid().as_raw().to_string()], Vec::new()))
        }
        all => {
            let all = all?;
            let strays = all.iter().filter(|(name, _)| name::is_record(name)).count();
            let mut said = Vec::from_iter((strays > 0).then(|| strayed(dir, strays)));
            let (owners, others): (Vec<_>, Vec<_>) = all
                .into_iter()
                .filter(|(name, _)| name::is_owner(name))
                .partition(|(_, kind)| *kind == Kind::Folder);
            said.extend(others.iter().map(|(name, _)| no_folder(dir, name)));
            Ok((owners.into_iter().map(|(name, _)| name).collect(), said))
        }
    }
}

/// Of what is called as a folder of records and is none: whoever may write there could have others read by it.
fn no_folder(dir: &Path, name: &str) -> String {
    format!(
        "{}: a link, or no folder at all: links are not followed, so name the folder of records that it leads to with --from",
        dir.join(name).display()
    )
}

/// Of records that no list has.
fn strayed(dir: &Path, strays: usize) -> String {
    let records = if strays == 1 { "record lies" } else { "records lie" };
    format!(
        "{}: {strays} {records} here, not in a folder of an owner and a day (UID/YYYY-MM-DD): name such files to \
         `jobtrace report`",
        dir.display()
    )
}

/// The same, of records in the folder of a day.
fn unlisted(path: &Path, host: &str, records: usize) -> String {
    let what = if records == 1 { "record is" } else { "records are" };
    format!(
        "{}: {records} {what} in no list, for {} is not there: name the files to `jobtrace report`",
        path.display(),
        name::heads_of_escaped(host)
    )
}

/// How many of the `files` of a day are records whose heads are not among them, by node.
fn without_heads<'a>(files: impl Iterator<Item = &'a str> + Clone) -> BTreeMap<&'a str, usize> {
    let mut records = BTreeMap::new();
    for host in files.clone().filter_map(name::escaped_host) {
        *records.entry(host).or_insert(0) += 1;
    }
    records.retain(|host, _| !files.clone().any(|name| name == name::heads_of_escaped(host)));
    records
}

/// Gives `visit` each head in the folders of a day, by node and file, with the folder that tells of it last and the
/// name of the file it is in; gives what could not be read, and what of that which `visit` counts is in several. Files
/// whose bytes are not `is_wanted`, and folders in which nothing changed since, may be left out. Folders that changed after
/// `saved_ns` may lack heads.
fn visit_part(
    part: &[DayOfOwner],
    [since_ns, saved_ns]: [u64; 2],
    is_wanted: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(&Path, &str, &HeadIn) -> bool,
) -> Skipped {
    let mut skipped = Skipped::default();
    let folders: Vec<_> =
        part.iter().filter_map(|of| opened(&of.path, since_ns, &mut skipped)).collect();
    // A node's heads have the same name in each.
    let mut files = BTreeMap::<String, Vec<&Folder>>::new();
    for folder in &folders {
        let names = skipped.take(folder.path(), folder.entries()).unwrap_or_default();
        let missing = without_heads(names.iter().map(|(name, _)| &**name));
        let is_saved = || folder.modified_ns().is_ok_and(|changed_ns| changed_ns < saved_ns);
        if !missing.is_empty() && is_saved() {
            let told =
                missing.iter().map(|(host, records)| unlisted(folder.path(), host, *records));
            skipped.damaged.extend(told);
        }
        for (name, _) in names.into_iter().filter(|(name, _)| name::is_heads(name)) {
            files.entry(name).or_default().push(folder);
        }
    }
    for (name, folders) in files {
        let read = |folder: &&Folder| {
            let bytes = folder.read(&name, HEADS_LONGEST_BYTES);
            let bytes = skipped.take_in(folder.path(), &name, bytes)?;
            // A line that is torn may be anybody's.
            (is_wanted(&bytes) || !is_whole(&bytes)).then(|| (folder.path().to_owned(), bytes))
        };
        let texts: Vec<_> = folders.iter().filter_map(read).collect();
        let mut heads = Vec::new();
        for (path, bytes) in &texts {
            let (of_file, lines) = HeadIn::parse(bytes);
            heads.extend(of_file.into_iter().map(|head| (path, head)));
            let damaged = lines
                .iter()
                .map(|line| format!("{}: line {line} is damaged", path.join(&name).display()));
            skipped.damaged.extend(damaged);
        }
        // Of one file's heads this keeps the order.
        heads.sort_by(|(_, a), (_, b)| (&a.file, age(b)).cmp(&(&b.file, age(a))));
        for same in heads.chunk_by(|(_, a), (_, b)| a.file == b.file) {
            let (path, head) = &same[0];
            if visit(path, &name, head) && same.len() > 1 {
                skipped.repeated.insert(hash_of(&head.file));
            }
        }
    }
    skipped
}

/// The folder at `path`, if it can be read and something may have changed in it since.
fn opened(path: &Path, since_ns: u64, skipped: &mut Skipped) -> Option<Folder> {
    let folder = skipped.take(path, Folder::open(path))?;
    // A record that is saved again is a new file under its name, so its folder changes.
    if since_ns > 0
        && let Some(changed_ns) = skipped.take(path, folder.modified_ns())
        && changed_ns.saturating_add(CLOCKS_APART_NS) < since_ns
    {
        return None;
    }
    Some(folder)
}

/// What grows with each state of one record.
fn age(head: &HeadIn) -> (Option<u64>, bool) {
    (head.seen, head.end.is_some())
}

fn hash_of(file: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    hasher.finish()
}

/// Whether each line ends as one that was written whole.
fn is_whole(bytes: &[u8]) -> bool {
    let is_end = |at: usize| at == 0 || matches!(bytes[at - 1], b'}' | b'\n');
    bytes.last().is_none_or(|byte| *byte == b'\n') && memchr::memchr_iter(b'\n', bytes).all(is_end)
}
