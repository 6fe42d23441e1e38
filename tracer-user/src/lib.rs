//! jobtrace: traces what a job does to a compute node.
//!
//! Data moves one way: probe -> map -> drain -> delta -> attribute -> aggregate -> encode -> sink.

pub mod agent;
pub mod cgroup;
pub mod cli;
pub mod clock;
mod closed;
pub mod docs;
pub mod doctor;
pub mod export;
#[doc(hidden)]
pub mod fuzzing;
pub mod gpu;
pub mod launch;
pub mod model;
pub mod node;
pub mod open_files;
pub mod probes;
pub mod push;
pub mod replay;
pub mod resolve;
pub mod run;
pub mod say;
pub mod summary;
