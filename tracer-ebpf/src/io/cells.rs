//! Filing an operation in its cell.

use core::{arch::asm, mem::offset_of, ptr::addr_of_mut};

use aya_ebpf::bindings::BPF_NOEXIST;
use tracer_ebpf::{
    settings::globals::{PAGE_BYTES, TICK_NS},
    tables::{
        io::{CLASS_MOST_BYTES, IoCell, IoCpu, IoKey, KNOWN_CELLS},
        io_file::Pattern,
    },
};

use crate::{
    kernel::global,
    maps::{CELL_PLACES, CELLS, ERRORS, cell_sums},
    operation::Operation,
    places::System,
    record::file,
};

/// What an operation made the kernel do.
#[derive(Clone, Copy)]
pub struct Meanwhile {
    /// Bytes that a device or server read.
    pub device_bytes: u32,
    /// Pages that came into the page cache and were not there.
    pub fetched_pages: u32,
    /// Pauses of a task that wrote too fast.
    pub pauses: u32,
    /// Ticks that those were to last.
    pub paused_ticks: u32,
}

impl Meanwhile {
    /// Nothing.
    pub const NONE: Self = Self { device_bytes: 0, fetched_pages: 0, pauses: 0, paused_ticks: 0 };

    /// Whether there was anything: mostly not.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        self.device_bytes | self.fetched_pages | self.pauses != 0
    }

    /// Bytes of the pages.
    #[inline(always)]
    pub fn fetched_bytes(&self) -> u64 {
        u64::from(self.fetched_pages) * global(&PAGE_BYTES)
    }
}

/// Counts `operation`; where it is an access, `pattern` says where it began.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
pub unsafe fn count(cpu: *mut IoCpu, operation: Operation, pattern: Option<Pattern>) {
    // SAFETY: the caller's; a cell's value is this CPU's own.
    unsafe {
        let Some(cell) = cell(cpu, operation.key(), operation.system()) else { return };
        (*cell).ops += 1;
        if operation.is_timed() {
            let took_ns = operation.took_ns();
            file(addr_of_mut!((*cell).latency_ns), took_ns);
            if operation.has_waited() {
                (*cell).waited += 1;
                (*cell).waited_ns += took_ns;
            }
        } else if !operation.call().may_be_out_of_pipe() {
            // One that waits for who writes to the pipe has no time of its own: nothing of it is missing.
            (*cpu).untimed += 1;
        }
        if operation.result() < 0 {
            (*cell).errors += 1;
            count_error(cpu, IoKey { error: -operation.result() as u16, ..operation.key() });
        } else if operation.call().is_moving() {
            let bytes = operation.result() as u64;
            file(addr_of_mut!((*cell).size_bytes), bytes);
            count_class(cell, bytes);
        }
        let meanwhile = operation.meanwhile();
        if meanwhile.is_some() {
            count_meanwhile(cell, &meanwhile);
        }
        match pattern {
            Some(Pattern::Consecutive) => (*cell).patterns[Pattern::Consecutive as usize] += 1,
            Some(Pattern::Sequential) => (*cell).patterns[Pattern::Sequential as usize] += 1,
            Some(Pattern::Random) => (*cell).patterns[Pattern::Random as usize] += 1,
            None => {}
        }
    }
}

/// Counts what operations of kind `op` on `system` made the kernel do, and so many of these; `are_more` of them brought
/// more than one page.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(never)]
pub unsafe fn count_besides(cpu: *mut IoCpu, key: u64, block: u64, besides: &Besides) -> u64 {
    let key = IoKey::of_word(key);
    // SAFETY: the caller's; a cell's value is this CPU's own.
    unsafe {
        let Some(cell) = cell(cpu, key, System { device: key.device, block }) else { return 0 };
        (*cell).ops += besides.ops;
        (*cell).fetched_more += besides.are_more;
        count_meanwhile(cell, &besides.meanwhile);
    }
    0
}

/// A request of which no more is known than that it was submitted.
pub struct Submission {
    /// What it is to do.
    pub op: u32,
    /// How many bytes.
    pub bytes: u64,
    /// To a file of this.
    pub system: System,
}

/// Counts a submission.
#[inline(never)]
pub fn submitted(cpu: *mut IoCpu, submission: &Submission) -> u64 {
    let Submission { op, bytes, system } = *submission;
    let key = IoKey { device: system.device, op: op as u16, error: 0 };
    // SAFETY: this CPU's own, as the cell's value.
    unsafe {
        let Some(cell) = cell(cpu, key, system) else { return 0 };
        (*cell).ops += 1;
        if bytes != 0 {
            file(addr_of_mut!((*cell).size_bytes), bytes);
            *addr_of_mut!((*cell).classes).cast::<u64>().add(class_without_branches(bytes)) += 1;
        }
    }
    0
}

/// The class of `bytes`. Each branch would be a way more through a loop for the verifier to go.
#[inline(always)]
fn class_without_branches(bytes: u64) -> usize {
    let mut class = 0;
    let mut at = 0;
    while at < CLASS_MOST_BYTES.len() {
        class += CLASS_MOST_BYTES[at].wrapping_sub(bytes) >> 63;
        at += 1;
    }
    // SAFETY: masks a register, which the verifier must see; what it sees is within the cell, and no class is above 9.
    unsafe { asm!("{0} &= 15", inout(reg) class, options(pure, nomem, nostack)) };
    class as usize
}

