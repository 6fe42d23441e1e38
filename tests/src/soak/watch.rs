//! What the agent takes, again and again: what grows without an end is a leak.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// At one moment.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Memory of its own, without the pages of files.
    pub anonymous_bytes: u64,
    /// Open files, maps among them.
    pub descriptors: u64,
    /// Its state's files.
    pub state_bytes: u64,
}

impl Sizes {
    /// Of the agent `pid` whose state is in `state`.
    ///
    /// # Errors
    /// When it is gone.
    pub fn of(pid: i32, state: &Path) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("it is gone")?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).context("it is gone")?.count();
        // A file may be replaced while it is looked at.
        let sizes = fs::read_dir(state)?.flatten().filter_map(|entry| entry.metadata().ok());
        Ok(Self {
            anonymous_bytes: kib.context("no RssAnon")? << 10,
            descriptors: descriptors as u64,
            state_bytes: sizes.map(|file| file.len()).sum(),
        })
    }
}

/// All that was seen.
#[derive(Debug, Default)]
pub struct Watch(Vec<Sizes>);

impl Watch {
    /// Adds what is now.
    pub fn look(&mut self, sizes: Sizes) {
        self.0.push(sizes);
    }

    /// The median of a size in the second quarter of the time, after warm-up, and in the last one.
    pub fn then_and_now(&self, size: impl Fn(&Sizes) -> u64) -> (u64, u64) {
        let quarter = self.0.len() / 4;
        let median = |part: &[Sizes]| {
            let mut sizes: Vec<u64> = part.iter().map(&size).collect();
            sizes.sort_unstable();
            sizes.get(sizes.len() / 2).copied().unwrap_or(0)
        };
        (median(&self.0[quarter..2 * quarter]), median(&self.0[3 * quarter..]))
    }
}
