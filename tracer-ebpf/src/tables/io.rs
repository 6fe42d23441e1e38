//! What the kernel keeps of one job's operations on files, on request: by file system and operation, and
//! its errors by their number.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use super::{
    io_ended::Ended,
    io_file::{PATTERNS, Pattern},
};
use crate::{
    loglinear::KernelHist,
    measurement,
    table::{Place, described_bytes, fn_place::Of},
};

macro_rules! operations {
    ($($name:ident = $tag:literal),* $(,)?) => {
        /// Operations, in the order of [`IoKey::op`]; the names are the values of the tag `op`.
        pub const OPS: [&str; [$($tag),*].len()] = [$($tag),*];

        /// Index of each operation in [`OPS`].
        #[allow(missing_docs, reason = "the names are the calls'")]
        pub mod op {
            $(pub const $name: u32 = Index::$name as u32;)*

            #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "called as the constants are")]
            enum Index { $($name),* }
        }
    };
}

operations! {
    OPEN = "open",
    CLOSE = "close",
    READ = "read",
    WRITE = "write",
    FSYNC = "fsync",
    STAT = "stat",
    GETDENTS = "getdents",
    SEEK = "seek",
    UNLINK = "unlink",
    RENAME = "rename",
    LINK = "link",
    MKDIR = "mkdir",
    SETATTR = "setattr",
    TRUNCATE = "truncate",
    FALLOCATE = "fallocate",
    COPY = "copy_file_range",
    SENDFILE = "sendfile",
    SPLICE = "splice",
    IOCTL = "ioctl",
    LOCK = "lock",
    // Calls to here; what follows is none, or nobody waits in it.
    MMAP = "mmap",
    OTHER = "other",
    URING_READ = "uring_read",
    URING_WRITE = "uring_write",
    URING_FSYNC = "uring_fsync",
    URING_OTHER = "uring_other",
    AIO_READ = "aio_read",
    AIO_WRITE = "aio_write",
    AIO_FSYNC = "aio_fsync",
}

/// How many of [`OPS`] are calls that do something to files themselves.
pub const CALL_OPS: u32 = op::LOCK + 1;

/// Largest sizes of all classes of accesses but the last, which has none: those of Darshan, whose names the
/// fields bear.
pub const CLASS_MOST_BYTES: [u64; 9] =
    [100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30];

/// The class of an access of `bytes`: an index into [`IoCell::classes`].
#[inline(always)]
pub const fn class_of(bytes: u64) -> usize {
    let mut class = 0;
    while class < CLASS_MOST_BYTES.len() && bytes > CLASS_MOST_BYTES[class] {
        class += 1;
    }
    class
}

/// File systems and operations that are told apart; what finds no room counts for the operation alone.
pub const IO_CELLS: u32 = 256;
/// Errors that are told apart by file system, operation and number.
pub const IO_ERRORS: u32 = 512;
/// Mounts that paths are looked up in.
pub const IO_MOUNTS: u32 = 4096;
/// Requests to io_uring that may be under way at once.
pub const IO_REQUESTS: u32 = 8192;
/// Requests to libaio that are looked at of one call: the verifier goes through all of them.
pub const IO_SUBMISSIONS: u64 = 32;
/// Bytes of a path that are compared with mount points: as many as the kernel's tries take.
pub const IO_PATH_BYTES: usize = 256;

/// Places for the cell of each operation that a CPU used last; a power of two.
pub const KNOWN_CELLS: usize = 32;

const _: () = assert!(OPS.len() <= KNOWN_CELLS);

/// What an [`IoCell`] or a count of errors is of, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct IoKey {
    /// The file system as the kernel numbers it (`major << 20 | minor`); 0 where it is unknown.
    pub device: u32,
    /// Index into [`OPS`].
    pub op: u16,
    /// The error's number; 0 of a cell.
    pub error: u16,
}

impl IoKey {
    /// The key as a word.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.error as u64) << 48 | (self.op as u64) << 32 | self.device as u64
    }

    /// The key that a word is of.
    pub const fn of_word(word: u64) -> Self {
        Self { device: word as u32, op: (word >> 32) as u16, error: (word >> 48) as u16 }
    }
}

/// One file system and operation on one CPU.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IoCell {
    /// The file system's magic number (`s_magic`), on the CPU that met it first; else 0.
    pub magic: u64,
    pub errors: u64,
    pub waited: u64,
    pub waited_ns: u64,
    pub device_read_bytes: u64,
    pub fetched_bytes: u64,
    pub fetched_more: u64,
    pub throttled: u64,
    pub throttled_ns: u64,
    /// Accesses by size: [`class_of`].
    pub classes: [u64; CLASS_MOST_BYTES.len() + 1],
    /// Accesses by where they begin: [`Pattern`].
    pub patterns: [u64; PATTERNS],
    pub ops: u64,
    pub latency_ns: KernelHist,
    pub size_bytes: KernelHist,
}

