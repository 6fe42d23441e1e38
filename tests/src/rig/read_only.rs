//! A file system that may be read only, as a disk becomes after an error.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount_remount};

use super::mount::Tmpfs;

/// Bytes of the file system.
const BYTES: u64 = 16 << 20;

/// A file system in memory that can be switched between the two ways.
#[derive(Debug)]
pub struct ReadOnly {
    disk: Tmpfs,
}

impl ReadOnly {
    /// One that may be written, so that a test can put files there first.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn new() -> Result<Self> {
        Ok(Self { disk: Tmpfs::mount(BYTES)? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// From now on writes fail with EROFS (`true`) or are possible again. Refused (EBUSY) while a file
    /// is open for writing.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set(&self, read_only: bool) -> Result<()> {
        let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        let flags = flags | MountFlags::NODEV | MountFlags::NOSUID;
        mount_remount(self.disk.path(), flags, c"")
            .with_context(|| format!("cannot remount {}", self.disk.path().display()))
    }
}
