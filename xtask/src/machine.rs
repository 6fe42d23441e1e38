//! Where a measurement was taken.

pub mod reclaim;

use anyhow::{Context, Result};
use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

/// The machine, its kernel, the day, and whether the kernel pages out by itself, in one line.
///
/// # Errors
/// When the machine does not tell.
pub fn describe() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo").context("read /proc/cpuinfo")?;
    let uname = rustix::system::uname();
    let cpus = available_parallelism().context("count the CPUs")?;
    let day = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().context("start date")?;
    let reclaim = reclaim::describe().map_or(String::new(), |said| format!("; {said}"));
    Ok(format!(
        "{cpus} CPUs, {}; Linux {} {}; {}{reclaim}",
        cpu_model(&info).unwrap_or("model unknown"),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy(),
        String::from_utf8_lossy(&day.stdout).trim(),
    ))
}

fn cpu_model(info: &str) -> Option<&str> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
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
