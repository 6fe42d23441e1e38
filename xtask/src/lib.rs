//! The part of the chores that tests use too: which sources the committed BPF object stands for, what a
//! virtual machine of `cargo xtask vm` tells its host, Grafana's dashboards, the browser, and how measurements are written into documents.

pub mod browser;
pub mod grafana;
pub mod guest;
pub mod machine;
pub mod markdown;
pub mod ram_disk;
pub mod sections;
pub mod source_digest;

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Tells the user what happens next.
pub fn say(line: impl std::fmt::Display) {
    eprintln!("xtask: {line}");
}

/// The workspace's root folder.
///
/// # Panics
/// Never in practice: this crate lies one folder below the root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies below the root").to_owned()
}

/// All files below `folder`, links among them, in no order.
///
/// # Errors
/// When a folder cannot be listed.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = fs::read_dir(&next).with_context(|| format!("list {}", next.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("list {}", next.display()))?;
            let is_folder = entry.file_type()?.is_dir();
            if is_folder { &mut folders } else { &mut files }.push(entry.path());
        }
    }
    Ok(files)
}
