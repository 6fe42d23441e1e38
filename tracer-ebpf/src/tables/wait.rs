//! What tasks wait for: causes of sleeps and blocks, kept in each slot's bank (rows in `job.rs`), and the
//! file systems that they wait for.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use crate::{
    cells::{self, CellHist, HIST_BYTES},
    loglinear::{Buckets, Ends},
    measurement,
    table::{Place, described_bytes, fn_place::Of},
};

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        $($(#[$doc])* pub const $name: u32 = Index::$name as u32;)*

        /// Number of causes.
        pub const CAUSES: usize = [$($name),*].len();

        #[allow(clippy::upper_case_acronyms, reason = "called as the constants are")]
        enum Index { $($name),* }
    };
}

/// Causes of sleep: interruptible waits.
pub mod sleep {
    causes! {
        /// A clock: nanosleep.
        TIMER,
        /// Another task: futexes, file locks.
        LOCK,
        /// Any of several files: poll, select, epoll.
        POLL,
        /// The other end of a socket, in a call for sockets.
        SOCKET,
        /// A plain read or write that sleeps: pipes, terminals, sockets by descriptor.
        PIPE,
        /// A child's end.
        CHILD,
        /// A signal.
        SIGNAL,
        /// Messages and semaphores, System V's and POSIX's.
        MESSAGE,
        /// Completions of asynchronous I/O.
        RING,
        /// A driver.
        IOCTL,
        /// Stopped, traced or frozen.
        STOPPED,
        /// Anything else.
        OTHER,
    }
}

/// Causes of blocks: uninterruptible waits, and those for I/O.
pub mod blocked {
    causes! {
        /// Reading a file.
        READ,
        /// Writing one.
        WRITE,
        /// Until what was written is stored.
        SYNC,
        /// Names, attributes and directories.
        METADATA,
        /// A page fault.
        FAULT,
        /// The address space, which others change too.
        MEMORY,
        /// A child that has its parent's memory (vfork).
        CHILD,
        /// Executing a program.
        EXEC,
        /// Exiting.
        EXIT,
        /// A driver.
        IOCTL,
        /// Anything else.
        OTHER,
    }
}

/// Waits of one cause: a part of those in `sleep_ns` or `blocked_ns`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    pub count: u64,
    pub ns: u64,
}

/// Calls that wait for a file system, in the order of [`WaitKey::call`]: the first causes of blocks. The
/// names are the values of the tag `call`.
pub const FILE_CALLS: [&str; 4] = ["read", "write", "sync", "metadata"];

const _: () = assert!(blocked::METADATA as usize + 1 == FILE_CALLS.len());

/// Which slot, call and file system a [`WaitCell`] is for, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WaitKey {
    /// Job slot.
    pub slot: u16,
    /// Index into [`FILE_CALLS`].
    pub call: u16,
    /// The file system as the kernel numbers it (`major << 20 | minor`); 0 where the call does not tell.
    pub device: u32,
}

impl WaitKey {
    /// The key as a word; never 0, which marks a free cell.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.slot as u64) << 48 | (self.call as u64 + 1) << 32 | self.device as u64
    }

    /// The key of a cell in use; `None` for a free one.
    pub const fn of_word(word: u64) -> Option<Self> {
        match (word >> 32) as u16 {
            0 => None,
            call => Some(Self { slot: (word >> 48) as u16, call: call - 1, device: word as u32 }),
        }
    }
}

/// One slot's waits in one kind of call for one file system. Shared by all CPUs, as
/// [`BlockCell`](super::block::BlockCell)s are.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct WaitCell {
    /// [`WaitKey::word`], 0 for a free cell.
    pub key: u64,
    /// The file system's magic number (`s_magic`); 0 where the call does not tell.
    pub magic: u64,
    pub blocked_ends: Ends,
    pub blocked_buckets: Buckets,
}

impl cells::Cell for WaitCell {
    fn slot(word: u64) -> Option<u16> {
        WaitKey::of_word(word).map(|key| key.slot)
    }
}

const BLOCKED: Place = Place::CellHist(CellHist {
    ends: offset_of!(WaitCell, blocked_ends),
    buckets: offset_of!(WaitCell, blocked_buckets),
});

measurement! {
    /// `job_wait`: waits for file systems.
    WAIT, Wait = "job_wait", key "wait", tags ["call", "fs", "mount"],
        "Waits for file systems, local and over the network. `call` is the kind of call: read, write, sync or metadata; copy_file_range and sendfile are `read`, of the file that they read, also where they wait for the one that they write; a splice out of a pipe is `write`, of the file that it writes. `fs` is the type of the file system; `unknown` if the call has a path instead of a descriptor (open, stat) or has just closed it. `mount` is where it is mounted; absent if it is not mounted where jobtrace runs. Absent unless `waits = \"files\"`.";

    histogram blocked_ns: Nanoseconds in BLOCKED,
        "Time in a call on a file during which the task was off its CPU and not runnable, per wait: blocked, or asleep where only the file system can make it sleep. Page faults are not included, nor are some sleeps below 1 ms in a plain read or write, for which the file is not asked.";
}

const _: () = assert!(
    described_bytes(&[&WAIT], Of::Cell) == HIST_BYTES,
    "every histogram of WaitCell needs its row in WAIT"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_word_and_no_word_is_zero() {
        for key in [
            WaitKey { slot: 0, call: 0, device: 0 },
            WaitKey { slot: u16::MAX, call: 3, device: u32::MAX },
        ] {
            assert_ne!(key.word(), 0);
            assert_eq!(WaitKey::of_word(key.word()), Some(key));
        }
        assert_eq!(WaitKey::of_word(0), None);
    }

    #[test]
    fn causes_fit_into_a_calls_word() {
        const { assert!(sleep::CAUSES <= 16 && blocked::CAUSES <= 16) };
        assert_eq!((sleep::OTHER, blocked::OTHER), (11, 10));
    }
}
