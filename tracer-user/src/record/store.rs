//! A folder of records: `DIR/YYYY-MM-DD/`, with a file for each record and, for each node, one with their heads.
//! Records appear whole and replace their earlier state; heads are appended.
//!
//! Each node touches its own files alone. What is damaged is named, skipped and counted, never removed before its
//! time.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use rustix::fs::RawMode;

mod limits;

pub use limits::{Dropped, Enforcing, Limits};

use super::{Record, file, head::Head, name};
use crate::files::{
    folder::{Folder, Kind, is_torn},
    publish::cure,
};

/// Where an agent saves them, if it is not told otherwise.
pub const DEFAULT_DIR: &str = "/var/lib/jobtrace/records";
/// Files that are not yet whole.
const TMP: &str = "tmp";
/// Rights of files and folders, whatever the umask.
const FILE_MODE: RawMode = 0o640;
const FOLDER_MODE: RawMode = 0o750;
/// Longest file that is read: no program wrote one a tenth as long.
const LONGEST_BYTES: u64 = 64 << 20;

/// What a folder's heads tell.
#[derive(Debug, Default)]
pub struct Heads {
    /// Each with its day's folder, in the order of days and files.
    pub heads: Vec<(PathBuf, Head)>,
    /// What was skipped, with its place and why.
    pub damaged: Vec<String>,
}

/// The records of one node in a folder.
#[derive(Clone, Debug)]
pub struct Store {
    dir: PathBuf,
    host: String,
}

/// A record on its way to its place.
struct Written {
    name: String,
    line: String,
    /// In tmp; `None` where the one in place is the same.
    file: Option<File>,
}

impl Store {
    /// The store of `host` in `dir`, which is made where it is absent.
    ///
    /// # Errors
    /// When it cannot be made or written to; the message names the cure. A full disk is no error: space may come.
    pub fn open(dir: &Path, host: &str) -> Result<Self> {
        let store = Self { dir: dir.to_owned(), host: host.to_owned() };
        let probe = format!("{}.probe", name::heads(host));
        let tried = store.folders().and_then(|(_, tmp)| {
            let made = tmp.create(&probe, FILE_MODE).map(drop);
            let removed = tmp.remove(&probe);
            made.and(removed)
        });
        match tried {
            Err(error) if is_full(&error) => {}
            tried => drop(store.told(tried, "write to")?),
        }
        Ok(store)
    }

    /// Removes what a writer that was killed left half. For the only writer of this node.
    pub fn recover(&self) {
        let Ok((_, tmp)) = self.folders() else { return };
        for (name, _) in tmp.entries().unwrap_or_default() {
            if name::begin_ns(&self.host, &name).is_some() {
                // What cannot be removed is written over, or found at the next start.
                let _ = tmp.remove(&name);
            }
        }
    }

    /// As [`Self::save_all`], of one; gives its path.
    ///
    /// # Errors
    /// When the disk refuses; the earlier state stands.
    pub fn save(&self, record: &Record) -> Result<PathBuf> {
        let (day, name) = name::place(record);
        self.save_all(&[record]).pop().context("one record has one result")??;
        Ok(self.dir.join(day).join(name))
    }

    /// Writes each of `records` in place of its earlier state, and its head; of several states of one record the last.
    /// What is saved is on the disk when this returns: the disk is waited for once for all of them, not for each. One
    /// that is there already is left alone: after a restart an agent cannot know what the one before still saved.
    ///
    /// Gives for each what became of it: where the disk refused, its earlier state stands.
    pub fn save_all(&self, records: &[&Record]) -> Vec<Result<()>> {
        let mut last = BTreeMap::new();
        for (at, record) in records.iter().enumerate() {
            last.insert(name::place(record), at);
        }
        let mut results: Vec<io::Result<()>> = records.iter().map(|_| Ok(())).collect();
        match self.folders() {
            Ok(folders) => self.save_into(&folders, records, &last, &mut results),
            Err(error) => results.iter_mut().for_each(|result| *result = Err(again(&error))),
        }
        // Of an earlier state of the same record there is nothing to be said but that.
        let shared = |at: usize| last.get(&name::place(records[at])).copied().unwrap_or(at);
        let errors: Vec<Option<io::Error>> =
            results.iter().map(|result| result.as_ref().err().map(again)).collect();
        let of = |at: usize| errors[shared(at)].as_ref().map_or(Ok(()), |error| Err(again(error)));
        (0..records.len()).map(|at| self.told(of(at), "save a record in")).collect()
    }

    fn save_into(
        &self,
        (root, tmp): &(Folder, Folder),
        records: &[&Record],
        last: &BTreeMap<(String, String), usize>,
        results: &mut [io::Result<()>],
    ) {
        let mut written = BTreeMap::<String, Vec<(usize, Written)>>::new();
        for ((day, name), at) in last {
            match self.write((root, tmp), records[*at], day, name) {
                Ok(one) => written.entry(day.clone()).or_default().push((*at, one)),
                Err(error) => results[*at] = Err(error),
            }
        }
        // All are on their way to the disk already.
        for of_day in written.values_mut() {
            of_day.retain(|(at, one)| {
                let synced = one.file.as_ref().map_or(Ok(()), File::sync_all);
                if synced.is_err() {
                    let _ = tmp.remove(&one.name);
                }
                results[*at] = synced;
                results[*at].is_ok()
            });
        }
        for (day, mut of_day) in written {
            let folder = match self.day(root, &day) {
                Ok(folder) => folder,
                Err(error) => {
                    of_day.iter().for_each(|(at, _)| results[*at] = Err(again(&error)));
                    continue;
                }
            };
            of_day.retain(|(at, one)| {
                let moved = one.file.as_ref().map(|_| tmp.rename(&one.name, &folder, &one.name));
                results[*at] = moved.unwrap_or(Ok(())).inspect_err(|_| drop(tmp.remove(&one.name)));
                results[*at].is_ok()
            });
            if let Err(error) = self.add_heads(&folder, of_day.iter().map(|(_, one)| one)) {
                of_day.iter().for_each(|(at, _)| results[*at] = Err(again(&error)));
            }
        }
    }

