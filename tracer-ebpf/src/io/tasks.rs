//! Filing an operation by thread: in the thread's cell, whose index lies beside its call in progress, which is looked
//! up anyway. A thread that has none takes the one that was taken longest ago: that has been read long since, and
//! what its thread did after is not told of it.

use aya_ebpf::helpers::{bpf_get_current_pid_tgid, generated::bpf_get_current_comm};
use tracer_ebpf::tables::{
    in_flight::InFlight,
    io_task::{TaskCell, is_metadata},
};

use crate::{
    maps::{in_flight, oldest_task, task_sums},
    operation::Operation,
};

/// Counts `operation` of `thread`, whose place for calls in progress is `own`.
#[inline(always)]
pub fn count(own: *mut InFlight, thread: u32, operation: Operation) {
    // SAFETY: the task's own, or that of another that shares its place: the cell tells whose it is.
    let index = unsafe { (*own).cell };
    let cell = match task_sums(index) {
        // SAFETY: only read.
        Some(cell) if unsafe { (*cell).thread } == thread => cell,
        _ => match take(own, thread, operation.now_ns()) {
            Some(cell) => cell,
            None => return,
        },
    };
    // SAFETY: the thread's own.
    let cell = unsafe { &mut *cell };
    let took_ns = operation.took_ns();
    cell.ops += 1;
    cell.time_ns += took_ns;
    if operation.has_waited() {
        cell.waited_ns += took_ns;
    }
    let op = operation.call().op();
    if is_metadata(op) {
        cell.metadata_ns += took_ns;
    }
    let moved = operation.moved_bytes();
    if operation.call().is_writing() {
        cell.written_bytes += moved;
    } else {
        cell.read_bytes += moved;
    }
}

/// What `thread` does from now on is not told with what it did before.
#[inline(always)]
pub fn forget(thread: u32) {
    if let Some(own) = in_flight(thread) {
        // SAFETY: a word of this object's own: whoever shares the place takes another cell.
        unsafe { (*own).cell = 0 };
    }
}

/// Gives `thread` a cell: one that a queue gives to no other before all the rest.
#[inline(never)]
fn take(own: *mut InFlight, thread: u32, now_ns: u64) -> Option<*mut TaskCell> {
    let index = oldest_task();
    if index == 0 {
        return None;
    }
    let cell = task_sums(index)?;
    // SAFETY: the thread's own from now on. The time last: until then nothing is read of it.
    unsafe {
        (&raw mut (*cell).made_ns).write_volatile(0);
        (*cell).thread = thread;
        (*cell).process = (bpf_get_current_pid_tgid() >> 32) as u32;
        bpf_get_current_comm((&raw mut (*cell).program).cast(), 16);
        for sum in [
            &raw mut (*cell).ops,
            &raw mut (*cell).time_ns,
            &raw mut (*cell).waited_ns,
            &raw mut (*cell).metadata_ns,
            &raw mut (*cell).read_bytes,
            &raw mut (*cell).written_bytes,
        ] {
            // One by one: LLVM would call a function that sets memory.
            sum.write_volatile(0);
        }
        (&raw mut (*cell).made_ns).write_volatile(now_ns);
        (*own).cell = index;
    }
    Some(cell)
}
