//! A quiet, request-based block device: a loop device over a file on a tmpfs of its own. A virtual
//! disk is too noisy to tell slowdowns below 10 % apart.

use crate::process::{output, say};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the device.
const BYTES: u64 = 128 << 20;

/// The device, undone when dropped.
pub struct RamDisk {
    mount: PathBuf,
    device: Option<PathBuf>,
}

impl RamDisk {
    /// Mounts a tmpfs below `scratch` and puts a loop device over a file in it.
    ///
    /// # Errors
    /// When mount or losetup fails.
    pub fn new(scratch: &Path) -> Result<Self> {
        let mount = scratch.join("ram");
        fs::create_dir(&mount).with_context(|| format!("make the folder {}", mount.display()))?;
        let size = format!("size={}", BYTES + (1 << 20));
        output(
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "jobtrace-bench"]).arg(&mount),
        )?;
        let mut disk = Self { mount, device: None };
        let file = disk.mount.join("disk");
        fill(&file, BYTES)?;
        let device = output(Command::new("losetup").args(["--find", "--show"]).arg(&file))?;
        disk.device = Some(PathBuf::from(device.trim()));
        Ok(disk)
    }

    /// The device's file.
    pub fn device(&self) -> &Path {
        self.device.as_deref().unwrap_or(Path::new("/dev/null"))
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            complain(Command::new("losetup").arg("--detach").arg(device));
        }
        complain(Command::new("umount").arg("--lazy").arg(&self.mount));
    }
}

/// The kernel's file of the CPUs that its unbound workers, the loop device's among them, may use.
const WORKERS: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Keeps the loop device's worker on one CPU, so that requests complete where they were made, as they
/// do on disks with a queue for each CPU. Undone when dropped.
pub struct Pinned {
    before: String,
}

impl Pinned {
    /// Pins unbound kernel workers to `cpu`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn to(cpu: usize) -> Result<Self> {
        let before = fs::read_to_string(WORKERS).with_context(|| format!("read {WORKERS}"))?;
        let words = (0..=cpu / 32).rev().map(|word| {
            let bits = if word == cpu / 32 { 1_u32 << (cpu % 32) } else { 0 };
            format!("{bits:08x}")
        });
        let mask = words.collect::<Vec<_>>().join(",");
        fs::write(WORKERS, mask).with_context(|| format!("write {WORKERS}"))?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Err(error) = fs::write(WORKERS, self.before.trim()) {
            say(format_args!("left behind: {WORKERS} is changed: {error}"));
        }
    }
}

/// There is nobody to return an error to.
fn complain(command: &mut Command) {
    if let Err(error) = output(command) {
        say(format_args!("left behind: {error:#}"));
    }
}

/// Writes `bytes` bytes that are not zero, so that no layer can make a hole of them.
///
/// # Errors
/// When there is no room.
pub fn fill(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("make {}", path.display()))?;
    let mut pattern = std::io::Read::take(std::io::repeat(0x5a), bytes);
    std::io::copy(&mut pattern, &mut file)
        .and_then(|_| file.sync_all())
        .with_context(|| format!("fill {}", path.display()))
}
