//! sched_switch: everything about scheduling from one hook, without a clock and without a hash.
//!
//! The kernel itself keeps what a task waited (`sched_info`), ran (`sum_exec_runtime`), faulted and
//! switched. A task's counters are charged when it leaves a CPU, as differences against its record, so
//! that an event the kernel withholds delays a number and loses none.

use core::ptr::{addr_of_mut, null_mut};

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_fields::{fields::*, globals},
    records::{CpuRecord, TaskRecord, left},
    settings::globals::FAULT_BIT_KNOWN,
    tables::job::JobBank,
};

use crate::{
    counters::{adopt, begin, charge, renumber, tag},
    kernel::{Kernel, global, load, load_bit, run_queue_clock, task_cgroup_id},
    maps::{bank, cpu_record, fault_entry, moved, slot_of, task_record},
    record::file,
    wait::{asleep_for, blocked_for, file_wait, is_kernels, waited_for},
};

const TASK_UNINTERRUPTIBLE: u32 = 0x2;
/// EXIT_DEAD and EXIT_ZOMBIE are states of `exit_state`; here it is TASK_DEAD.
const TASK_DEAD: u32 = 0x80;
/// A kernel thread that idles: uninterruptible, but waiting for work.
const TASK_NOLOAD: u32 = 0x400;

/// A program for each form of the tracepoint: kernels from 5.18 pass the state, on older ones (`_3`) it is
/// read from the task. The untimed are for kernels that do not show the times this file lives on.
macro_rules! switch_programs {
    ($($name:ident: $times:literal, $state:expr;)*) => {
        $(
            #[btf_tracepoint(function = "sched_switch")]
            pub fn $name(ctx: BtfTracePointContext) -> i32 {
                let state: fn(&BtfTracePointContext) -> u32 = $state;
                let (prev, next) = (ctx.arg(1), ctx.arg(2));
                on_switch::<$times>(prev, next, state(&ctx), ctx.arg::<u64>(0) & 1 != 0)
            }
        )*
    };
}

switch_programs! {
    sched_switch: true, |ctx| ctx.arg::<u64>(3) as u32;
    sched_switch_3: true, |ctx| load(ctx.arg::<Kernel>(1), TASK_STATE);
    switch_untimed: false, |ctx| ctx.arg::<u64>(3) as u32;
    switch_untimed_3: false, |ctx| load(ctx.arg::<Kernel>(1), TASK_STATE);
}

#[inline(always)]
fn on_switch<const TIMES: bool>(prev: Kernel, next: Kernel, state: u32, preempted: bool) -> i32 {
    let Some(own) = cpu_record() else { return 0 };
    // SAFETY: this CPU's own record.
    let cpu = unsafe { &mut *own };
    let now = if TIMES { run_queue_clock(prev) } else { 0 };
    let prev_pid: u32 = load(prev, TASK_PID);
    // Null, not `None`: that would leave a word unset, which kernel 5.10 takes to be read.
    let (mut left_slot, mut left_bank) = (0, null_mut());
    if prev_pid != 0 {
        // The switch that brought `prev` here may have been withheld: then its slot is looked up.
        let known = cpu.task == prev as u64;
        let slot = if known && cpu.pid == prev_pid {
            cpu.slot
        } else {
            cpu.task = prev as u64;
            renumber(cpu.pid, prev_pid, tag(cpu));
            looked_up(prev)
        };
        left_slot = slot;
        if let Some(bank) = bank(slot) {
            left_bank = bank;
            let record = task_record(prev_pid);
            // SAFETY: this CPU's own bank; a record is written by the CPU its task runs on.
            unsafe {
                leave::<TIMES>(
                    prev,
                    prev_pid,
                    state,
                    preempted,
                    now,
                    cpu,
                    known,
                    bank,
                    slot,
                    &mut *record,
                );
                // Last: who sees that it moved reads all of it.
                moved(own, slot);
            };
        } else {
            cpu.no_bank += 1;
        }
    }
    let next_pid: u32 = load(next, TASK_PID);
    cpu.pid = next_pid;
    cpu.task = next as u64;
    cpu.since_ns = now;
    cpu.fault_blocked_ns = 0;
    if next_pid != 0 {
        let slot = u32::from(slot_of(0, task_cgroup_id(next)));
        cpu.slot = slot;
        // Tasks of one job often take turns.
        let known = slot == left_slot && !left_bank.is_null();
        let bank = if known { Some(left_bank) } else { bank(slot) };
        if let Some(bank) = bank {
            let record = task_record(next_pid);
            // SAFETY: as above.
            unsafe { enter::<TIMES>(next, now, cpu, bank, &mut *record) };
        } else {
            cpu.no_bank += 1;
        }
    }
    0
}

