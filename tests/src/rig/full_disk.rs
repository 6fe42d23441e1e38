//! A disk that fills up, and is given room again.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::mount::Tmpfs;

/// A small file system in memory.
#[derive(Debug)]
pub struct SmallDisk {
    disk: Tmpfs,
}

impl SmallDisk {
    /// One of `bytes`, a multiple of the page size.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn new(bytes: u64) -> Result<Self> {
        Ok(Self { disk: Tmpfs::mount(bytes)? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// Fills it to the last byte; gives how many it took.
    ///
    /// # Errors
    /// When writing fails for another reason than a full disk.
    pub fn fill(&self) -> Result<u64> {
        let mut file = File::create(self.filling()).context("cannot make the filling")?;
        let mut written = 0;
        let piece = [0x5a; 4096];
        loop {
            match file.write(&piece) {
                Ok(bytes) => written += bytes as u64,
                Err(error) if error.kind() == ErrorKind::StorageFull => return Ok(written),
                Err(error) => bail!("the disk does not fill: {error}"),
            }
        }
    }

    /// Takes the filling away again.
    ///
    /// # Errors
    /// When there is none.
    pub fn empty(&self) -> Result<()> {
        fs::remove_file(self.filling()).context("the disk was not filled")
    }

    fn filling(&self) -> PathBuf {
        self.disk.path().join("filling")
    }
}
