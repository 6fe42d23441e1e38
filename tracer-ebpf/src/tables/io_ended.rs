//! An operation that has ended, on its way into all the cells that it counts in.

use super::io_file::FileId;

/// An operation of a job on a file.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ended {
    /// When it ended, CLOCK_MONOTONIC.
    pub now_ns: u64,
    /// How long it took; 0 where its begin was not seen, or says nothing of its file.
    pub took_ns: u64,
    /// What the call returned.
    pub result: i64,
    /// Address of the super block of its file system; 0 where only the number is known.
    pub block: u64,
    /// Address of the open file; 0 where there is none, or it is gone.
    pub file: u64,
    /// The size of that.
    pub size_bytes: u64,
    /// What that is called by; number 0 is none.
    pub id: FileId,
    /// The file system as the kernel numbers it; 0 where it is unknown.
    pub device: u32,
    /// The word of the call, [`IoCall`](crate::io_calls::IoCall).
    pub call: u32,
    /// 1 where that is known.
    pub is_timed: u32,
    /// 1 where the task gave its CPU away.
    pub has_waited: u32,
    /// Bytes that a device or server read.
    pub device_bytes: u32,
    /// Pages that came into the page cache and were not there.
    pub fetched_pages: u32,
    /// Pauses of a task that wrote too fast.
    pub pauses: u32,
    /// Ticks that those were to last.
    pub paused_ticks: u32,
}

const _: () = assert!(size_of::<Ended>() == 12 * size_of::<u64>());
