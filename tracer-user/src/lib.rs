//! jobtrace: traces what a job does to a compute node.
//!
//! Data moves one way: probe -> map -> drain -> delta -> attribute -> aggregate -> encode -> sink.

pub mod docs;
pub mod model;
