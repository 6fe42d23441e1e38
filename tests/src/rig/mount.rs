//! File systems in memory, mounted while their values live.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use super::{folder, program, run};
use crate::disk::RamDisk;

/// The folder that one is mounted at.
const NAME: &str = "jobtrace";

fn size(bytes: u64) -> String {
    format!("size={bytes},mode=755")
}

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
        Self::mount_as("tmpfs", &size(bytes), NAME)
    }

    /// The same, in a folder of another name, which holds `jobtrace`.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn named(bytes: u64, name: &str) -> Result<Self> {
        Self::mount_as("tmpfs", &size(bytes), name)
    }

    /// Mounts one that has no access control lists: a ramfs.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub fn without_lists() -> Result<Self> {
        Self::mount_as("ramfs", "mode=755", NAME)
    }

    fn mount_as(kind: &str, options: &str, name: &str) -> Result<Self> {
        let folder = folder("disk")?;
        let path = folder.path().join(name);
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
        leave(&self.path);
    }
}

/// An ext4 on a loop device over memory.
#[derive(Debug)]
pub struct Ext4(OnDisk);

impl Ext4 {
    /// Makes and mounts one of `bytes`.
    ///
    /// # Errors
    /// When it cannot be made (`mkfs.ext4` of e2fsprogs) or mounted: root and the module loop are needed.
    pub fn mount(bytes: u64) -> Result<Self> {
        let make = Command::new(program("mkfs.ext4", "e2fsprogs")?);
        OnDisk::mount("ext4", make, &["-qF"], bytes).map(Self)
    }

    /// Bounds what the kernel keeps unwritten for this disk, in bytes, while the value lives: who writes faster pauses.
    ///
    /// # Errors
    /// When the kernel has no such bound (before 6.2).
    pub fn bound_unwritten(&self, bytes: u64) -> Result<Bound> {
        let number = std::fs::read_to_string(format!("/sys/block/{}/dev", self.0.disk.name()))?;
        let bound = Bound(PathBuf::from(format!("/sys/class/bdi/{}", number.trim())));
        bound.set("strict_limit", "1")?;
        bound.set("max_bytes", &bytes.to_string())?;
        Ok(bound)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// An XFS on a loop device over memory.
#[derive(Debug)]
pub struct Xfs(OnDisk);

impl Xfs {
    /// Makes and mounts one, as small as can be made.
    ///
    /// # Errors
    /// As [`Ext4::mount`], by `mkfs.xfs` of xfsprogs.
    pub fn mount() -> Result<Self> {
        let make = Command::new(program("mkfs.xfs", "xfsprogs")?);
        OnDisk::mount("xfs", make, &["-qf"], XFS_LEAST_BYTES).map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// What xfsprogs makes no smaller one than, from 5.19 on.
const XFS_LEAST_BYTES: u64 = 300 << 20;

/// A file system on a loop device over memory.
#[derive(Debug)]
struct OnDisk {
    path: PathBuf,
    _folder: TempDir,
    disk: RamDisk,
}

impl OnDisk {
    /// Makes one of `bytes` by `make` with `options`, and mounts it.
    fn mount(kind: &str, mut make: Command, options: &[&str], bytes: u64) -> Result<Self> {
        let disk = RamDisk::create(bytes).context("no loop device")?;
        run(make.args(options).arg(disk.path()))?;
        let folder = folder("disk")?;
        let path = folder.path().join(NAME);
        std::fs::create_dir(&path)?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        mount(disk.path(), &path, kind, flags, None::<&std::ffi::CStr>)
            .with_context(|| format!("cannot mount an {kind}, is this root?"))?;
        Ok(Self { path, _folder: folder, disk })
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        leave(&self.path);
    }
}

/// A bound on what is kept unwritten. The device outlives the file system, and others get it: it is lifted.
#[derive(Debug)]
pub struct Bound(PathBuf);

impl Bound {
    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.0.join(file);
        std::fs::write(&path, value).with_context(|| format!("cannot set {}", path.display()))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        for (file, value) in [("max_ratio", "100"), ("strict_limit", "0")] {
            if let Err(error) = self.set(file, value) {
                eprintln!("left behind: a bound on unwritten bytes: {error:#}");
            }
        }
    }
}

/// Detached: a process that still holds a file there must not keep the mount in sight.
fn leave(path: &Path) {
    if let Err(error) = unmount(path, UnmountFlags::DETACH) {
        eprintln!("left behind: the mount {}: {error}", path.display());
    }
}
