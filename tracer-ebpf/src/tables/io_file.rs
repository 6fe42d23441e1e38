//! What the kernel keeps of one job's operations by file, on request. A thread has cells of its own, which no other
//! writes; they are few, so that what a file did is added up from those that were there when the agent looked.

/// Files and threads that did little: as many pairs as are told apart between two readings.
pub const LIGHT_FILES: u32 = 8192;
/// Pairs that did more: kept apart, so that many small files do not drive them out.
pub const HEAVY_FILES: u32 = 2048;
/// Mounts of which it is remembered which file system they are of.
pub const IO_INSTANCES: u32 = 2048;
/// A pair does more from so many operations on,
pub const HEAVY_OPS: u64 = 64;
/// from so many bytes on,
pub const HEAVY_BYTES: u64 = 1 << 20;
/// or from so much time on.
pub const HEAVY_NS: u64 = 10_000_000;
/// Folders above a file that are named.
pub const NAME_LEVELS: usize = 32;
/// Bytes of a file's name.
pub const NAME_BYTES: usize = 252;

/// Where an access begins, as Darshan has it: measured from the end of the one before, of the same thread and kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Pattern {
    /// There.
    Consecutive,
    /// Further on.
    Sequential,
    /// Before it.
    Random,
}

/// How many [`Pattern`]s there are.
pub const PATTERNS: usize = Pattern::Random as usize + 1;

impl Pattern {
    /// That of an access at `offset` after one that ended at `end`.
    #[inline(always)]
    pub const fn of(offset: u64, end: u64) -> Self {
        if offset == end {
            Self::Consecutive
        } else if offset > end {
            Self::Sequential
        } else {
            Self::Random
        }
    }
}

/// A file, as the kernel tells files apart: a number that is used again has another generation.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FileId {
    /// The file system, `major << 20 | minor`.
    pub device: u32,
    /// `i_generation`; where there is none, what tells the file system or the file's life from others with these numbers.
    pub generation: u32,
    /// `i_ino`.
    pub inode: u64,
}

/// In place of a file system: what many programs and devices meet at, wherever its name lies.
pub mod stream {
    /// Pipes, also those with a name.
    pub const PIPES: u32 = 0xffff_fff1;
    /// Character devices, terminals too.
    pub const DEVICES: u32 = 0xffff_fff2;
}

impl FileId {
    /// What has no contents, on `device`: no number, and a generation that no file without one has.
    #[inline(always)]
    pub const fn stream(device: u32) -> Self {
        Self { device, generation: 1, inode: 0 }
    }

    /// Whether it is such a one.
    #[inline(always)]
    pub const fn is_stream(&self) -> bool {
        self.inode == 0 && self.generation != 0
    }

    /// The same as words of memory.
    pub const fn words(self) -> [u64; 2] {
        [(self.generation as u64) << 32 | self.device as u64, self.inode]
    }
}

/// A file as one thread uses it.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct FileKey {
    /// The file.
    pub file: FileId,
    /// The thread.
    pub thread: u64,
}

/// What a thread did to a file. What an open, a read and a close count comes first, side by side: many files have no place
/// in a CPU's caches, and each of its lines is waited for.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct FileCell {
    /// Times that it was opened.
    pub opens: u64,
    /// Duration of open and close.
    pub open_ns: u64,
    /// Operations by descriptor, failed ones included.
    pub ops: u64,
    /// Duration of all operations.
    pub time_ns: u64,
    /// The file's size after the last operation.
    pub size_bytes: u64,
    /// Where its last read ended since it opened the file.
    pub read_end: u64,
    /// Reads, copies out of it included.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Of the reads.
    pub read_ns: u64,
    /// Reads and writes by where they began.
    pub patterns: [u64; PATTERNS],
    /// Where its last write ended.
    pub write_end: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Of the writes.
    pub write_ns: u64,
    /// Of the operations during which the thread gave its CPU away.
    pub waited_ns: u64,
    /// Bytes of the pages that its reads and page faults brought into the page cache.
    pub fetched_bytes: u64,
    /// When the cell was made, CLOCK_MONOTONIC: a cell that was driven out and made anew has another.
    pub made_ns: u64,
    /// fsync and its kin.
    pub syncs: u64,
    /// Of fsync and its kin.
    pub sync_ns: u64,
    /// Page faults that did.
    pub faults: u64,
}

/// The name of a file: those of its own entry and of the folders above it, in this order, a zero behind each. That of
/// the file system's root is `/`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FileName {
    /// Bytes of all of them, also of what found no room.
    pub length: u32,
    /// What found room.
    pub bytes: [u8; NAME_BYTES],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_told_by_the_end_of_the_one_before() {
        let all = [(8, 8), (9, 8), (7, 8), (0, 0)].map(|(offset, end)| Pattern::of(offset, end));
        use Pattern::{Consecutive, Random, Sequential};
        assert_eq!(all, [Consecutive, Sequential, Random, Consecutive]);
    }

    /// Maps compare keys and read values by their bytes.
    #[test]
    fn nothing_has_padding() {
        assert_eq!(
            (size_of::<FileId>(), size_of::<FileKey>(), size_of::<FileName>()),
            (16, 24, 256)
        );
        assert_eq!(size_of::<FileCell>(), (19 + PATTERNS) * 8);
        let id = FileId { device: 1, generation: 2, inode: 3 };
        // SAFETY: integers, of the same size.
        assert_eq!(id.words(), unsafe { core::mem::transmute::<FileId, [u64; 2]>(id) });
        assert!(!id.is_stream() && FileId::stream(1).is_stream());
        assert!(!FileId { generation: 0, inode: 0, ..id }.is_stream(), "a path");
    }
}
