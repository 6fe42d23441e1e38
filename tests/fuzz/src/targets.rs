//! One file for each target.

pub mod agent_state;
pub mod btf;
pub mod cgroup_files;
pub mod cgroup_path;
pub mod config;
pub mod drm_client;
pub mod environ;
pub mod line_protocol;
pub mod lines_read;
pub mod mounts;
pub mod proc_cgroup;
pub mod proc_files;
pub mod query;
pub mod record;
pub mod recording;
pub mod ring_event;
pub mod software;
pub mod spool;

use std::sync::LazyLock;

use jobtrace::resolve::Resolver;

/// The built-in rules, compiled once: that takes longer than thousands of paths.
fn resolver() -> &'static Resolver {
    static RESOLVER: LazyLock<Resolver> = LazyLock::new(|| Resolver::new(&[]).expect("our rules"));
    &RESOLVER
}
