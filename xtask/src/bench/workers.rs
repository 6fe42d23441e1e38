//! Where the kernel's own workers run while the loop device is measured.

use crate::process::say;
use anyhow::{Context, Result};
use std::fs;

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
