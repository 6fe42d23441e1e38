//! A file system with a quota: btrfs, whose quotas hold for root too, on a loop device in memory.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;
use xtask::ram_disk::RamDisk;

use super::{folder, program, run};

/// Bytes of the disk: the least that btrfs takes comfortably.
const BYTES: u64 = 160 << 20;

/// What the quota is on: a subvolume, so that it can be raised from outside once it is used up.
const LIMITED: &str = "limited";

/// The file system, mounted while its value lives.
#[derive(Debug)]
pub struct Quota {
    mount: PathBuf,
    path: PathBuf,
    bytes: u64,
    _folder: TempDir,
    _disk: RamDisk,
}

impl Quota {
    /// One on which `bytes` may be used.
    ///
    /// # Errors
    /// When btrfs-progs are not installed, the kernel has no btrfs, or this is not root.
    pub fn new(bytes: u64) -> Result<Self> {
        let disk = RamDisk::create(BYTES).context("no loop device")?;
        let folder = folder("quota")?;
        let path = folder.path().join("jobtrace");
        fs::create_dir(&path)?;
        let device = format!("/dev/{}", disk.name());
        let mut make = Command::new(program("mkfs.btrfs", "btrfs-progs")?);
        run(make.args(["--mixed", "--force", &device]))?;
        mount(&*device, &path, "btrfs", MountFlags::NODEV | MountFlags::NOSUID, None)
            .context("cannot mount btrfs: does this kernel have it?")?;
        let limited = path.join(LIMITED);
        let quota = Self { mount: path, path: limited, bytes, _folder: folder, _disk: disk };
        btrfs(&["quota", "enable"], &quota.mount)?;
        btrfs(&["subvolume", "create"], &quota.path)?;
        quota.limit(bytes)?;
        Ok(quota)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Uses all that may be used.
    ///
    /// # Errors
    /// When writing fails for another reason than the quota.
    pub fn fill(&self) -> Result<()> {
        let mut file =
            File::create(self.path.join("filling")).context("cannot make the filling")?;
        loop {
            match file.write(&[0x5a; 65536]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::QuotaExceeded => return Ok(()),
                Err(error) => bail!("the quota is not exceeded: {error}"),
            }
        }
    }

    /// Raises the quota, as an administrator would.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn raise(&self) -> Result<()> {
        self.limit(self.bytes * 4)
    }

    fn limit(&self, bytes: u64) -> Result<()> {
        let path = self.path.display().to_string();
        let shown =
            run(Command::new(program("btrfs", "btrfs-progs")?).args(["subvolume", "show", &path]))?;
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let id = shown.lines().find_map(|line| line.trim().strip_prefix("Subvolume ID:"));
        let id = id.context("btrfs shows no id of the subvolume")?.trim();
        btrfs(&["qgroup", "limit", &bytes.to_string(), &format!("0/{id}")], &self.mount)
    }
}

/// A command of btrfs about what is at `path`.
fn btrfs(words: &[&str], path: &Path) -> Result<()> {
    let mut command = Command::new(program("btrfs", "btrfs-progs")?);
    run(command.args(words).arg(path)).map(drop)
}

impl Drop for Quota {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.mount, UnmountFlags::DETACH) {
            eprintln!("left behind: the mount {}: {error}", self.mount.display());
        }
    }
}
