//! The part of the chores that tests use too: which sources the committed BPF object stands for, what a
//! virtual machine of `cargo xtask vm` tells its host, Grafana's dashboards and the simulated cluster.

pub mod grafana;
pub mod guest;
pub mod simulate;
pub mod source_digest;

use std::path::{Path, PathBuf};

/// The workspace's root folder.
///
/// # Panics
/// Never in practice: this crate lies one folder below the root.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies below the root").to_owned()
}
