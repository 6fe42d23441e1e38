//! The copies of one node's records of a day of an owner's, in a shared folder.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    time::{Duration, UNIX_EPOCH},
};

use super::super::{
    super::{head::last_lines, name},
    TMP,
    heads::LONGEST_BYTES as HEADS_LONGEST_BYTES,
    rights::Rights,
};
use crate::files::folder::{Folder, Stat};

/// The file of a node's heads, by owner and day.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub owner: String,
    pub day: String,
    pub heads: String,
}

/// The folder they are in.
pub(super) struct Copies<'a> {
    rights: &'a Rights,
    key: &'a Key,
    of_owner: Folder,
    there: Folder,
    tmp: OnceCell<Folder>,
}

impl Key {
    /// Whether a file is a record of that node.
    pub fn has(&self, file: &str) -> bool {
        let host = |name: &str, end: &str| -> Option<String> {
            Some(name.strip_suffix(end)?.rsplit_once('@')?.1.to_owned())
        };
        let node = host(&self.heads, ".jsonl");
        name::is_record(file) && node.is_some() && node == host(file, name::EXTENSION)
    }
}

impl<'a> Copies<'a> {
    /// Those of `key` in `to`; `None` where there is no such folder.
    pub fn find(rights: &'a Rights, to: &Folder, key: &'a Key) -> io::Result<Option<Self>> {
        let Some(of_owner) = present(to.folder(&key.owner))? else { return Ok(None) };
        let there = present(of_owner.folder(&key.day))?;
        Ok(there.map(|there| Self { rights, key, of_owner, there, tmp: OnceCell::new() }))
    }

    /// The folder for those of `key`, below that of their owner, made where it is absent.
    pub fn make(rights: &'a Rights, of_owner: Folder, key: &'a Key) -> io::Result<Self> {
        let there = make_folder(rights, &of_owner, &key.day)?;
        Ok(Self { rights, key, of_owner, there, tmp: OnceCell::new() })
    }

    /// Size and time of a file there.
    pub fn stat(&self, name: &str) -> Option<Stat> {
        self.there.stat(name)
    }

    /// The node's records there.
    fn names(&self) -> io::Result<BTreeSet<String>> {
        let names = self.there.entries()?.into_iter().map(|(name, _)| name);
        Ok(names.filter(|name| self.key.has(name)).collect())
    }

    /// Removes those that `goes` names; gives how many. Heads are the caller's to write.
    pub fn remove(&self, goes: impl Fn(&str, Stat) -> bool) -> io::Result<u64> {
        let mut removed = 0;
        for name in self.names()? {
            let goes = self.stat(&name).is_some_and(|stat| goes(&name, stat));
            removed += u64::from(goes && self.there.remove(&name)?);
        }
        Ok(removed)
    }

    /// Writes a file there, whole or not at all, with its time.
    pub fn put(&self, name: &str, bytes: &[u8], modified_ns: u64) -> io::Result<()> {
        let tmp = match self.tmp.get() {
            Some(tmp) => tmp,
            None => {
                let made = make_folder(self.rights, &self.of_owner, TMP)?;
                self.tmp.get_or_init(|| made)
            }
        };
        let written = tmp.create(name).and_then(|mut file| {
            self.rights.of_file(&file)?;
            file.write_all(bytes)?;
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(modified_ns))?;
            file.sync_all()?;
            tmp.rename(name, &self.there, name)
        });
        written.inspect_err(|_| drop(tmp.remove(name)))
    }

    /// Writes the heads of the records that are there, with their time: by `text` or, of records that are only there,
    /// as they stand there. Where there are no records, heads and folder go.
    pub fn put_heads(&self, text: &[u8], modified_ns: u64) -> io::Result<()> {
        let (heads, names) = (&self.key.heads, self.names()?);
        if names.is_empty() {
            self.there.remove(heads)?;
            // Where no other node's are in it.
            let _ = self.of_owner.remove_folder(&self.key.day);
            return Ok(());
        }
        let (mut lines, here) = (BTreeMap::new(), last_lines(text));
        if names.iter().any(|name| !here.contains_key(name)) {
            lines = last_lines(&self.there.read(heads, HEADS_LONGEST_BYTES).unwrap_or_default());
        }
        lines.extend(here);
        lines.retain(|name, _| names.contains(name));
        self.put(heads, &lines.into_values().flatten().collect::<Vec<u8>>(), modified_ns)
    }
}

/// A folder in one of an owner's, made where it is absent.
fn make_folder(rights: &Rights, of_owner: &Folder, name: &str) -> io::Result<Folder> {
    let (folder, is_new) = of_owner.make_folder(name)?;
    if is_new {
        rights.of_folder(&folder)?;
    }
    Ok(folder)
}

/// `None` where it is absent.
fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}
