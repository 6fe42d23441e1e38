//! Filing an operation by file: in the cell of the thread and the file, which is made, and the file named, when they
//! meet first. Tables that are full drive out what was used least lately.

use aya_ebpf::bindings::BPF_NOEXIST;
use tracer_ebpf::{
    kernel_fields::fields::*,
    tables::{
        io::{IoCpu, op},
        io_file::{FileCell, FileId, FileKey, HEAVY_BYTES, HEAVY_NS, HEAVY_OPS, Pattern, stream},
    },
};

use crate::{
    arguments::Arguments,
    inode::{Inode, PIPE, REGULAR, TYPE},
    lives::id_of,
    maps::{HEAVY, LIGHT, NAMES},
    names::tell_name,
    operation::Operation,
    typed,
};

/// Types of inodes that have contents besides regular files (linux/stat.h).
const DIRECTORY: u32 = 0o040_000;
const DISK: u32 = 0o060_000;
/// Type of those that have none, besides pipes.
const CHARACTERS: u32 = 0o020_000;

// SAFETY: all integers; zeros are a valid value.
static EMPTY: FileCell = unsafe { core::mem::zeroed() };

/// A file that is open, or was; or none. No `Option`: the verifier refuses what is in none of those.
#[derive(Clone, Copy)]
pub struct File {
    /// Address of the `struct file`; 0 where it is gone.
    pub address: u64,
    /// What it is called by; number 0 is none.
    pub id: FileId,
    /// Its size.
    pub size_bytes: u64,
}

impl File {
    /// None on file system `device`.
    #[inline(always)]
    pub const fn none(device: u32) -> Self {
        Self { address: 0, id: FileId { device, generation: 0, inode: 0 }, size_bytes: 0 }
    }

    /// The open file at `address`; a stream of what has no contents: pipes, sockets, devices.
    #[inline(always)]
    pub fn of(address: u64, inode: &Inode, device: u32) -> Self {
        let stream = match inode.mode() & TYPE {
            REGULAR | DIRECTORY | DISK => 0,
            PIPE => stream::PIPES,
            CHARACTERS => stream::DEVICES,
            _ => device,
        };
        if stream != 0 {
            return Self { address: 0, id: FileId::stream(stream), size_bytes: 0 };
        }
        Self { address, id: id_of(inode, device), size_bytes: inode.size_bytes() }
    }
}

/// Counts `operation` of thread `pid`, whose arguments these are, on `cpu`, this one, by its file; says where it began,
/// where it is an access that moved anything.
#[inline(always)]
pub fn count(
    cpu: *mut IoCpu,
    pid: u32,
    arguments: Arguments,
    operation: Operation,
) -> Option<Pattern> {
    let key = FileKey { file: operation.id(), thread: pid.into() };
    if key.file.inode == 0 {
        return None;
    }
    let (cell, is_heavy) = find(cpu, &key, operation)?;
    // SAFETY: this CPU's own, and the thread's own cell.
    let cell = unsafe {
        (*cpu).filed += 1;
        (*cpu).is_of_light = (!is_heavy).into();
        &mut *cell
    };
    let took_ns = operation.took_ns();
    let moved = operation.moved_bytes();
    cell.ops += 1;
    cell.time_ns += took_ns;
    if operation.has_waited() {
        cell.waited_ns += took_ns;
    }
    if operation.file() != 0 {
        cell.size_bytes = operation.size_bytes();
    }
    if operation.meanwhile().fetched_pages != 0 {
        cell.fetched_bytes += operation.fetched_bytes();
    }
    let mut pattern = None;
    match operation.call().op() {
        op::OPEN => {
            cell.opens += 1;
            cell.open_ns += took_ns;
            for end in [&raw mut cell.read_end, &raw mut cell.write_end] {
                // SAFETY: the cell's own. One by one: LLVM would call a function that sets memory.
                unsafe { end.write_volatile(0) };
            }
        }
        op::CLOSE => cell.open_ns += took_ns,
        op::FSYNC => {
            cell.syncs += 1;
            cell.sync_ns += took_ns;
        }
        op if operation.call().is_moving() && operation.call().is_writing() => {
            cell.writes += 1;
            cell.written_bytes += moved;
            cell.write_ns += took_ns;
            if moved > 0 && op == op::WRITE {
                let offset = offset(operation, arguments);
                pattern = Some(Pattern::of(offset, cell.write_end));
                cell.write_end = offset + moved;
            }
        }
        _ if operation.call().is_moving() => {
            cell.reads += 1;
            cell.read_bytes += moved;
            // A copy may have waited for what it writes.
            if operation.call().op() == op::READ {
                cell.read_ns += took_ns;
                if moved > 0 {
                    let offset = offset(operation, arguments);
                    pattern = Some(Pattern::of(offset, cell.read_end));
                    cell.read_end = offset + moved;
                }
            }
        }
        _ => {}
    }
    match pattern {
        Some(Pattern::Consecutive) => cell.patterns[Pattern::Consecutive as usize] += 1,
        Some(Pattern::Sequential) => cell.patterns[Pattern::Sequential as usize] += 1,
        Some(Pattern::Random) => cell.patterns[Pattern::Random as usize] += 1,
        None => {}
    }
    if !is_heavy && is_kept(&key, cell) && operation.file() != 0 {
        tell_name(operation.file(), &key.file, true);
    }
    pattern
}

