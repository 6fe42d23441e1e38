//! The kernel's own measuring of BPF programs' run time, switched on for as long as somebody holds it.

use std::{os::fd::OwnedFd, path::Path};

use anyhow::{Context, Result};
use aya::sys::{Stats, enable_stats};

use crate::base::kept::KeptFile;

/// Keeps the statistics on, for all programs of this kernel.
#[derive(Debug)]
pub struct Statistics(#[expect(dead_code, reason = "held: dropping it switches them off")] OwnedFd);

impl Statistics {
    /// Switches them on.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN, or when there are no descriptors left.
    pub fn switch_on() -> Result<Self> {
        let held = enable_stats(Stats::RunTime);
        held.map(Self).context("the kernel does not measure BPF programs for us")
    }
}

/// Whether an administrator has them on for all.
pub struct ForAll(KeptFile);

impl Default for ForAll {
    fn default() -> Self {
        Self(KeptFile::new(Path::new("/proc/sys/kernel"), "bpf_stats_enabled"))
    }
}

impl ForAll {
    /// Whether they are now.
    pub fn is_on(&mut self) -> bool {
        self.0.read(|text| Some(text.trim() != "0")).unwrap_or(false)
    }
}
