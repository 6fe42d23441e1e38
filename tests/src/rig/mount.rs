//! A file system in memory, mounted while its value lives.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::folder;

/// A tmpfs of a rig's own.
#[derive(Debug)]
pub struct Tmpfs {
    /// Its name holds `jobtrace`: the residue check knows it by that.
    path: PathBuf,
    _folder: TempDir,
}

impl Tmpfs {
    /// Mounts one of `bytes`, a multiple of the page size.
    ///
    /// # Errors
    /// When it cannot be mounted: root is needed.
    pub fn mount(bytes: u64) -> Result<Self> {
        Self::mount_as("tmpfs", &format!("size={bytes},mode=755"))
    }

    /// Mounts one that has no access control lists: a ramfs.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn without_lists() -> Result<Self> {
        Self::mount_as("ramfs", "mode=755")
    }

    fn mount_as(kind: &str, options: &str) -> Result<Self> {
        let folder = folder("disk")?;
        let path = folder.path().join("jobtrace");
        std::fs::create_dir(&path)?;
        let options = std::ffi::CString::new(options)?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        mount("jobtrace", &path, kind, flags, Some(options.as_c_str()))
            .with_context(|| format!("cannot mount a {kind}, is this root"))?;
        Ok(Self { path, _folder: folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Detached: a process that still holds a file there must not keep the mount in sight.
        if let Err(error) = unmount(&self.path, UnmountFlags::DETACH) {
            eprintln!("left behind: the mount {}: {error}", self.path.display());
        }
    }
}
