//! A task's record: the kernel's counters of it as they were when they were last charged to its job.

use core::ptr::{addr_of, read_volatile};

use tracer_ebpf::{
    kernel_fields::fields::*,
    records::{CpuRecord, TaskRecord, left},
    settings::globals::TIMES_KNOWN,
    tables::job::JobBank,
    task_counters,
};

use crate::{
    kernel::{Kernel, global, load},
    maps::task_record,
};

/// Whether this kernel shows the times that `switch` lives on; the verifier cuts the branch not taken.
#[inline(always)]
pub fn times_known() -> bool {
    global(&TIMES_KNOWN) != 0
}

/// What a record of the task at `address` is known by. The address is a multiple of 64: with a bit set it is never 0.
#[inline(always)]
pub fn tag_of(address: u64) -> u32 {
    address as u32 | 1
}

/// [`tag_of`] the running task. Through memory, because the verifier lets nobody cut a pointer in half.
#[inline(always)]
pub fn tag(cpu: &CpuRecord) -> u32 {
    // SAFETY: the low half of a field (the target is little-endian).
    unsafe { read_volatile(addr_of!(cpu.task).cast::<u32>()) | 1 }
}

/// The running task, known by `tag`, had the pid `from` and has `to` now: brings its record along. A thread that
/// executes a program takes over the pid of its process's first thread and leaves it its own (`de_thread`), so the
/// two records change places, once: at whichever comes first, its next switch or the end of the execution.
#[inline(never)]
pub fn renumber(from: u32, to: u32, tag: u32) {
    let (from, to) = (task_record(from), task_record(to));
    // SAFETY: records within the table. The other task is dead or about to be.
    unsafe {
        if (*from).task == tag && (*to).task != tag {
            let other = *to;
            *to = *from;
            *from = other;
        }
    }
}

/// Charges the kernel's counters of `task` since they were last charged.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(always)]
pub unsafe fn charge(task: Kernel, bank: *mut JobBank, record: &mut TaskRecord) {
    macro_rules! charge {
        ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => {$(
            let value = load::<u64, _>(task, $field) as $word;
            // Most switches change two of the six: leave the other cache lines alone.
            let more = value.wrapping_sub(record.$last);
            if more != 0 {
                // Backwards: the record is a dead task's of the same address. Half the range is a margin.
                if more >> ($word::BITS - 1) == 0 {
                    // SAFETY: the caller's.
                    unsafe { (*bank).$total += u64::from(more) };
                }
                record.$last = value;
            }
        )*};
    }
    task_counters!(usual: charge);
    let rare = rare_events(task);
    if rare != record.rare_events {
        record.rare_events = rare;
        task_counters!(rare: charge);
    }
}

/// What most switches find unchanged, in one number: none of them goes backwards.
#[inline(always)]
fn rare_events(task: Kernel) -> u32 {
    macro_rules! sum {
        ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => {
            0 $(+ load::<u64, _>(task, $field))*
        };
    }
    task_counters!(rare: sum) as u32
}

/// Begins the record of a task that has never run: its counters begin at zero.
#[inline(always)]
pub fn begin(tag: u32, record: &mut TaskRecord) {
    macro_rules! zero {
        ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => {
            $(record.$last = 0;)*
        };
    }
    record.task = tag;
    task_counters!(usual: zero);
    task_counters!(rare: zero);
    record.rare_events = 0;
    record.run_delay_ns = 0;
    record.fault_blocked_ns = 0;
    record.left = left::ON_CPU;
}

/// Begins the record of a task that has run before: what it did so far is not charged.
#[inline(never)]
pub fn adopt(task: Kernel, tag: u32, record: &mut TaskRecord) {
    macro_rules! take {
        ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => {
            $(record.$last = load::<u64, _>(task, $field) as $word;)*
        };
    }
    record.task = tag;
    task_counters!(usual: take);
    task_counters!(rare: take);
    record.rare_events = rare_events(task);
    record.run_delay_ns = if times_known() { load(task, TASK_RUN_DELAY) } else { 0 };
    record.fault_blocked_ns = 0;
    record.left = left::ON_CPU;
}
