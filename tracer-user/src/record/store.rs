//! A folder of records: `DIR/YYYY-MM-DD/`, with a file for each record and, for each node, one with their heads.
//! Records appear whole and replace their earlier state; heads are appended.
//!
//! Each node touches its own files alone. What is damaged is named, skipped and counted, never removed before its
//! time.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{Record, file, head::Head, name};
use crate::files::publish::{Stage, cure};

/// Where an agent saves them, if it is not told otherwise.
pub const DEFAULT_DIR: &str = "/var/lib/jobtrace/records";

/// What may stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Age of a day's folder.
    pub age_ns: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// What had to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Files.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
}

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

impl Store {
    /// The store of `host` in `dir`, which is made where it is absent.
    ///
    /// # Errors
    /// When it cannot be made or written to; the message names the cure.
    pub fn open(dir: &Path, host: &str) -> Result<Self> {
        let store = Self { dir: dir.to_owned(), host: host.to_owned() };
        let probe = store.dir.join("tmp").join(name::heads(host)).with_extension("probe");
        let made = store.stage("").make().and_then(|()| fs::write(&probe, "jobtrace\n"));
        // Full or not, it must not stay.
        let removed = fs::remove_file(&probe);
        store.told(made.and(removed), "write to")?;
        Ok(store)
    }

    /// Removes what a writer that was killed left half. For the only writer of this node.
    pub fn recover(&self) {
        for entry in entries(&self.dir.join("tmp")) {
            if name::begin_ns(&self.host, &entry.0).is_some() {
                // What cannot be removed is written over, or found at the next start.
                let _ = fs::remove_file(entry.1);
            }
        }
    }

    /// Writes `record` in place of its earlier state, and its head; gives its path. One that is there already is left
    /// alone: after a restart an agent cannot know what the one before still saved.
    ///
    /// # Errors
    /// When the disk refuses; the earlier state stands.
    pub fn save(&self, record: &Record) -> Result<PathBuf> {
        let (day, name) = name::place(record);
        let (bytes, line) = (file::encode(record)?, Head::from(record).line());
        let stage = self.stage(&day);
        let (path, heads) = (stage.done.join(&name), stage.done.join(name::heads(&self.host)));
        let is_there = fs::read(&path).is_ok_and(|there| there == bytes);
        if is_there && fs::read_to_string(&heads).is_ok_and(|heads| heads.contains(&line)) {
            return Ok(path);
        }
        let saved = if is_there { Ok(()) } else { stage.replace(&name, &bytes) };
        let saved = saved.and_then(|()| append(&heads, &line));
        self.told(saved, "save a record in")?;
        Ok(path)
    }

    /// Drops the days that are too old at `wall_ns`, and the oldest records of what is too much. Heads stay as long as
    /// their day.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn enforce(&self, limits: &Limits, wall_ns: u64) -> Result<Dropped> {
        let mut dropped = Dropped::default();
        let oldest = name::day(wall_ns.saturating_sub(limits.age_ns));
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for (day, folder) in days(&self.dir) {
            for (name, path) in entries(&folder) {
                let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                let begin_ns = name::begin_ns(&self.host, &name);
                if begin_ns.is_none() && name != name::heads(&self.host) {
                    continue;
                }
                if day < oldest {
                    self.told(dropped.remove(&path, size), "remove old records of")?;
                } else {
                    bytes += size;
                    kept.extend(begin_ns.map(|begin_ns| (begin_ns, path, size)));
                }
            }
            // Where nothing of another node's is in it.
            let _ = if day < oldest { fs::remove_dir(&folder) } else { Ok(()) };
        }
        kept.sort();
        for (_, path, size) in kept {
            if bytes <= limits.bytes {
                break;
            }
            self.told(dropped.remove(&path, size), "remove old records of")?;
            bytes -= size;
        }
        Ok(dropped)
    }

    fn stage(&self, day: &str) -> Stage {
        Stage { tmp: self.dir.join("tmp"), done: self.dir.join(day) }
    }

    /// `result` with what was tried, where, and the cure.
    fn told<T>(&self, result: io::Result<T>, tried: &str) -> Result<T> {
        result.map_err(|error| {
            let message = format!("cannot {tried} {}: {}", self.dir.display(), cure(&error));
            anyhow::Error::new(error).context(message)
        })
    }
}

impl Dropped {
    fn remove(&mut self, path: &Path, bytes: u64) -> io::Result<()> {
        match fs::remove_file(path) {
            Ok(()) => (self.files, self.bytes) = (self.files + 1, self.bytes + bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The heads of all nodes in `dir`, of the days that `wanted` wants.
///
/// # Errors
/// When there is no such folder.
pub fn read_heads(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Heads> {
    fs::read_dir(dir).with_context(|| format!("cannot read the records in {}", dir.display()))?;
    let mut found = Heads::default();
    for (_, folder) in days(dir).into_iter().filter(|(day, _)| wanted(day)) {
        for (_, path) in entries(&folder).into_iter().filter(|(name, _)| name::is_heads(name)) {
            let text = match fs::read(&path) {
                Ok(text) => text,
                Err(error) => {
                    found.damaged.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            let (heads, lines) = Head::parse(&text);
            found.heads.extend(heads.into_values().map(|head| (folder.clone(), head)));
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

/// Appends a line by one call: lines of several writers do not mix.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    // What a node that died left of a line is one of its own.
    let is_torn = !ends_with_line_feed(&file)?;
    let line = if is_torn { format!("\n{line}") } else { line.to_owned() };
    file.write_all(line.as_bytes())
}

fn ends_with_line_feed(file: &fs::File) -> io::Result<bool> {
    let (mut last, length) = ([0], file.metadata()?.len());
    if length == 0 {
        return Ok(true);
    }
    std::os::unix::fs::FileExt::read_exact_at(file, &mut last, length - 1)?;
    Ok(last == *b"\n")
}

/// The folders of days, in their order.
fn days(dir: &Path) -> Vec<(String, PathBuf)> {
    entries(dir).into_iter().filter(|(name, _)| name::is_day(name)).collect()
}

/// Names and paths of what lies in `folder`, in their order; nothing where there is none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}
