//! The operations on files that took longest, as the kernel keeps them: some on each CPU, so that those of all CPUs
//! together have the longest among them.

use super::io_file::{FileId, FileName};

/// Operations that each CPU keeps.
pub const SLOWEST: usize = 32;
/// The offset of what has none.
pub const NO_OFFSET: u64 = u64::MAX;

/// What a [`SlowOp::name`] is.
pub mod named {
    /// Unknown.
    pub const NOT: u32 = 0;
    /// That of the file, from its end.
    pub const FILE: u32 = 1;
    /// The path that the caller gave, a zero behind it.
    pub const PATH: u32 = 2;
}

/// An operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SlowOp {
    /// When it ended, CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// How long it took; 0: there is none here.
    pub took_ns: u64,
    /// Where in the file a read or write began; else [`NO_OFFSET`].
    pub offset: u64,
    /// What the call returned.
    pub result: i64,
    /// The file, of which the device is always that of the operation; number 0 where it has none.
    pub file: FileId,
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// The word of the call, [`IoCall`](crate::io_calls::IoCall).
    pub call: u32,
    /// 1 where the thread gave its CPU away.
    pub has_waited: u32,
    /// What the thread was called, a zero behind it.
    pub program: [u8; 16],
    /// What the name is: [`named`].
    pub named: u32,
    /// Zero.
    pub _pad: u32,
    /// The name.
    pub name: FileName,
}

/// Those of a CPU. Read in the order of memory while it changes, [`Self::changed`] differs from [`Self::changing`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SlowOps {
    /// Changes that are complete.
    pub changed: u64,
    /// Index of the shortest.
    pub shortest: u64,
    /// The operations, in no order.
    pub ops: [SlowOp; SLOWEST],
    /// Changes that were begun.
    pub changing: u64,
}

const _: () = assert!(SLOWEST.is_power_of_two(), "programs bound the index by a mask");
const _: () = assert!(size_of::<SlowOp>() == 88 + size_of::<FileName>(), "no padding");
