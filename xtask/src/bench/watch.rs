//! Looks at a running tracer from outside: the BPF programs and maps that it holds, by what
//! /proc/PID/fdinfo says, its memory and its time on a CPU.

use crate::bpf::Held;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

/// How often a workload under `jobtrace run` is looked at.
const POLL: Duration = Duration::from_millis(20);

/// What was seen of one tracer while it ran.
#[derive(Default)]
pub struct Watch {
    /// Its programs.
    pub programs: Held,
    /// Memory of its maps by id.
    map_bytes: BTreeMap<u64, u64>,
    /// Its peak resident memory.
    pub peak_rss_bytes: u64,
}

impl Watch {
    /// Runs a traced workload to its end, looking again and again.
    ///
    /// # Errors
    /// When it fails, or held no BPF program.
    pub fn run(command: &mut Command) -> Result<Self> {
        let mut child = command.spawn().context("start target/release/jobtrace")?;
        let mut watch = Self::default();
        let status = loop {
            watch.look(&child);
            if let Some(status) = child.try_wait().context("wait for jobtrace")? {
                break status;
            }
            sleep(POLL);
        };
        if !status.success() {
            bail!("the traced workload failed: {status}");
        }
        if watch.is_empty() {
            bail!("jobtrace held no BPF program: see `jobtrace doctor`");
        }
        Ok(watch)
    }

    /// Adds what is to be seen of `child` now.
    pub fn look(&mut self, child: &Child) {
        let process = format!("/proc/{}", child.id());
        let mut programs = BTreeSet::new();
        for entry in fs::read_dir(format!("{process}/fdinfo")).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            if let (Some(id), Some(bytes)) = (number(&text, "map_id"), number(&text, "memlock")) {
                self.map_bytes.insert(id, bytes);
            }
            programs.extend(number(&text, "prog_id").map(|id| id as u32));
        }
        // What it could not hold is gone; that there is something is checked by those who need it.
        let _ = self.programs.add(&programs);
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        let peak_bytes = number(&status, "VmHWM").unwrap_or(0) * 1024;
        self.peak_rss_bytes = self.peak_rss_bytes.max(peak_bytes);
    }

    /// Whether it held no program.
    pub fn is_empty(&self) -> bool {
        self.programs.ids().is_empty()
    }

    /// Memory of all its maps.
    pub fn all_map_bytes(&self) -> u64 {
        self.map_bytes.values().sum()
    }
}

/// User and system time of all threads of a process, those that have ended included.
///
/// # Errors
/// When it is gone.
pub fn read_cpu(process: &Child) -> Result<Duration> {
    let pid = libc::pid_t::try_from(process.id()).context("no process number")?;
    let mut clock = 0;
    // SAFETY: `clock` outlives the call, which only writes to it.
    let error = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error)).context("find a process's CPU clock");
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call, which only writes to it.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::Error::last_os_error()).context("read a process's CPU clock");
    }
    Ok(Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32))
}

/// A process's resident memory.
///
/// # Errors
/// When it is gone.
pub fn read_rss_bytes(process: &Child) -> Result<u64> {
    let path = format!("/proc/{}/status", process.id());
    let status = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    number(&status, "VmRSS").map(|kib| kib * 1024).context("no VmRSS")
}

/// The number behind `key:` in a file of /proc.
pub fn number(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_takes_time_and_memory() -> Result<()> {
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?;
        sleep(Duration::from_millis(100));
        let seen = read_cpu(&busy).and_then(|cpu| Ok((cpu, read_rss_bytes(&busy)?)));
        busy.kill()?;
        busy.wait()?;
        let (cpu, rss_bytes) = seen?;
        assert!(cpu > Duration::from_millis(1) && cpu < Duration::from_secs(60), "{cpu:?}");
        assert!(rss_bytes > 100_000, "{rss_bytes}");
        Ok(())
    }

    #[test]
    fn numbers_of_proc_files() {
        let map = "pos:\t0\nmap_type:\t2\nmemlock:\t4544\nmap_id:\t27\nfrozen:\t0\n";
        assert_eq!(number(map, "memlock"), Some(4544));
        assert_eq!(number(map, "map_id"), Some(27));
        assert_eq!(number(map, "prog_id"), None);
        assert_eq!(number("VmHWM:\t   21504 kB\n", "VmHWM"), Some(21504));
    }
}
