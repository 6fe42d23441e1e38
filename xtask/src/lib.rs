//! The part of the chores that tests use too: which sources the committed BPF object stands for, what a
//! virtual machine of `cargo xtask vm` tells its host, Grafana's dashboards, and how measurements are written into documents.

pub mod grafana;
pub mod guest;
pub mod machine;
pub mod markdown;
pub mod sections;
pub mod source_digest;

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
