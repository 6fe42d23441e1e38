//! Where a measurement was taken, and whether it can be taken there now.

use super::reclaim;
use crate::bpf;
use crate::process::{output, say};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// The machine, its kernel, the day, and whether the kernel pages out by itself, in one line.
///
/// # Errors
/// When the machine does not tell.
pub fn describe() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let uname = rustix::system::uname();
    let cpus = available_parallelism().context("count the CPUs")?;
    let day = output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let reclaim = reclaim::describe().map_or(String::new(), |said| format!("; {said}"));
    Ok(format!(
        "{cpus} CPUs, {}; Linux {} {}; {}{reclaim}",
        cpu_model(&info).unwrap_or("model unknown"),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy(),
        day.trim(),
    ))
}

fn cpu_model(info: &str) -> Option<&str> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nmodel name\t: other\n";
        assert_eq!(cpu_model(info), Some("AMD EPYC 7B13"));
        assert_eq!(cpu_model("processor : 0\n"), None);
    }
}
