//! Whether a measurement can be taken here now, and what disturbs it.

use crate::bpf;
use crate::process::say;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use xtask::machine::reclaim;

const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Fails when somebody has switched BPF statistics on: the slowdowns would include them.
///
/// # Errors
/// Then, with the cure.
pub fn refuse_statistics() -> Result<()> {
    let on = fs::read_to_string(STATISTICS).with_context(|| format!("read {STATISTICS}"))?;
    if on.trim() != "0" {
        bail!(
            "BPF statistics are on, which slows every event: run `sysctl kernel.bpf_stats_enabled=0`"
        );
    }
    Ok(())
}

/// Names of the programs that others have attached: they add their own cost to both sides.
///
/// # Errors
/// When the kernel does not tell.
pub fn strangers() -> Result<BTreeSet<String>> {
    let programs = bpf::programs()?;
    let attached = bpf::links()?.into_iter().filter_map(|(_, program)| programs.get(&program));
    Ok(attached.map(|program| program.name.clone()).collect())
}

/// Says which programs others have attached, and whether the kernel pages out by itself: what a workload
/// needs may then have to be read again.
///
/// # Errors
/// When the kernel does not tell.
pub fn name_disturbances() -> Result<()> {
    let names: Vec<String> = strangers()?.into_iter().collect();
    if !names.is_empty() {
        say(format_args!("others' BPF programs are attached: {}", names.join(", ")));
    }
    if let Some(said) = reclaim::describe() {
        say(said);
    }
    Ok(())
}
