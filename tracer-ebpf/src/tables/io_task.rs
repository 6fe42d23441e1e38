//! What the kernel keeps of one job's operations by thread, on request. A thread has a cell of its own, which no other
//! writes; it takes that which was taken longest ago, so that what a thread did is added up from what was there when
//! the agent looked.

use super::io::op;

/// Cells: that of index 0 is nobody's.
pub const TASK_CELLS: u32 = 8192;

/// Operations on names and attributes: all others are on what is in files.
pub const METADATA: [u32; 9] = [
    op::OPEN,
    op::CLOSE,
    op::STAT,
    op::GETDENTS,
    op::UNLINK,
    op::RENAME,
    op::LINK,
    op::MKDIR,
    op::SETATTR,
];

/// A bit for each of them.
const METADATA_BITS: u32 = {
    let (mut bits, mut at) = (0, 0);
    while at < METADATA.len() {
        bits |= 1 << METADATA[at];
        at += 1;
    }
    bits
};

/// Whether operation `op`, by [`op`], is one of [`METADATA`].
#[inline(always)]
pub const fn is_metadata(op: u32) -> bool {
    METADATA_BITS >> (op & 31) & 1 != 0
}

/// What a thread did to files since it was made or executed a program.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TaskCell {
    /// When the cell was taken, CLOCK_MONOTONIC; 0 while that is under way, and of a cell that nobody has.
    pub made_ns: u64,
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// What the thread was called then, a zero behind it.
    pub program: [u8; 16],
    /// Operations, failed ones included.
    pub ops: u64,
    /// Duration of all of them.
    pub time_ns: u64,
    /// Of those during which the thread gave its CPU away.
    pub waited_ns: u64,
    /// Of those on names and attributes: [`is_metadata`].
    pub metadata_ns: u64,
    /// Bytes read, copies included.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

const _: () = assert!(size_of::<TaskCell>() == 80, "no padding");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::io::OPS;

    #[test]
    fn names_and_attributes_are_told_from_contents() {
        let all = OPS.iter().zip(0..).filter(|(_, op)| is_metadata(*op)).map(|(name, _)| *name);
        let expected =
            ["open", "close", "stat", "getdents", "unlink", "rename", "link", "mkdir", "setattr"];
        assert!(all.eq(expected));
    }
}