/// What a CPU knows of the task that made its last call, and what it could not count as it should.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IoCpu {
    /// Address of the registers of the last call's task: one of each stack, and so of each task.
    pub registers: u64,
    /// When the task was asked for its cgroup: the count of all tasks made and moved until then.
    pub asked_at: u64,
    /// Whether it is the job's.
    pub is_jobs: u64,
    /// Address of the task that was asked last for itself, in no call: the same three.
    pub task: u64,
    pub task_asked_at: u64,
    pub task_is_jobs: u64,
    /// Operations whose begin was not seen: they have no latency.
    pub untimed: u64,
    /// Calls of 32-bit programs where their numbers are not known, whatever they were.
    pub calls_32: u64,
    /// Operations that found no room for their file system, and count for it being unknown.
    pub no_cell: u64,
    /// Errors that found no room for their number.
    pub no_error: u64,
    /// Requests to io_uring that found no room until they were completed, and are missing.
    pub no_request: u64,
    /// Requests to libaio beyond those that are looked at of one call.
    pub no_aio: u64,
    /// Operations that were counted in cells of files.
    pub filed: u64,
    /// Cells of files that were made: where there are many, the agent reads them before they drive each other out.
    pub cells_made: u64,
    /// How long the shortest operation took that is kept as one of the longest.
    pub shortest_kept_ns: u64,
    /// 1 where the last operation was found among files with which little was done: so most likely is the next.
    pub is_of_light: u64,
    /// The file system that a stat told last of which it was known that it is mounted, and how often the agent had removed
    /// one by then.
    pub mounted: u32,
    pub mounted_asked_at: u32,
    /// Of each operation the cell that was used last: its file system and, in the low half, its index, or 0.
    pub cells: [u64; KNOWN_CELLS],
    /// The last call that ended.
    pub ended: Ended,
    /// The last request to io_uring that was completed.
    pub completed: Ended,
}

const SIZE: Place = Place::Cell(offset_of!(IoCell, size_bytes));

/// Place of the counter of a pattern.
const fn pattern(pattern: Pattern) -> Place {
    Place::Cell(offset_of!(IoCell, patterns) + pattern as usize * size_of::<u64>())
}

/// Place of the counter of a class.
const fn class(index: usize) -> Place {
    Place::Cell(offset_of!(IoCell, classes) + index * size_of::<u64>())
}

