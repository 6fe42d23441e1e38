//! Fuzz targets for all that parses what others write. A target is a plain function that panics where
//! something does not hold; libFuzzer runs it on inputs of its own (`libfuzzer`, `cargo xtask fuzz`), and
//! `cargo test` on the committed ones (`corpus`).

pub mod lines;
pub mod split;
mod targets;

use std::path::{Path, PathBuf};

use targets::{
    agent_state, btf, cgroup_files, cgroup_path, config, drm_client, environ, line_protocol,
    lines_read, mounts, proc_cgroup, proc_files, query, record, recording, ring_event, software,
    spool,
};

/// What is fed with bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, of its program and of its corpus.
    pub name: &'static str,
    /// What is parsed, in words.
    pub about: &'static str,
    /// Panics where a property does not hold.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, about: &'static str, run: fn(&[u8])) -> Target {
    Target { name, about, run }
}

/// All of them.
pub static TARGETS: &[Target] = &[
    target("agent_state", "the agent's state.json and journal", agent_state::run),
    target("btf", "the kernel's type information", btf::run),
    target("cgroup_files", "memory.stat, cpu.max, pressure and their like", cgroup_files::run),
    target("cgroup_path", "a cgroup's path, from resolver to line protocol", cgroup_path::run),
    target("config", "jobtrace.toml, times and sizes", config::run),
    target("drm_client", "/proc/PID/fdinfo of a file open on a GPU", drm_client::run),
    target("environ", "/proc/PID/environ of a job's process", environ::run),
    target(
        "line_protocol",
        "the writer of line protocol, by the official parser",
        line_protocol::run,
    ),
    target("lines_read", "the reader of line protocol, and the tables' way back", lines_read::run),
    target("mounts", "/proc/self/mountinfo and /proc/self/cgroup", mounts::run),
    target("proc_cgroup", "/proc/PID/cgroup", proc_cgroup::run),
    target("proc_files", "/proc/PID/status, cmdline, fdinfo", proc_files::run),
    target("query", "questions at the agent's socket, and heads of records", query::run),
    target("record", "the record of a job, and what is made of it", record::run),
    target("recording", "recordings, and all that is made of them", recording::run),
    target("ring_event", "events of cgroups from the ring buffer", ring_event::run),
    target("software", "paths and lists of software", software::run),
    target("spool", "names and contents of files found in the spool", spool::run),
];

/// The target of that name.
///
/// # Panics
/// When there is none.
pub fn target_named(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

/// Where the committed inputs of a target are.
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}
