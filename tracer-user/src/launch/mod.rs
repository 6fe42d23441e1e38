//! Starting the command that `jobtrace run` traces: inside its cgroup, under the signals it would have
//! without jobtrace, and waited for.
//!
//! Nothing here ties the command to jobtrace's life: when jobtrace is killed outright, the command
//! goes on, untraced.

pub mod command;
pub mod signals;
pub mod wait;