    /// Writes `record` into tmp, from where it goes to the disk meanwhile.
    fn write(
        &self,
        (root, tmp): (&Folder, &Folder),
        record: &Record,
        day: &str,
        name: &str,
    ) -> io::Result<Written> {
        let bytes = file::encode(record).map_err(io::Error::other)?;
        let line = Head::from(record).line();
        let name = name.to_owned();
        let is_there = root.folder(day).and_then(|folder| folder.read(&name, LONGEST_BYTES));
        if is_there.is_ok_and(|there| there == bytes) {
            return Ok(Written { name, line, file: None });
        }
        let written = tmp.create(&name, FILE_MODE).and_then(|mut file| {
            file.write_all(&bytes)?;
            // Its age is that of what it tells.
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(record.timeline.end_ns()))?;
            start_write_out(&file);
            Ok(file)
        });
        match written {
            Ok(file) => Ok(Written { name, line, file: Some(file) }),
            Err(error) => {
                let _ = tmp.remove(&name);
                Err(error)
            }
        }
    }

    /// The folder of a day, made where it is absent.
    fn day(&self, root: &Folder, day: &str) -> io::Result<Folder> {
        let (folder, is_new) = root.make_folder(day, FOLDER_MODE)?;
        if is_new {
            root.sync()?;
        }
        Ok(folder)
    }

    /// Adds the heads of `all` in `folder`, and sees that they are on the disk.
    fn add_heads<'a>(
        &self,
        folder: &Folder,
        all: impl Iterator<Item = &'a Written>,
    ) -> io::Result<()> {
        let (mut there, mut lines) = (None::<HashSet<String>>, String::new());
        for one in all {
            // One that is there already may lack its head: its writer was killed between the two.
            let is_told = one.file.is_none()
                && there.get_or_insert_with(|| self.heads_in(folder)).contains(one.line.trim_end());
            if !is_told {
                lines.push_str(&one.line);
            }
        }
        if !lines.is_empty() {
            let mut heads = folder.append(&name::heads(&self.host), FILE_MODE)?;
            if is_torn(&heads)? {
                // What a node that died left of a line is one of its own.
                lines.insert(0, '\n');
            }
            // By one call: lines of several writers do not mix.
            heads.write_all(lines.as_bytes())?;
            heads.sync_all()?;
        }
        folder.sync()
    }

    /// The lines of this node's heads there.
    fn heads_in(&self, folder: &Folder) -> HashSet<String> {
        let text = folder.read(&name::heads(&self.host), LONGEST_BYTES).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }

    /// What has to go now that it is `wall_ns`, to be removed step by step: what was seen last too long ago, and the
    /// oldest of what is too much. Heads stay as long as there are records beside them.
    pub fn enforce(&self, limits: &Limits, wall_ns: u64) -> Enforcing {
        Enforcing::new(&self.dir, &self.host, *limits, wall_ns)
    }

    /// The folder, and that of files that are not yet whole.
    fn folders(&self) -> io::Result<(Folder, Folder)> {
        let root = match Folder::open(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.dir)?;
                Folder::open(&self.dir)?
            }
            opened => opened?,
        };
        let (tmp, _) = root.make_folder(TMP, FOLDER_MODE)?;
        Ok((root, tmp))
    }

    /// `result` with what was tried, where, and the cure.
    fn told<T>(&self, result: io::Result<T>, tried: &str) -> Result<T> {
        result.map_err(|error| {
            let message = format!("cannot {tried} {}: {}", self.dir.display(), cure(&error));
            anyhow::Error::new(error).context(message)
        })
    }
}

/// Whether `error` is that there is no space.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The same error, for another record.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// Has what was written to `file` go to the disk without waiting for it.
fn start_write_out(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: numbers alone, of a file that is open. Where it fails, the wait for the file does it.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// The heads of all nodes in `dir`, of the days that `wanted` wants.
///
/// # Errors
/// When there is no such folder.
pub fn read_heads(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Heads> {
    let cannot = || format!("cannot read the records in {}", dir.display());
    let root = Folder::open(dir).with_context(cannot)?;
    let mut found = Heads::default();
    let days = root.entries().with_context(cannot)?.into_iter();
    for (day, _) in
        days.filter(|(name, kind)| *kind == Kind::Folder && name::is_day(name) && wanted(name))
    {
        let Ok(folder) = root.folder(&day) else { continue };
        let names = folder.entries().unwrap_or_default().into_iter();
        for (name, _) in names.filter(|(name, _)| name::is_heads(name)) {
            let path = folder.path().join(&name);
            let text = match folder.read(&name, LONGEST_BYTES) {
                Ok(text) => text,
                Err(error) => {
                    found.damaged.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            let (heads, lines) = Head::parse(&text);
            found.heads.extend(heads.into_values().map(|head| (folder.path().to_owned(), head)));
            found.damaged.extend(
                lines.iter().map(|line| format!("{}: line {line} is damaged", path.display())),
            );
        }
    }
    Ok(found)
}

/// The record in the file at `path`.
///
/// # Errors
/// When it cannot be read, is damaged or of a later version; the message names the file.
pub fn read(path: &Path) -> Result<Record> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    file::decode(&bytes).with_context(|| path.display().to_string())
}
