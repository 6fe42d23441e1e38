//! What both sides must agree on: histogram buckets, the layout of every map value, the table that
//! names and explains each field, and the kernel fields whose offsets the agent supplies.
//!
//! Nothing here allocates, reads or prints; it builds for the kernel and for the agent alike.
#![no_std]

/// A flag of maps (BPF_F_MMAPABLE, linux/bpf.h): the data begins with a page, so that a record of 64 bytes is one cache line,
/// and the agent may map it.
pub const MMAPABLE: usize = 0x400;

pub mod calls;
pub mod cells;
pub mod handle;
pub mod ids;
pub mod io_calls;
pub mod kernel_calls;
pub mod kernel_fields;
pub mod loglinear;
pub mod records;
pub mod settings;
pub mod table;
pub mod tables;
