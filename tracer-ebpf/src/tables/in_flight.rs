//! Calls that have begun and not returned.

use super::io_file::FileId;

/// Tasks whose call in progress is known at once: by the low bits of their pids.
pub const TASKS: u32 = 1 << 16;

/// A call in progress.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InFlight {
    /// [`tag`] of its task and call; another's where two tasks share a place.
    pub tag: u32,
    /// Where the cell of the last task with this place is, if that still has it; 0: nowhere.
    pub cell: u32,
    /// Of a call that closes it, the file, or none on its file system.
    pub file: FileId,
    /// The super block of that.
    pub system: u64,
    /// CLOCK_MONOTONIC; 0 where the call waits for another's work first, and how long it takes tells nothing.
    pub start_ns: u64,
    /// Times that the task had given its CPU away; of a page fault, the major ones that it had had.
    pub switches: u64,
    /// Low half of the bytes that the task had had read by devices: no call reads 4 GiB.
    pub device_bytes: u32,
    /// Pages that it brought into the page cache.
    pub pages: u32,
    /// Pauses that the kernel made it take.
    pub pauses: u32,
    /// Ticks that those were to last.
    pub paused_ticks: u32,
}

const _: () = assert!(size_of::<InFlight>() == 64);

/// Bits of a pid.
const PID_BITS: u32 = 22;
/// In place of a call's number: a page fault that brought pages into the page cache.
pub const FAULT: u32 = 1 << 9;

/// What tells a call of a task from any other's: pids are below 2^22, calls below 2^9.
#[inline(always)]
pub const fn tag(pid: u32, number: u32) -> u32 {
    pid | (number + 1) << PID_BITS
}

/// Whether it is one of an operation of task `pid`.
#[inline(always)]
pub const fn is_operation(tag: u32, pid: u32) -> bool {
    tag & ((1 << PID_BITS) - 1) == pid && tag >> PID_BITS != 0 && tag >> PID_BITS <= FAULT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_tells_a_task_and_a_call() {
        let own = tag(4_194_303, 511);
        assert!(is_operation(own, 4_194_303) && !is_operation(own, 4_194_302));
        assert_ne!(own, tag(4_194_303, 510));
        assert!(!is_operation(tag(7, FAULT), 7), "a page fault");
        assert!(!is_operation(0, 0), "none");
    }
}
