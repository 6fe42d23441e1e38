//! A folder on a file system that is slow or hangs on purpose: bindfs, a FUSE file system that passes everything on to
//! another folder. Stopped, it answers nothing, as a network file system whose server is away; who waits for it can be
//! killed, as there.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use rustix::mount::{UnmountFlags, unmount};
use tempfile::TempDir;

use super::{PATIENCE, daemon::Daemon, folder, program};

/// The folder, mounted while its value lives.
#[derive(Debug)]
pub struct Share {
    server: Daemon,
    path: PathBuf,
    folder: TempDir,
}

impl Share {
    /// One that answers at once.
    ///
    /// # Errors
    /// When bindfs is not installed or this is not root.
    pub fn mount() -> Result<Self> {
        Self::mount_with(&[])
    }

    /// One on which all that is written together takes a second for each `bytes`.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn slow(bytes: u32) -> Result<Self> {
        Self::mount_with(&[format!("--write-rate={bytes}")])
    }

    fn mount_with(options: &[String]) -> Result<Self> {
        let folder = folder("share")?;
        // Its name holds `jobtrace`: the residue check knows it by that.
        let [path, behind] = ["jobtrace", "behind"].map(|name| folder.path().join(name));
        for made in [&path, &behind] {
            fs::create_dir(made)?;
        }
        let before = fs::metadata(&path)?.dev();
        let mut command = Command::new(program("bindfs", "bindfs")?);
        command.arg("-f").args(options).arg(&behind).arg(&path);
        let mut server = Daemon::start(&mut command, &folder.path().join("log"))?;
        server.wait_until("bindfs answers", PATIENCE, || {
            fs::metadata(&path).ok().filter(|now| now.dev() != before)
        })?;
        Ok(Self { server, path, folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that it shows, which never hangs.
    pub fn behind(&self) -> PathBuf {
        self.folder.path().join("behind")
    }

    /// From now on nothing is answered.
    pub fn hang(&self) {
        self.server.signal(libc::SIGSTOP);
    }

    /// It answers again.
    pub fn go_on(&self) {
        self.server.signal(libc::SIGCONT);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.go_on();
        if let Err(error) = unmount(&self.path, UnmountFlags::DETACH).context("unmount") {
            eprintln!("left behind: the mount {}: {error:#}", self.path.display());
        }
    }
}
