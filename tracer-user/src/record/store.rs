//! A folder of records: `DIR/<uid>/YYYY-MM-DD/`, with a file for each record and, for each node, one with their heads.
//! Records appear whole and replace their earlier state; heads are appended. This is the writing side; [`read`] and
//! [`read_heads`] are the other.
//!
//! Each node touches its own files alone, through folders that are held open: no link leads it elsewhere.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

mod batch;
mod heads;
mod limits;
mod mirror;
mod rights;

pub use heads::LONGEST_BYTES as HEADS_LONGEST_BYTES;
pub use limits::{Dropped, Enforcing, Limits};
pub use mirror::{Access, Copied, Mirror};
use rights::{Rights, Users};

pub use super::find::{Heads, Skipped, read, read_heads, read_of, records_of};
use super::{
    Record,
    name::{self, Place},
};
use crate::files::{folder::Folder, publish::cure};

/// Where an agent saves them, if it is not told otherwise.
pub const DEFAULT_DIR: &str = "/var/lib/jobtrace/records";
/// Files that are not yet whole, of each owner: they have his rights from their begin on.
const TMP: &str = "tmp";
/// Longest record that is read: no program wrote one a tenth as long.
pub const LONGEST_BYTES: u64 = 16 << 20;

/// The records of one node in a folder.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    host: String,
    rights: Rights,
    known_heads: heads::Known,
}

impl Store {
    /// The store of `host` in `dir`, which is made where it is absent. Who may read it is the umask's matter, and others
    /// may write to it as well: runs that save their records.
    ///
    /// # Errors
    /// When it cannot be made or written to; the message names the cure. A full disk is no error: space may come.
    pub fn open(dir: &Path, host: &str) -> Result<Self> {
        Self::open_with(dir, host, Rights::Umask)
    }

    /// As [`Self::open`], for the only writer of `host`: the group may read all, each user his own, whatever the umask.
    /// What a writer that was killed left half is removed.
    ///
    /// # Errors
    /// As there.
    pub fn open_for_users(dir: &Path, host: &str) -> Result<Self> {
        let store = Self::open_with(dir, host, Rights::Users(Users::new()))?;
        if let Ok(root) = store.root() {
            store.recover(&root);
        }
        Ok(store)
    }

    fn open_with(dir: &Path, host: &str, rights: Rights) -> Result<Self> {
        let known_heads = heads::Known::default();
        let store = Self { dir: dir.to_owned(), host: host.to_owned(), rights, known_heads };
        let probe = format!(".{}.probe", name::heads(host));
        let tried = store.root().and_then(|root| {
            store.rights.of_top(&root)?;
            let made = root.create(&probe).map(drop);
            made.and(root.remove(&probe))
        });
        match tried {
            Err(error) if is_full(&error) => {}
            tried => drop(store.told(tried, "write to")?),
        }
        Ok(store)
    }

    /// Removes what this node's writer left in tmp.
    fn recover(&self, root: &Folder) {
        let owners = root.entries().unwrap_or_default().into_iter();
        for (owner, _) in owners.filter(|(name, _)| name::is_owner(name)) {
            let Ok(tmp) = root.folder(&owner).and_then(|owner| owner.folder(TMP)) else { continue };
            for (name, _) in tmp.entries().unwrap_or_default() {
                let is_own = name::begin_ns(&self.host, &name).is_some();
                if is_own || name == name::heads(&self.host) {
                    // What cannot be removed is written over, or found at the next start.
                    let _ = tmp.remove(&name);
                }
            }
        }
    }

    /// As [`Self::save_all`], of one; gives its path.
    ///
    /// # Errors
    /// When the disk refuses; the earlier state stands.
    pub fn save(&self, record: &Record) -> Result<PathBuf> {
        self.save_all(&[record]).pop().context("one record has one result")??;
        let Place { owner, day, file } = name::place(record);
        Ok(self.dir.join(owner).join(day).join(file))
    }

    /// Removes the record at `place` with its head: it is elsewhere now.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, place: &Place) -> Result<()> {
        let removed = self.root().and_then(|root| {
            let folder = root.folder(&place.owner)?.folder(&place.day)?;
            if folder.remove(&place.file)? {
                self.rewrite_heads(&root, &place.owner, &place.day)?;
            }
            Ok(())
        });
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => self.told(removed, "move a record in"),
        }
    }

    /// What has to go now that it is `wall_ns`, to be removed step by step: what was seen last too long ago, and the
    /// oldest of what is too much, with their heads.
    pub fn enforce(&self, limits: &Limits, wall_ns: u64) -> Enforcing {
        Enforcing::new(*limits, wall_ns)
    }

    /// Whether users cannot read theirs, because the file system has no access control lists: told once.
    pub fn take_lacks_lists(&self) -> bool {
        self.rights.take_lacks_lists()
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether nobody else writes this node's files.
    fn is_only_writer(&self) -> bool {
        matches!(self.rights, Rights::Users(_))
    }

    /// The folder, made where it is absent.
    fn root(&self) -> io::Result<Folder> {
        match Folder::open(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(&self.dir)?;
                let root = Folder::open(&self.dir)?;
                self.rights.of_top(&root)?;
                Ok(root)
            }
            opened => opened,
        }
    }

    /// The folder of `owner`, made where it is absent, with its rights.
    fn owner(&self, root: &Folder, owner: &str) -> io::Result<Folder> {
        let (folder, is_new) = root.make_folder(owner)?;
        if is_new {
            self.rights.forget(owner);
            root.sync()?;
        }
        self.rights.of_owner(&folder, owner)?;
        Ok(folder)
    }

    /// The folder of what is not yet whole of an owner's, made where it is absent.
    fn tmp_of(&self, owner: &Folder) -> io::Result<Folder> {
        let (tmp, is_new) = owner.make_folder(TMP)?;
        if is_new {
            self.rights.of_folder(&tmp)?;
        }
        Ok(tmp)
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
