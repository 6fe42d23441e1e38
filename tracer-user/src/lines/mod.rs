//! What leaves the agent: line protocol and interval logs, and the files they go into; and the way back, from
//! lines (`read`) to values (`decode`) and their sums (`gather`).
//!
//! `file_sink` and `spool` alone touch the disk; the others are pure.

pub mod backlog;
pub mod batch;
pub mod clustercockpit;
pub mod decode;
pub mod file_sink;
pub mod form;
pub mod gather;
pub mod hlog;
mod keys;
pub mod line;
pub mod profile;
pub mod read;
mod seen;
pub mod spool;
pub mod writer;
