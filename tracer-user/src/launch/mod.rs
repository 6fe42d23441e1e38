//! Starting the command that `jobtrace run` traces: inside its cgroup, under the signals it would have
//! without jobtrace, and waited for.
//!
//! Nothing here ties the command to jobtrace's life: when jobtrace is killed outright, the command
//! goes on, untraced.

pub mod command;
mod inherited;
pub mod signals;
pub mod wait;
mod witness;
