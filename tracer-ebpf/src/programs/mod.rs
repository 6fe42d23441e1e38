//! One file for each family of hooks.

mod attach;
mod block;
mod cgroup;
mod empty;
mod fault;
mod switch;
mod task;
