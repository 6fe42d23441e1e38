//! `jobtrace agent`: the node's daemon, every job on the node.

pub mod grid;
pub mod hierarchy;
pub mod tracker;
pub mod users;