/// The cell of `key` and whether it is of those that do more. Looked for first where the last operation's was: a
/// look-up in vain costs as much as another.
#[inline(always)]
fn find(cpu: *mut IoCpu, key: &FileKey, operation: Operation) -> Option<(*mut FileCell, bool)> {
    // SAFETY: this CPU's own.
    let is_of_light = unsafe { (*cpu).is_of_light } != 0;
    if is_of_light && let Some(cell) = LIGHT.get_ptr_mut(key) {
        return Some((cell, false));
    }
    if let Some(cell) = HEAVY.get_ptr_mut(key) {
        return Some((cell, true));
    }
    if !is_of_light && let Some(cell) = LIGHT.get_ptr_mut(key) {
        return Some((cell, false));
    }
    // What is gone has no name, and a file that is only closed has done nothing here.
    if operation.file() == 0 {
        return None;
    }
    Some((make(cpu, key, operation)?, false))
}

/// Counts a request to io_uring that is completed while thread `pid` runs, in that one's cell, whoever submitted it:
/// there nobody else counts now. It is nobody's time.
#[inline(always)]
pub fn count_request(cpu: *mut IoCpu, pid: u32, operation: Operation) {
    let key = FileKey { file: operation.id(), thread: pid.into() };
    if key.file.inode == 0 {
        return;
    }
    let (cell, is_heavy) = match HEAVY.get_ptr_mut(&key) {
        Some(cell) => (cell, true),
        None => match LIGHT.get_ptr_mut(&key).or_else(|| make(cpu, &key, operation)) {
            Some(cell) => (cell, false),
            None => return,
        },
    };
    // SAFETY: this CPU's own, and the running thread's.
    let cell = unsafe {
        (*cpu).filed += 1;
        &mut *cell
    };
    cell.ops += 1;
    cell.size_bytes = operation.size_bytes();
    let moved = operation.moved_bytes();
    if operation.call().op() == op::URING_WRITE {
        cell.written_bytes += moved;
    } else {
        cell.read_bytes += moved;
    }
    // Its name is with those of files of a moment: all levels of a path once more are much to verify.
    if !is_heavy {
        is_kept(&key, cell);
    }
}

/// Moves the cell of a pair that does more by now to where small ones do not drive it out; gives whether it did.
#[inline(always)]
fn is_kept(key: &FileKey, cell: &FileCell) -> bool {
    let does_more = cell.ops >= HEAVY_OPS
        || cell.read_bytes + cell.written_bytes >= HEAVY_BYTES
        || cell.time_ns >= HEAVY_NS;
    if !does_more || HEAVY.insert(key, cell, 0).is_err() {
        return false;
    }
    let _ = LIGHT.remove(key);
    true
}

/// Makes the cell of a pair that has none.
#[inline(always)]
fn make(cpu: *mut IoCpu, key: &FileKey, operation: Operation) -> Option<*mut FileCell> {
    let _ = LIGHT.insert(key, &EMPTY, BPF_NOEXIST.into());
    let cell = LIGHT.get_ptr_mut(key)?;
    // SAFETY: the thread's own, and this CPU's.
    unsafe {
        (*cell).made_ns = operation.now_ns();
        (*cpu).cells_made += 1;
    }
    // SAFETY: asked for its presence alone.
    if unsafe { NAMES.get(&key.file) }.is_none() {
        tell_name(operation.file(), &key.file, false);
    }
    Some(cell)
}

/// Counts `pages` that a page fault of thread `pid` brought into the page cache, as a fault where it is its first. Such
/// a file has been opened by descriptor, and has its name by that.
#[inline(always)]
pub fn count_fault(cpu: *mut IoCpu, id: FileId, pid: u32, now_ns: u64, is_first: bool, bytes: u64) {
    let key = FileKey { file: id, thread: pid.into() };
    let cell = match HEAVY.get_ptr_mut(&key).or_else(|| LIGHT.get_ptr_mut(&key)) {
        Some(cell) => cell,
        None => {
            let _ = LIGHT.insert(&key, &EMPTY, BPF_NOEXIST.into());
            let Some(cell) = LIGHT.get_ptr_mut(&key) else { return };
            // SAFETY: the thread's own, and this CPU's.
            unsafe {
                (*cell).made_ns = now_ns;
                (*cpu).cells_made += 1;
            }
            cell
        }
    };
    // SAFETY: the thread's own.
    unsafe {
        (*cell).fetched_bytes += bytes;
        (*cell).faults += u64::from(is_first);
    }
}

/// Where `operation`, an access whose arguments these are, began. Where threads share the descriptor, one may have moved
/// on since.
#[inline(always)]
pub fn offset(operation: Operation, arguments: Arguments) -> u64 {
    if operation.call().is_at_offset() {
        let told = arguments.offset();
        if told as i64 >= 0 {
            return told;
        }
    }
    let position = typed::file(operation.file()).field::<u64, _>(FILE_POSITION);
    position.saturating_sub(operation.moved_bytes())
}
