//! jobtrace: traces what a job does to a compute node.
//!
//! Data moves one way: probe -> map -> drain -> delta -> attribute -> aggregate -> encode -> sink.

pub mod base;
pub mod bpf;
pub mod census;
pub mod cgroup;
pub mod cli;
pub mod commands;
pub mod docs;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
pub mod gpu;
pub mod io;
pub mod launch;
pub mod lines;
pub mod model;
pub mod probes;
pub mod record;
pub mod replay;
pub mod report;
pub mod resolve;
pub mod scheduler;
pub mod screen;
pub mod server;
pub mod source;
pub mod view;
