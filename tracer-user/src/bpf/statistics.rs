//! The kernel's own measuring of BPF programs' run time, switched on for as long as somebody holds it.

use std::{fs, os::fd::OwnedFd};

use anyhow::{Context, Result};
use aya::sys::{Stats, enable_stats};

/// Where an administrator switches it on for all.
const FOR_ALL: &str = "/proc/sys/kernel/bpf_stats_enabled";

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

/// Whether they are on for all, whoever holds them.
pub fn is_on_for_all() -> bool {
    fs::read_to_string(FOR_ALL).is_ok_and(|text| text.trim() != "0")
}
