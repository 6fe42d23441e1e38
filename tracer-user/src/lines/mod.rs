//! What leaves the agent: line protocol, the `--json` document, and the files they go into.
//!
//! `feed`, `file_sink`, `target`, `spool` and `publish` alone touch the disk; the others are pure.

pub mod backlog;
pub mod batch;
pub mod clustercockpit;
pub mod file_sink;
pub mod form;
pub mod hlog;
pub mod line;
pub mod profile;
pub mod spool;
pub mod writer;
