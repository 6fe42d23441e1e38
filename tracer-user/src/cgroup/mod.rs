//! Control groups: the hierarchies of this host, the cgroup that `jobtrace run` makes for its command,
//! and the memory and CPU values that the kernel keeps per cgroup.
//!
//! Which job a foreign cgroup belongs to is not decided here.

mod above;
mod controllers;
pub mod formats;
pub mod held;
pub mod hierarchies;
pub mod job;
mod memory_files;
pub mod pace;
pub mod parts;
pub mod place;
mod placement;
pub mod read;
pub mod remove;
pub mod seldom;
pub(crate) mod settings;
pub mod stale;
pub mod still;
mod tasks;
mod throttle;
mod tree;
