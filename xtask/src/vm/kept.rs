//! Boots that went well, kept for `--resume`: of eight in an emulator that crashes now and then, hardly ever all do.

use super::Cgroups;
use super::initramfs::Contents;
use super::kernels::Kernel;
use super::table::Column;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use xtask::source_digest::of_bytes;

/// Where they are kept, for one set of programs.
pub struct Kept {
    folder: PathBuf,
    programs: String,
}

impl Kept {
    /// Of boots with `contents`.
    ///
    /// # Errors
    /// When there can be no folder.
    pub fn new(contents: &Contents) -> Result<Self> {
        let folder = super::folder()?.join("boots");
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        Ok(Self { folder, programs: contents.digest() })
    }

    /// What came of the same boot before, if it went well.
    pub fn get(&self, kernel: &Kernel, cgroups: Cgroups) -> Option<Column> {
        serde_json::from_slice(&fs::read(self.file(kernel, cgroups).ok()?).ok()?).ok()
    }

    /// Keeps `column` if it went well.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, kernel: &Kernel, cgroups: Cgroups, column: &Column) -> Result<()> {
        if !column.failures().is_empty() {
            return Ok(());
        }
        let file = self.file(kernel, cgroups)?;
        fs::write(&file, serde_json::to_vec(column)?)
            .with_context(|| format!("write {}", file.display()))
    }

    /// Its name says of which kernel, bit by bit, and of which programs.
    fn file(&self, kernel: &Kernel, cgroups: Cgroups) -> Result<PathBuf> {
        let image =
            fs::read(&kernel.image).with_context(|| format!("read {}", kernel.image.display()))?;
        let of = of_bytes(format!("{} {}", self.programs, of_bytes(&image)).as_bytes());
        Ok(self.folder.join(format!("{}-{}-{of}.json", kernel.name, cgroups.name())))
    }
}
