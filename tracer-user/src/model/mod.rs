//! The agent's core: snapshots of what the kernel counted, their differences, and the points made of
//! them.
//!
//! Everything here is pure: no clock, no file, no environment. Time arrives as an argument.

pub mod blocks;
pub mod buckets;
mod counts;
pub mod end_reason;
pub mod files;
pub mod gaps;
pub mod group;
pub mod held;
pub mod hist;
pub mod hist_points;
pub mod info;
pub mod io_latency;
pub mod io_threads;
pub mod job;
pub mod lease;
pub mod lost_files;
pub mod needed;
pub mod parts;
pub mod point;
pub mod points;
pub mod seen;
pub mod slow_ops;
pub mod snapshot;
pub mod software;
pub mod software_point;
pub mod software_text;
pub mod source;
pub mod tables;
pub mod totals;
pub mod values;
