//! What leaves the agent: line protocol, the `--json` document, and the files they go into.
//!
//! `line` and `json` are pure; `file_sink` alone touches the disk.

pub mod file_sink;
pub mod json;
pub mod line;
