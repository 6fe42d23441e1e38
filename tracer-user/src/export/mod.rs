//! What leaves the agent: line protocol, the `--json` document, and the files they go into.
//!
//! `file_sink`, `spool` and `publish` alone touch the disk; the others are pure.

pub mod batch;
pub mod file_sink;
pub mod json;
pub mod line;
pub mod publish;
pub mod spool;
pub mod spool_check;
pub mod spool_limits;
pub mod spool_name;
pub mod writer;
