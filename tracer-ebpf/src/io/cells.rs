//! Filing an operation in its cell.

use core::ptr::addr_of_mut;

use aya_ebpf::bindings::BPF_NOEXIST;
use tracer_ebpf::{
    io_calls::IoCall,
    tables::{
        io::{CLASS_MOST_BYTES, IoCell, IoCpu, IoKey},
        io_file::Pattern,
    },
};

use crate::{
    maps::{CELLS, ERRORS},
    places::System,
    record::file,
};

/// How an operation went.
pub struct Operation {
    /// When it ended, CLOCK_MONOTONIC.
    pub now_ns: u64,
    /// Nanoseconds; `None` where its begin was not seen.
    pub took_ns: Option<u64>,
    /// Whether the task gave its CPU away.
    pub has_waited: bool,
    /// What the call returned.
    pub result: i64,
}

// SAFETY: all integers; zeros are a valid value.
static EMPTY: IoCell = unsafe { core::mem::zeroed() };

/// Counts `operation` of `call` on `system`; where it is an access, `pattern` says where it began.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
pub unsafe fn count(
    cpu: *mut IoCpu,
    call: IoCall,
    system: System,
    operation: &Operation,
    pattern: Option<Pattern>,
) {
    let key = IoKey { device: system.device, op: call.op() as u16, error: 0 };
    // SAFETY: the caller's; a cell's value is this CPU's own.
    unsafe {
        let Some(cell) = cell(cpu, key, system) else { return };
        (*cell).ops += 1;
        if let Some(took_ns) = operation.took_ns {
            file(addr_of_mut!((*cell).latency_ns), took_ns);
            if operation.has_waited {
                (*cell).waited += 1;
                (*cell).waited_ns += took_ns;
            }
        } else {
            (*cpu).untimed += 1;
        }
        if operation.result < 0 {
            (*cell).errors += 1;
            count_error(cpu, IoKey { error: -operation.result as u16, ..key });
        } else if call.is_moving() {
            let bytes = operation.result as u64;
            file(addr_of_mut!((*cell).size_bytes), bytes);
            count_class(cell, bytes);
        }
        match pattern {
            Some(Pattern::Consecutive) => (*cell).patterns[Pattern::Consecutive as usize] += 1,
            Some(Pattern::Sequential) => (*cell).patterns[Pattern::Sequential as usize] += 1,
            Some(Pattern::Random) => (*cell).patterns[Pattern::Random as usize] += 1,
            None => {}
        }
    }
}

/// The cell of `key`; where there is no room for another, that of the operation alone.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
unsafe fn cell(cpu: *mut IoCpu, key: IoKey, system: System) -> Option<*mut IoCell> {
    if let Some(cell) = CELLS.get_ptr_mut(key.word()) {
        return Some(cell);
    }
    // Fails where another CPU was there first, or where there is no room.
    let _ = CELLS.insert(key.word(), &EMPTY, BPF_NOEXIST.into());
    if let Some(cell) = CELLS.get_ptr_mut(key.word()) {
        // SAFETY: this CPU's own.
        unsafe { (*cell).magic = system.magic() };
        return Some(cell);
    }
    // SAFETY: the caller's.
    unsafe { (*cpu).no_cell += 1 };
    CELLS.get_ptr_mut(IoKey { device: 0, ..key }.word())
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