const _: () = assert!(offset_of!(IoCell, classes) + 16 * size_of::<u64>() <= size_of::<IoCell>());

/// What came of no call of its own.
pub struct Besides {
    /// Page faults.
    pub ops: u64,
    /// Those that brought more than one page.
    pub are_more: u64,
    /// What they made the kernel do.
    pub meanwhile: Meanwhile,
}

/// # Safety
/// `cell` is this CPU's own.
#[inline(always)]
unsafe fn count_meanwhile(cell: *mut IoCell, meanwhile: &Meanwhile) {
    // SAFETY: the caller's.
    unsafe {
        (*cell).device_read_bytes += u64::from(meanwhile.device_bytes);
        (*cell).fetched_bytes += meanwhile.fetched_bytes();
        (*cell).throttled += u64::from(meanwhile.pauses);
        (*cell).throttled_ns += u64::from(meanwhile.paused_ticks) * global(&TICK_NS);
    }
}

/// The cell of `key`; where there is no room for another, that of the operation alone.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
unsafe fn cell(cpu: *mut IoCpu, key: IoKey, system: System) -> Option<*mut IoCell> {
    // SAFETY: the caller's.
    let index = match unsafe { known(cpu, key.device, key.op.into()) } {
        0 => find(cpu, key.word(), system.block) as u32,
        index => index,
    };
    cell_sums(index)
}

/// The index of the cell of operation `op` on file system `device`, where it is the last of this operation that `cpu`
/// used; else 0. A look-up in a table by key takes several times as long.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
unsafe fn known(cpu: *mut IoCpu, device: u32, op: u32) -> u32 {
    // SAFETY: the caller's.
    let known = unsafe { place_of_known(cpu, op).read_volatile() };
    if known >> 32 == u64::from(device) { known as u32 } else { 0 }
}

/// Where `cpu` keeps that.
#[inline(always)]
unsafe fn place_of_known(cpu: *mut IoCpu, op: u32) -> *mut u64 {
    const _: () = assert!(KNOWN_CELLS == 32);
    let mut index = u64::from(op);
    // SAFETY: the caller's; masks a register, which the verifier must see.
    unsafe {
        asm!("{0} &= 31", inout(reg) index, options(pure, nomem, nostack));
        addr_of_mut!((*cpu).cells).cast::<u64>().add(index as usize)
    }
}

/// The index of the cell of the key that `word` is, on the file system whose super block is at `block`: found, or made
/// where there is room. 0: there is none.
#[inline(never)]
fn find(cpu: *mut IoCpu, word: u64, block: u64) -> u64 {
    let key = IoKey::of_word(word);
    // SAFETY: words that are written as a whole, and this CPU's own.
    unsafe {
        let found = match CELLS.get(&word) {
            Some(index) => *index,
            None => make(key, block),
        };
        if found != 0 {
            place_of_known(cpu, key.op.into())
                .write_volatile(u64::from(key.device) << 32 | u64::from(found));
            return found.into();
        }
        (*cpu).no_cell += 1;
        let of_none = IoKey { device: 0, ..key }.word();
        CELLS.get(&of_none).map_or(0, |index| u64::from(*index))
    }
}

/// Takes a cell for `key`; its index, or 0 where there is none left.
#[inline(always)]
fn make(key: IoKey, block: u64) -> u32 {
    if let Ok(Some(index)) = CELL_PLACES.pop() {
        if CELLS.insert(key.word(), &index, BPF_NOEXIST.into()).is_ok() {
            if let Some(cell) = cell_sums(index) {
                // SAFETY: this CPU's own.
                unsafe { (*cell).magic = System { device: key.device, block }.magic() };
            }
            return index;
        }
        let _ = CELL_PLACES.push(&index, 0);
    }
    // Another CPU was there first, maybe with the last index that there was.
    // SAFETY: a word that is written as a whole.
    unsafe { CELLS.get(&key.word()) }.map_or(0, |index| *index)
}

/// Counts an access of `bytes` in its class.
///
/// # Safety
/// `cell` is this CPU's own.
#[inline(always)]
unsafe fn count_class(cell: *mut IoCell, bytes: u64) {
    // By hand: an index would have to be bounded for the verifier.
    macro_rules! classes {
        ($($class:literal)*) => {
            $(if bytes <= CLASS_MOST_BYTES[$class] {
                // SAFETY: the caller's.
                unsafe { (*cell).classes[$class] += 1 };
                return;
            })*
        };
    }
    const _: () = assert!(CLASS_MOST_BYTES.len() == 9);
    classes!(0 1 2 3 4 5 6 7 8);
    // SAFETY: the caller's.
    unsafe { (*cell).classes[9] += 1 };
}

/// Counts an error by its number.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
unsafe fn count_error(cpu: *mut IoCpu, key: IoKey) {
    let count = match ERRORS.get_ptr_mut(key.word()) {
        Some(count) => Some(count),
        None => {
            let _ = ERRORS.insert(key.word(), 0, BPF_NOEXIST.into());
            ERRORS.get_ptr_mut(key.word())
        }
    };
    // SAFETY: the caller's; a count is this CPU's own.
    unsafe {
        match count {
            Some(count) => *count += 1,
            None => (*cpu).no_error += 1,
        }
    }
}
