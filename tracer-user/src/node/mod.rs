//! What is read of the node itself.

pub mod devices;