/// Slot of a task by its cgroup, out of line: the hot path has it at hand.
#[inline(never)]
fn looked_up(task: Kernel) -> u32 {
    slot_of(0, task_cgroup_id(task)).into()
}

/// `task` leaves this CPU: charges what it did since it was last charged.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "one inlined path; a struct would cost stack")]
unsafe fn leave<const TIMES: bool>(
    task: Kernel,
    pid: u32,
    state: u32,
    preempted: bool,
    now: u64,
    cpu: &CpuRecord,
    known: bool,
    bank: *mut JobBank,
    slot: u32,
    record: &mut TaskRecord,
) {
    let tag = tag(cpu);
    if TIMES && record.task != tag && load::<u64, _>(task, TASK_PCOUNT) <= 1 {
        // In its first run, whose begin was withheld.
        begin(tag, record);
    }
    if record.task == tag {
        // SAFETY: the caller's.
        unsafe { charge(task, bank, record) };
        if TIMES && left::how(record.left) != left::ON_CPU {
            // SAFETY: the caller's.
            unsafe { entered_unseen(task, bank, slot, record) };
        }
    } else {
        adopt(task, tag, record);
    }
    if TIMES {
        let arrival: u64 = load(task, TASK_LAST_ARRIVAL);
        // 7.2 has events between arrival and this switch that would count time twice.
        let start = if known && cpu.since_ns > arrival { cpu.since_ns } else { arrival };
        if start != 0 && now > start {
            // SAFETY: the caller's.
            unsafe { file(addr_of_mut!((*bank).on_cpu_slice_ns), now - start) };
        }
        record.run_delay_ns = load(task, TASK_RUN_DELAY);
    }
    record.left_at_ns = now;
    record.fault_blocked_ns = if known { cpu.fault_blocked_ns } else { 0 };
    let kept = record.left & left::KEPT;
    record.left = if preempted || state == 0 {
        left::RUNNABLE | kept
    } else if state & TASK_DEAD != 0 {
        record.task = 0;
        // SAFETY: the caller's.
        unsafe { ended(task, pid, bank) };
        left::ASLEEP
    } else {
        let in_iowait = load_bit(task, TASK_IN_IOWAIT, &globals::TASK_IN_IOWAIT);
        // Of a thread of the kernel it is how it idles; file systems (Lustre) let others wait so.
        let is_blocked =
            state & TASK_UNINTERRUPTIBLE != 0 && (state & TASK_NOLOAD == 0 || !is_kernels(task));
        if !is_blocked && !in_iowait {
            left::ASLEEP | if TIMES { asleep_for(task, state, slot, kept) } else { 0 }
        } else {
            let in_fault = if global(&FAULT_BIT_KNOWN) != 0 {
                load_bit(task, TASK_IN_USER_FAULT, &globals::TASK_IN_USER_FAULT)
            } else {
                in_iowait
            };
            let fault = if in_fault || fault_began(pid) { left::IN_FAULT } else { 0 };
            left::BLOCKED | fault | if TIMES { blocked_for(task, slot) | kept } else { 0 }
        }
    };
}

