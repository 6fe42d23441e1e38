//! The spool's files of all nodes in one folder, as their agents would have written them.
//!
//! Owns names and gzip by the program's own code. Refuses what a spool is for, to survive a crash:
//! nothing is synced, and a folder that holds files already is not written to.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use jobtrace::lines::{
    batch::Batch,
    spool::name::{Part, SetName},
};

/// The folder.
pub struct Files {
    outbox: PathBuf,
    /// Readings in a file.
    ticks: u64,
    gathered: BTreeMap<String, (SetName, u64, Batch)>,
    files: u64,
    bytes: u64,
}

impl Files {
    /// `dir/outbox`, which is made; each file holds `ticks` readings.
    ///
    /// # Errors
    /// When it cannot be made, or holds something.
    pub fn create(dir: &Path, ticks: u64) -> Result<Self> {
        let outbox = dir.join("outbox");
        fs::create_dir_all(&outbox).with_context(|| format!("make {}", outbox.display()))?;
        let is_empty = fs::read_dir(&outbox)?.next().is_none();
        ensure!(is_empty, "{} is not empty: name another folder with --out", outbox.display());
        Ok(Self { outbox, ticks, gathered: BTreeMap::new(), files: 0, bytes: 0 })
    }

    /// Adds the lines of one reading of `host`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn add(&mut self, host: &str, set: SetName, lines: &[u8]) -> Result<()> {
        let (_, ticks, batch) =
            self.gathered.entry(host.to_owned()).or_insert_with(|| (set, 0, Batch::default()));
        *ticks += 1;
        batch.push(lines);
        // The spool's own limit: InfluxDB 1 is best fed below 10 MB.
        if *ticks == self.ticks || batch.bytes() > 8 << 20 {
            self.flush(host)?;
        }
        Ok(())
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As [`Files::add`].
    pub fn finish(&mut self) -> Result<()> {
        let hosts: Vec<_> = self.gathered.keys().cloned().collect();
        hosts.iter().try_for_each(|host| self.flush(host))
    }

    /// Files and their bytes so far.
    pub fn written(&self) -> (u64, u64) {
        (self.files, self.bytes)
    }

    fn flush(&mut self, host: &str) -> Result<()> {
        let Some((set, _, batch)) = self.gathered.remove(host) else { return Ok(()) };
        let (path, packed) = (self.outbox.join(set.file(host, Part::Lines(0))), batch.finish()?);
        fs::write(&path, &packed)
            .with_context(|| format!("write {}: free space there", path.display()))?;
        self.files += 1;
        self.bytes += packed.len() as u64;
        Ok(())
    }
}
