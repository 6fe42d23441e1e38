//! Page faults: the time blocked by major ones always; how long they took in full mode.
//!
//! Minor faults are counted at switches, from the task's own counter: outside full mode nothing runs on
//! their path, and in it only what times them.

use core::ptr::addr_of_mut;

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns},
    macros::{btf_tracepoint, fentry, perf_event},
    programs::{BtfTracePointContext, FEntryContext, PerfEventContext},
};
use tracer_ebpf::settings::globals::MINOR_LATENCY_EVERY;

use crate::{
    current,
    kernel::global,
    maps::{bank, cpu_record, fault_entry, latency_bank},
    record::file,
};

/// The kernel's `enum fault_flag` (`include/linux/mm_types.h`): a fault handled again after its wait. The
/// same in all kernels with fentry programs.
const FAULT_FLAG_TRIED: u64 = 1 << 5;

/// A major fault ended: what the task was blocked in it.
#[perf_event]
pub fn major_fault(_: PerfEventContext) -> u32 {
    let Some(cpu) = cpu_record() else { return 0 };
    // SAFETY: this CPU's own record and bank.
    unsafe {
        let blocked = (*cpu).fault_blocked_ns;
        (*cpu).fault_blocked_ns = 0;
        if blocked != 0
            && let Some(bank) = bank((*cpu).slot)
        {
            file(addr_of_mut!((*bank).major_wait_ns), blocked);
        }
    }
    0
}

/// A major fault ended, in full mode: how long it took.
#[perf_event]
pub fn major_fault_latency(_: PerfEventContext) -> u32 {
    file_latency(true)
}

/// One minor fault in `MINOR_LATENCY_EVERY` ended, in full mode: how long it took. The event's period
/// makes it so.
#[perf_event]
pub fn minor_fault_latency(_: PerfEventContext) -> u32 {
    file_latency(false)
}

/// A page fault begins in user mode.
#[btf_tracepoint(function = "page_fault_user")]
pub fn page_fault_user(_: BtfTracePointContext) -> i32 {
    fault_begins()
}

/// A page fault begins in the kernel, on a user's address or its own.
#[btf_tracepoint(function = "page_fault_kernel")]
pub fn page_fault_kernel(_: BtfTracePointContext) -> i32 {
    fault_begins()
}

/// A page fault begins, on architectures without the tracepoints. One that reads from disk lets go of its
/// locks and is handled a second time when the wait is over: it began the first time.
#[fentry(function = "handle_mm_fault")]
pub fn handle_mm_fault(ctx: FEntryContext) -> i32 {
    let flags: u64 = ctx.arg(2);
    if flags & FAULT_FLAG_TRIED != 0 {
        return 0;
    }
    fault_begins()
}

#[inline(always)]
fn fault_begins() -> i32 {
    let pid = bpf_get_current_pid_tgid() as u32;
    if let Some(fault) = fault_entry(pid) {
        // SAFETY: the entry of the task that runs here; a task sharing it overwrites the pid.
        unsafe {
            (*fault).pid = pid;
            (*fault).at_ns = bpf_ktime_get_ns();
        }
    }
    if let Some(cpu) = cpu_record() {
        // SAFETY: this CPU's own record. What was blocked before is no part of this fault.
        unsafe { (*cpu).fault_blocked_ns = 0 };
    }
    0
}

#[inline(always)]
fn file_latency(major: bool) -> u32 {
    let pid = bpf_get_current_pid_tgid() as u32;
    let (Some(fault), Some(cpu)) = (fault_entry(pid), cpu_record()) else { return 0 };
    // SAFETY: this CPU's own record and bank; the entry as in `fault_begins`.
    unsafe {
        if (*fault).pid != pid {
            return 0;
        }
        (*fault).pid = 0;
        let took = bpf_ktime_get_ns() - (*fault).at_ns;
        // The switch that brought the task here may have been withheld.
        let slot = if (*cpu).pid == pid { (*cpu).slot } else { current::slot() };
        if let Some(bank) = latency_bank(slot) {
            if major {
                file(addr_of_mut!((*bank).major_latency_ns), took);
            } else {
                (*bank).minor_sampled += global(&MINOR_LATENCY_EVERY);
                file(addr_of_mut!((*bank).minor_latency_ns), took);
            }
        }
    }
    0
}
