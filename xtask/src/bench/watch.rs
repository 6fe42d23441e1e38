//! Looks at a running jobtrace from outside: the BPF programs and maps that it holds, by what
//! /proc/PID/fdinfo says, and its memory.

use crate::bpf;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::Duration;

/// What was seen of one jobtrace while it ran.
#[derive(Default)]
pub struct Watch {
    /// Its programs by id, held so that their figures outlive it.
    pub programs: BTreeMap<u32, OwnedFd>,
    /// Memory of its maps by id.
    pub map_bytes: BTreeMap<u32, u64>,
    /// Its peak resident memory.
    pub peak_rss_bytes: u64,
}

impl Watch {
    /// Runs a traced workload to its end, looking every few milliseconds.
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
            sleep(Duration::from_millis(20));
        };
        if !status.success() {
            bail!("the traced workload failed: {status}");
        }
        if watch.programs.is_empty() {
            bail!("jobtrace held no BPF program: see `jobtrace doctor`");
        }
        Ok(watch)
    }

    /// Adds what is to be seen of `child` now.
    pub fn look(&mut self, child: &Child) {
        let process = format!("/proc/{}", child.id());
        for entry in fs::read_dir(format!("{process}/fdinfo")).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            if let (Some(id), Some(bytes)) = (number(&text, "map_id"), number(&text, "memlock")) {
                self.map_bytes.insert(id as u32, bytes);
            } else if let Some(id) = number(&text, "prog_id") {
                let id = id as u32;
                if !self.programs.contains_key(&id)
                    && let Ok(held) = bpf::hold(id)
                {
                    self.programs.insert(id, held);
                }
            }
        }
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        let peak_bytes = number(&status, "VmHWM").unwrap_or(0) * 1024;
        self.peak_rss_bytes = self.peak_rss_bytes.max(peak_bytes);
    }
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
    fn numbers_of_proc_files() {
        let map = "pos:\t0\nmap_type:\t2\nmemlock:\t4544\nmap_id:\t27\nfrozen:\t0\n";
        assert_eq!(number(map, "memlock"), Some(4544));
        assert_eq!(number(map, "map_id"), Some(27));
        assert_eq!(number(map, "prog_id"), None);
        assert_eq!(number("VmHWM:\t   21504 kB\n", "VmHWM"), Some(21504));
    }
}
