//! Who may read what a store holds.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    io,
};

use rustix::{
    fd::AsFd,
    fs::{Gid, Mode, RawMode, fchmod, fchown},
};

use super::super::name::NO_OWNER;
use crate::files::{acl, folder::Folder};

/// Of files, of folders, and of the one at the top, which everybody may pass through to his own.
const FILE: RawMode = 0o640;
const FOLDER: RawMode = 0o750;
const TOP: RawMode = 0o751;
/// The group that may read all.
const GROUP: &str = "jobtrace";
/// Owners whose folders are known to have their list.
const MOST_KNOWN: usize = 10_000;

/// Who may read what is made.
#[derive(Debug)]
pub(super) enum Rights {
    /// Whom the umask lets.
    Umask,
    /// Everybody.
    Open,
    /// The group, and each user his own.
    Users(Users),
}

#[derive(Debug)]
pub(super) struct Users {
    /// Where it is not that of the process.
    group: Option<Gid>,
    /// Owners whose folders have their list.
    known: RefCell<BTreeSet<String>>,
    /// Whether the file system has lists.
    has_lists: Cell<bool>,
    /// Whether that it has none was told.
    is_told: Cell<bool>,
}

impl Users {
    pub fn new() -> Self {
        // The package's unit runs as that group.
        let group = rustix::process::geteuid()
            .is_root()
            .then(|| uzers::get_group_by_name(GROUP).map(|group| Gid::from_raw(group.gid())));
        Self {
            group: group.flatten(),
            known: RefCell::default(),
            has_lists: Cell::new(true),
            is_told: Cell::new(false),
        }
    }
}

impl Rights {
    /// Sets them of a file that is new.
    pub fn of_file(&self, file: impl AsFd) -> io::Result<()> {
        self.set(file, FILE)
    }

    /// Sets them of a folder that is new.
    pub fn of_folder(&self, folder: &Folder) -> io::Result<()> {
        self.set(folder, FOLDER)
    }

    /// Sets them of the top folder, where it is the process's own.
    pub fn of_top(&self, folder: &Folder) -> io::Result<()> {
        match self.set(folder, TOP) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            set => set,
        }
    }

    /// Sets them of an owner's folder, where that was not done yet: before anything is made in it.
    pub fn of_owner(&self, folder: &Folder, owner: &str) -> io::Result<()> {
        let Self::Users(users) = self else { return Ok(()) };
        if !users.known.borrow().contains(owner) {
            self.of_folder(folder)?;
            if let (Ok(uid), true) = (owner.parse(), users.has_lists.get())
                && owner != NO_OWNER
            {
                users.has_lists.set(acl::let_read(folder, uid)?);
            }
            let mut known = users.known.borrow_mut();
            if known.len() >= MOST_KNOWN {
                known.clear();
            }
            known.insert(owner.to_owned());
        }
        Ok(())
    }

    /// The folder of `owner` is gone.
    pub fn forget(&self, owner: &str) {
        if let Self::Users(users) = self {
            users.known.borrow_mut().remove(owner);
        }
    }

    /// Whether users cannot read theirs because the file system has no lists: told once.
    pub fn take_lacks_lists(&self) -> bool {
        let Self::Users(users) = self else { return false };
        !users.has_lists.get() && !users.is_told.replace(true)
    }

    fn set(&self, fd: impl AsFd, mode: RawMode) -> io::Result<()> {
        let mode = match self {
            Self::Umask => return Ok(()),
            Self::Open => mode | (mode & 0o050) >> 3,
            Self::Users(users) => {
                if users.group.is_some() {
                    fchown(&fd, None, users.group)?;
                }
                mode
            }
        };
        // Whatever the umask says. With a list it sets the most that a user in it may have.
        Ok(fchmod(fd, Mode::from_raw_mode(mode))?)
    }
}