measurement! {
    /// `job_io`: operations on files.
    IO, Io = "job_io", key "io", tags ["fs", "mount", "op"],
        "Operations on files by mount and kind of call, on request (`jobtrace run --io`). `fs` is the type of the file system, `unknown` if neither the call nor its path tells (sync, msync, close_range); pipes, also those with a name, are `pipefs`, sockets `sockfs`, character devices `chardev`. `mount` is where it is mounted; absent if it is not mounted where jobtrace runs. `op` is the call: reads and writes include those with an offset and with vectors, `stat` access, chdir, readlink, statfs and reading attributes, `mkdir` mknod, `close` close_range, `splice` tee and vmsplice. `copy_file_range`, `sendfile` and `splice` are told of the file that they read, also where they wait for the one that they write, which has none of it; a splice out of a pipe is told of the file that it writes, without its time where the pipe was empty, and of the pipe where it fails with EAGAIN or EINTR. A copy that fails because the file that it writes is full, at its limit or read-only, or has no reader or room (ENOSPC, EDQUOT, EFBIG, EROFS, EPIPE, ECONNRESET, EAGAIN) is told of that one. `mmap` is what page faults of mapped files did, its `ops` those that brought pages into the page cache, of an overlay at the file system of its layer; `other` what other calls (execve, readahead, madvise) brought there. `uring_read`, `uring_write`, `uring_fsync` and `uring_other` are requests to io_uring, from their submission to their completion, in which no task waits; its splices are `uring_other` of the file that they are submitted for, without bytes, and one that the kernel refuses as it is submitted is in none; `aio_read`, `aio_write` and `aio_fsync` are submissions to libaio, with the bytes asked for: how they ended is unknown.";

    counter ops: Count in Place::Cell(offset_of!(IoCell, ops)),
        "Operations, failed ones included. A call that a signal interrupts before anything was done is one that failed with EINTR, also where the kernel begins it anew, as strace -c has it.";
    counter errors: Count in Place::Cell(offset_of!(IoCell, errors)),
        "Operations that failed.";
    counter bytes: Bytes in Place::SumOf(&SIZE),
        "Bytes moved by the operations, as the calls returned them.";
    counter waited: Count in Place::Cell(offset_of!(IoCell, waited)),
        "Operations during which the task gave its CPU away to wait.";
    counter waited_ns: Nanoseconds in Place::Cell(offset_of!(IoCell, waited_ns)),
        "Duration of the operations counted in `waited`.";
    counter device_read_bytes: Bytes in Place::Cell(offset_of!(IoCell, device_read_bytes)),
        "Bytes that the task had a device or a server read during the calls, read-ahead and the file system's own tables included: of `bytes`, what was not cached. Unknown of `mmap`, of io_uring and libaio; FUSE, Lustre and GPFS do not tell it, and it is 0 there.";
    counter fetched_bytes: Bytes in Place::Cell(offset_of!(IoCell, fetched_bytes)),
        "Bytes of the pages that the calls or page faults brought into the page cache, read-ahead included; unlike `device_read_bytes` of any file system with a page cache. Those that a write, copy, truncation or allocation brings there are left out, but for writes by io_uring and libaio: these pages count for `uring_read`, where anything was read by it, and for `other`.";
    counter fetched_more: Count in Place::Cell(offset_of!(IoCell, fetched_more)),
        "Of `mmap`, the page faults that brought more than one page: all others of its `ops` read ahead nothing.";
    counter throttled: Count in Place::Cell(offset_of!(IoCell, throttled)),
        "Pauses that the kernel made the task take because it wrote faster than the device.";
    counter throttled_ns: Nanoseconds in Place::Cell(offset_of!(IoCell, throttled_ns)),
        "How long those were to be, in whole ticks of the kernel's clock.";
    histogram latency_ns: Nanoseconds in Place::Cell(offset_of!(IoCell, latency_ns)),
        "Time from the entry of the call to its return. Operations whose begin was not seen are missing.";
    histogram size_bytes: Bytes in SIZE,
        "Bytes moved by each successful read, write or copy.";
    counter consecutive: Count in pattern(Pattern::Consecutive),
        "Reads and writes that began where the one before ended, of the same thread in the same file, or at the begin of a file just opened.";
    counter sequential: Count in pattern(Pattern::Sequential),
        "Reads and writes that began further on.";
    counter random: Count in pattern(Pattern::Random),
        "Reads and writes that began before the end of the one before.";
    counter size_0_100: Count in class(0),
        "Accesses of at most 100 bytes; the classes are Darshan's.";
    counter size_100_1k: Count in class(1),
        "Accesses of up to 1 KiB.";
    counter size_1k_10k: Count in class(2),
        "Accesses of up to 10 KiB.";
    counter size_10k_100k: Count in class(3),
        "Accesses of up to 100 KiB.";
    counter size_100k_1m: Count in class(4),
        "Accesses of up to 1 MiB.";
    counter size_1m_4m: Count in class(5),
        "Accesses of up to 4 MiB.";
    counter size_4m_10m: Count in class(6),
        "Accesses of up to 10 MiB.";
    counter size_10m_100m: Count in class(7),
        "Accesses of up to 100 MiB.";
    counter size_100m_1g: Count in class(8),
        "Accesses of up to 1 GiB.";
    counter size_1g_plus: Count in class(9),
        "Larger accesses.";
}

measurement! {
    /// `job_io_error`: operations on files that failed.
    IO_ERROR, IoError = "job_io_error", key "io_error", tags ["error", "fs", "mount", "op"],
        "Failed operations on files by error, on request (`jobtrace run --io`). `error` is the error's name, ENOENT; the other tags are those of job_io.";

    counter ops: Count,
        "Operations that failed with this error.";
}

const _: () = assert!(
    described_bytes(&[&IO], Of::Cell) + size_of::<u64>() == size_of::<IoCell>(),
    "every field of IoCell but the magic number needs its row in IO"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_word() {
        for key in [
            IoKey { device: 0, op: 0, error: 0 },
            IoKey { device: u32::MAX, op: op::LOCK as u16, error: 4095 },
        ] {
            assert_eq!(IoKey::of_word(key.word()), key);
        }
    }

    #[test]
    fn the_classes_are_darshans() {
        let of = [0, 100, 101, 1024, 1025, 10_240, 102_400, 102_401, 1 << 20, (1 << 20) + 1];
        assert_eq!(of.map(class_of), [0, 0, 1, 1, 2, 2, 3, 4, 4, 5]);
        assert_eq!([4 << 20, 10 << 20, 100 << 20, 1 << 30, 1 << 40].map(class_of), [5, 6, 7, 8, 9]);
    }

    #[test]
    fn operations_are_named_in_their_order() {
        assert_eq!((OPS[op::OPEN as usize], OPS[op::LOCK as usize]), ("open", "lock"));
        assert_eq!(OPS.len(), op::AIO_FSYNC as usize + 1);
    }
}
