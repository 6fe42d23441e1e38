//! A ring of io_uring that takes one request at a time: as little of it as tests of messages and of files need.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::null_mut,
    sync::atomic::{AtomicU32, Ordering},
};

const OP_FSYNC: u8 = 3;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
const OP_SEND: u8 = 26;
const OP_RECEIVE: u8 = 27;
/// A worker of the kernel's does it, instead of the caller.
const BY_A_WORKER: u8 = 1 << 4;
const GET_EVENTS: u32 = 1;
const ENTRIES: u32 = 8;
const RINGS_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 64;
const RESULT_BYTES: usize = 16;
const ENTRIES_AT: libc::off_t = 0x1000_0000;

// Words of `struct io_uring_params`: where in the rings what lies.
const SUBMIT_TAIL: usize = 11;
const SUBMIT_MASK: usize = 12;
const SUBMIT_ARRAY: usize = 16;
const DONE_HEAD: usize = 20;
const DONE_MASK: usize = 22;
const DONE_RESULTS: usize = 25;

/// The ring, for as long as the process lives.
pub struct Ring {
    fd: OwnedFd,
    rings: *mut u8,
    entries: *mut u8,
    places: [u32; 30],
}

impl Ring {
    /// A new one; `None` where the kernel gives none.
    pub fn new() -> Option<Self> {
        let mut places = [0_u32; 30];
        // SAFETY: the kernel reads and writes its parameters, of 120 bytes.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, places.as_mut_ptr()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: a descriptor of our own.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        let map = |bytes, offset| {
            let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            // SAFETY: a new mapping, kept until the process ends.
            let at = unsafe { libc::mmap(null_mut(), bytes, prot, flags, fd.as_raw_fd(), offset) };
            assert_ne!(at, libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
            at.cast()
        };
        let (rings, entries) =
            (map(RINGS_BYTES, 0), map(ENTRIES as usize * ENTRY_BYTES, ENTRIES_AT));
        Some(Self { fd, rings, entries, places })
    }

    /// Sends `bytes`; what the kernel answers. Every second one by a worker of the kernel's.
    pub fn send(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> i32 {
        self.run(OP_SEND, socket, bytes.as_ptr() as u64, bytes.len())
    }

    /// Receives into `bytes`; what the kernel answers.
    pub fn receive(&self, socket: BorrowedFd<'_>, bytes: &mut [u8]) -> i32 {
        self.run(OP_RECEIVE, socket, bytes.as_mut_ptr() as u64, bytes.len())
    }

    /// Reads at `offset` of `file`; what the kernel answers.
    pub fn read(&self, file: BorrowedFd<'_>, bytes: &mut [u8], offset: u64) -> i32 {
        self.run_at(OP_READ, file, bytes.as_mut_ptr() as u64, bytes.len(), offset)
    }

    /// Writes there.
    pub fn write(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> i32 {
        self.run_at(OP_WRITE, file, bytes.as_ptr() as u64, bytes.len(), offset)
    }

    /// Waits until `file` is stored.
    pub fn fsync(&self, file: BorrowedFd<'_>) -> i32 {
        self.run_at(OP_FSYNC, file, 0, 0, 0)
    }

    fn word(&self, place: usize) -> &AtomicU32 {
        // SAFETY: a word of the rings, where the kernel said.
        unsafe { AtomicU32::from_ptr(self.rings.add(self.places[place] as usize).cast()) }
    }

    fn run(&self, op: u8, socket: BorrowedFd<'_>, address: u64, bytes: usize) -> i32 {
        self.run_at(op, socket, address, bytes, 0)
    }

    fn run_at(&self, op: u8, file: BorrowedFd<'_>, address: u64, bytes: usize, offset: u64) -> i32 {
        let tail = self.word(SUBMIT_TAIL).load(Ordering::Acquire);
        let index = tail & self.word(SUBMIT_MASK).load(Ordering::Relaxed);
        let mut entry = [0_u8; ENTRY_BYTES];
        entry[0] = op;
        entry[1] = if tail.is_multiple_of(2) { 0 } else { BY_A_WORKER };
        entry[4..8].copy_from_slice(&file.as_raw_fd().to_ne_bytes());
        entry[8..16].copy_from_slice(&offset.to_ne_bytes());
        entry[16..24].copy_from_slice(&address.to_ne_bytes());
        entry[24..28].copy_from_slice(&(bytes as u32).to_ne_bytes());
        // SAFETY: an entry, and a word of the array of their numbers.
        unsafe {
            self.entries.cast::<[u8; ENTRY_BYTES]>().add(index as usize).write_volatile(entry);
            let array = self.rings.add(self.places[SUBMIT_ARRAY] as usize).cast::<u32>();
            array.add(index as usize).write_volatile(index);
        }
        self.word(SUBMIT_TAIL).store(tail.wrapping_add(1), Ordering::Release);
        let (fd, none) = (self.fd.as_raw_fd(), 0_usize);
        // SAFETY: submits one entry and waits for one result.
        let submitted =
            unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, 1, 1, GET_EVENTS, none, none) };
        assert_eq!(submitted, 1, "io_uring_enter: {}", io::Error::last_os_error());
        let head = self.word(DONE_HEAD).load(Ordering::Acquire);
        let at = self.places[DONE_RESULTS] as usize
            + (head & self.word(DONE_MASK).load(Ordering::Relaxed)) as usize * RESULT_BYTES;
        // SAFETY: the result that was waited for.
        let result = unsafe { self.rings.add(at + 8).cast::<i32>().read_volatile() };
        self.word(DONE_HEAD).store(head.wrapping_add(1), Ordering::Release);
        result
    }
}