/// `task` leaves its CPU for good: a thread ended or, where it is its process's first, that one did, and how. Out of line,
/// so that the others do not pay for it.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(never)]
unsafe fn ended(task: Kernel, pid: u32, bank: *mut JobBank) {
    if load::<u32, _>(task, TASK_TGID) != pid {
        // SAFETY: the caller's.
        unsafe { (*bank).thread_exits += 1 };
        return;
    }
    // As wait(2) has it: the signal in the low seven bits, the status above them.
    let code: u32 = load(task, TASK_EXIT_CODE);
    // SAFETY: the caller's.
    unsafe {
        (*bank).exits += 1;
        if code & 0x7f != 0 {
            (*bank).exits_killed += 1;
        } else if code >> 8 & 0xff != 0 {
            (*bank).exits_failed += 1;
        }
    }
}

/// Whether task `pid` has begun a page fault whose end nobody has told. It may have ended long ago; but
/// whoever tells of begins sets what was blocked to zero at each.
#[inline(always)]
fn fault_began(pid: u32) -> bool {
    // SAFETY: an entry of the table.
    fault_entry(pid).is_some_and(|fault| unsafe { (*fault).pid == pid })
}

/// `task` has entered a CPU since it last left one, but the switch was withheld: files what it waited and
/// slept before, from what the kernel keeps of it.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(never)]
unsafe fn entered_unseen(task: Kernel, bank: *mut JobBank, slot: u32, record: &TaskRecord) {
    let arrival: u64 = load(task, TASK_LAST_ARRIVAL);
    if arrival <= record.left_at_ns {
        return;
    }
    let away = arrival - record.left_at_ns;
    let waited = load::<u64, _>(task, TASK_RUN_DELAY) - record.run_delay_ns;
    // SAFETY: the caller's.
    unsafe {
        file(addr_of_mut!((*bank).run_queue_wait_ns), waited);
        if away > waited && left::how(record.left) != left::RUNNABLE {
            file_wait(bank, record.left, slot, away - waited);
        }
    }
}

/// `task` enters this CPU: files how long it waited for it, and how long it slept before.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(always)]
unsafe fn enter<const TIMES: bool>(
    task: Kernel,
    now: u64,
    cpu: &mut CpuRecord,
    bank: *mut JobBank,
    record: &mut TaskRecord,
) {
    if !TIMES {
        return;
    }
    let tag = tag(cpu);
    let queued: u64 = load(task, TASK_LAST_QUEUED);
    // What it waits now is not in run_delay yet; what it waited before it was moved here is.
    let mut waited = if queued != 0 && now > queued { now - queued } else { 0 };
    if load::<u64, _>(task, TASK_PCOUNT) == 0 {
        // Never ran: a record under its pid is a dead task's, whose last switch was withheld.
        cpu.task_evictions += u64::from(record.task != 0 && record.task != tag);
        begin(tag, record);
        waited += load::<u64, _>(task, TASK_RUN_DELAY);
    } else if record.task == tag && left::how(record.left) == left::ON_CPU {
        // It was withheld when and how it left: what it did in between is unknown.
    } else if record.task == tag {
        waited += load::<u64, _>(task, TASK_RUN_DELAY) - record.run_delay_ns;
        let away = now - record.left_at_ns;
        let off = if away > waited { away - waited } else { 0 };
        if left::how(record.left) == left::RUNNABLE {
            cpu.fault_blocked_ns = record.fault_blocked_ns;
        } else {
            record.left = waited_for(task, record.left, cpu.slot, off);
            // SAFETY: the caller's.
            unsafe { file_wait(bank, record.left, cpu.slot, off) };
            if record.left & left::IN_FAULT != 0 {
                // Without the bit, in_iowait is also that of a read: only the last block counts.
                let known = global(&FAULT_BIT_KNOWN) != 0;
                let before = if known { record.fault_blocked_ns } else { 0 };
                cpu.fault_blocked_ns = before + off;
            }
        }
    } else {
        cpu.task_evictions += u64::from(record.task != 0);
        adopt(task, tag, record);
    }
    record.left = left::ON_CPU | record.left & left::KEPT;
    cpu.sum_exec_ns = record.sum_exec_ns;
    if queued != 0 {
        // SAFETY: the caller's.
        unsafe { file(addr_of_mut!((*bank).run_queue_wait_ns), waited) };
    }
}
