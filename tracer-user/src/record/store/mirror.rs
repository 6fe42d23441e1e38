//! A copy of the records in one folder in another, on a file system that a cluster shares: each node copies its own
//! files, atomically, and only what has changed. Nothing is kept besides: heads are copied last, with their time, so
//! a folder whose heads are the same there is whole there.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use super::{
    super::name,
    LONGEST_BYTES, TMP,
    heads::LONGEST_BYTES as HEADS_LONGEST_BYTES,
    limits::all_days,
    rights::{Rights, Users},
};
use crate::files::folder::{Folder, Stat};

/// Who may read the copies.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Each user his own, by an access control list on his folder.
    #[default]
    Users,
    /// Whom the folder of a user lets, which root has made; no other user's records are copied.
    Prepared,
    /// Everybody everything.
    Open,
}

/// What a round did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Records copied.
    pub records: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Records removed there, because they are not here any more.
    pub removed: u64,
    /// Users without a folder there, whose records are not copied ([`Access::Prepared`]).
    pub unprepared: BTreeSet<String>,
    /// To be said, once: who cannot read them.
    pub remark: Option<&'static str>,
}

/// The file of a node's heads, by owner and day.
type Key = (String, String, String);

/// A folder and its copy.
#[derive(Debug)]
pub struct Mirror {
    from: PathBuf,
    to: PathBuf,
    access: Access,
    rights: Rights,
    /// The heads that are there, as they were when they were copied.
    done: BTreeMap<Key, Stat>,
}

impl Mirror {
    /// Of `from` in `to`, which must be there: a mount that is missing is not to be filled.
    pub fn new(from: &Path, to: &Path, access: Access) -> Self {
        let rights = match access {
            Access::Users => Rights::Users(Users::new()),
            Access::Prepared => Rights::Umask,
            Access::Open => Rights::Open,
        };
        Self { from: from.to_owned(), to: to.to_owned(), access, rights, done: BTreeMap::new() }
    }

    /// Copies what has changed since the last round, as long as `go_on`, and removes what is not here any more.
    ///
    /// # Errors
    /// When one of the two folders cannot be read or written; what was copied is whole, and the next round goes on.
    pub fn round(&mut self, go_on: impl Fn() -> bool) -> io::Result<Copied> {
        let (from, to) = (Folder::open(&self.from)?, Folder::open(&self.to)?);
        self.rights.of_top(&to)?;
        let (mut copied, mut seen) = (Copied::default(), BTreeSet::new());
        for (owner, day) in all_days(&from)? {
            let Ok(here) = from.folder(&owner).and_then(|folder| folder.folder(&day)) else {
                continue;
            };
            let names: Vec<_> = here.entries()?.into_iter().map(|(name, _)| name).collect();
            for heads in names.iter().filter(|name| name::is_heads(name)) {
                if !go_on() {
                    return Ok(copied);
                }
                let Some(stat) = here.stat(heads) else { continue };
                let key = (owner.clone(), day.clone(), heads.clone());
                seen.insert(key.clone());
                if self.done.get(&key) == Some(&stat) {
                    continue;
                }
                if self.copy_day(&to, &here, &names, &key, stat, &mut copied)? {
                    self.done.insert(key, stat);
                }
            }
        }
        let gone: Vec<_> = self.done.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        for key in gone {
            self.remove_day(&to, &key, &mut copied)?;
            self.done.remove(&key);
        }
        copied.remark = self.rights.take_remark();
        Ok(copied)
    }

    /// Copies the records of one node's heads; gives whether they are there now.
    fn copy_day(
        &self,
        to: &Folder,
        here: &Folder,
        names: &[String],
        key: &Key,
        stat: Stat,
        copied: &mut Copied,
    ) -> io::Result<bool> {
        let (owner, day, heads) = key;
        let of_owner = match to.folder(owner) {
            Err(error)
                if self.access == Access::Prepared && error.kind() == io::ErrorKind::NotFound =>
            {
                copied.unprepared.insert(owner.clone());
                return Ok(false);
            }
            _ => to.make_folder(owner)?.0,
        };
        self.rights.of_owner(&of_owner, owner)?;
        let make = |name: &str| -> io::Result<Folder> {
            let (folder, is_new) = of_owner.make_folder(name)?;
            if is_new {
                self.rights.of_folder(&folder)?;
            }
            Ok(folder)
        };
        let (tmp, there) = (make(TMP)?, make(day)?);
        if there.stat(heads).is_some_and(|there| there.is_like(stat)) {
            return Ok(true);
        }
        // Before the records: what comes meanwhile is told of in the next round.
        let text = here.read(heads, HEADS_LONGEST_BYTES)?;
        let own = |name: &&String| name::is_record(name) && is_of(heads, name);
        let before = self.done.get(key).map(|done| done.modified_ns);
        for name in names.iter().filter(own) {
            let Some(stat) = here.stat(name) else { continue };
            let is_there = match before {
                // What this process has copied stands, unless it was written since.
                Some(before_ns) => stat.changed_ns < before_ns,
                None => there.stat(name).is_some_and(|there| there.is_like(stat)),
            };
            if is_there {
                continue;
            }
            let bytes = match here.read(name, LONGEST_BYTES) {
                // It has moved.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            self.put(&tmp, &there, name, &bytes, stat)?;
            copied.records += 1;
            copied.bytes += bytes.len() as u64;
        }
        let here: BTreeSet<_> = names.iter().collect();
        for (name, _) in there.entries()? {
            if own(&&name) && !here.contains(&name) && there.remove(&name)? {
                copied.removed += 1;
            }
        }
        self.put(&tmp, &there, heads, &text, stat)?;
        Ok(true)
    }

    /// Writes a file there, whole or not at all.
    fn put(
        &self,
        tmp: &Folder,
        there: &Folder,
        name: &str,
        bytes: &[u8],
        stat: Stat,
    ) -> io::Result<()> {
        let written = tmp.create(name).and_then(|mut file| {
            self.rights.of_file(&file)?;
            file.write_all(bytes)?;
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(stat.modified_ns))?;
            file.sync_all()?;
            tmp.rename(name, there, name)
        });
        written.inspect_err(|_| drop(tmp.remove(name)))
    }

    /// Removes a node's files of a day that is not here any more, the heads last.
    fn remove_day(
        &self,
        to: &Folder,
        (owner, day, heads): &Key,
        copied: &mut Copied,
    ) -> io::Result<()> {
        let Ok(of_owner) = to.folder(owner) else { return Ok(()) };
        let Ok(there) = of_owner.folder(day) else { return Ok(()) };
        for (name, _) in there.entries()? {
            if name::is_record(&name) && is_of(heads, &name) && there.remove(&name)? {
                copied.removed += 1;
            }
        }
        there.remove(heads)?;
        // Where no other node's are in it.
        let _ = of_owner.remove_folder(day);
        Ok(())
    }
}

/// Whether the record `name` is of the node whose heads these are.
fn is_of(heads: &str, name: &str) -> bool {
    let host = |name: &str, end: &str| -> Option<String> {
        Some(name.strip_suffix(end)?.rsplit_once('@')?.1.to_owned())
    };
    let node = host(heads, ".jsonl");
    node.is_some() && node == host(name, name::EXTENSION)
}
