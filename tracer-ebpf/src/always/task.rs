//! Rare events of a task: forked, executed, killed for memory.

use aya_ebpf::{
    helpers::{bpf_get_current_pid_tgid, bpf_get_current_task, bpf_get_current_uid_gid},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use tracer_ebpf::{ids::TELL_EXECS, kernel_fields::fields::*, records::life};

use crate::{
    counters::{renumber, tag_of},
    kernel::{Kernel, load, task_cgroup_id},
    maps::{bank, cpu_record, moved, scratch, slot_flags, slot_of, tell, victim},
};

/// A task made another: charged to the maker's job.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn sched_process_fork(ctx: BtfTracePointContext) -> i32 {
    if let Some(bank) = bank(slot_of(0, task_cgroup_id(ctx.arg(0))).into()) {
        // SAFETY: this CPU's own bank.
        unsafe { (*bank).forks += 1 };
    }
    0
}

/// A task executed a program.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn sched_process_exec(ctx: BtfTracePointContext) -> i32 {
    let task: Kernel = ctx.arg(0);
    let slot = slot_of(0, task_cgroup_id(task));
    follow_pid(task, ctx.arg::<u64>(1) as u32);
    if let Some(bank) = bank(slot.into()) {
        // SAFETY: this CPU's own bank.
        unsafe { (*bank).execs += 1 };
    }
    if slot_flags(slot) & TELL_EXECS != 0 {
        tell_exec(slot);
    }
    0
}

/// A thread that was not the first of its process has another pid from here on. Which it had, the kernel says: the
/// switch that brought it here may have been withheld.
#[inline(always)]
fn follow_pid(task: Kernel, old_pid: u32) {
    let pid: u32 = load(task, TASK_PID);
    if pid == old_pid {
        return;
    }
    // SAFETY: the running task is the one that executes.
    renumber(old_pid, pid, tag_of(unsafe { bpf_get_current_task() }));
    let Some(cpu) = cpu_record() else { return };
    // SAFETY: this CPU's own record.
    unsafe {
        if (*cpu).task == task as u64 {
            (*cpu).pid = pid;
        }
    }
}

/// Tells the agent who executes: the environment of a job's task is complete from here on.
#[inline(always)]
fn tell_exec(slot: u16) {
    let (Some(cpu), Some(event)) = (cpu_record(), scratch()) else { return };
    // SAFETY: this CPU's own; an event that a hook in between overwrites is a fact lost, no number.
    unsafe {
        (*event).kind = life::EXECUTED;
        (*event).hierarchy = 0;
        (*event).id = 0;
        (*event).at_ns = 0;
        (*event).slot = slot.into();
        (*event).pid = (bpf_get_current_pid_tgid() >> 32) as u32;
        (*event).uid = bpf_get_current_uid_gid() as u32;
        (*event).path_bytes = 0;
        if !tell(event, 0) {
            (*cpu).ring_full += 1;
        }
    }
}

/// The out-of-memory killer chose a task (kernels that pass the task).
#[btf_tracepoint(function = "mark_victim")]
pub fn mark_victim(ctx: BtfTracePointContext) -> i32 {
    killed_for_memory(ctx.arg(0));
    0
}

/// The out-of-memory killer chose a task (kernels that pass its pid, which no helper makes a task of):
/// counted when it exits.
#[btf_tracepoint(function = "mark_victim")]
pub fn mark_victim_pid(ctx: BtfTracePointContext) -> i32 {
    let pid = ctx.arg::<u64>(0) as u32;
    let (Some(victim), Some(cpu)) = (victim(pid), cpu_record()) else { return 0 };
    // SAFETY: one word, and this CPU's own record.
    unsafe {
        (*cpu).task_evictions += u64::from(*victim != 0);
        *victim = pid;
    }
    0
}

/// A task exits: one that was chosen by its pid is counted, while its cgroup is still known.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn victim_exit(ctx: BtfTracePointContext) -> i32 {
    let task: Kernel = ctx.arg(0);
    let pid: u32 = load(task, TASK_PID);
    if let Some(victim) = victim(pid)
        // SAFETY: one word.
        && unsafe { *victim } == pid
    {
        // SAFETY: as above.
        unsafe { *victim = 0 };
        killed_for_memory(task);
    }
    0
}

#[inline(always)]
fn killed_for_memory(task: Kernel) {
    let slot = slot_of(0, task_cgroup_id(task)).into();
    if let (Some(bank), Some(cpu)) = (bank(slot), cpu_record()) {
        // SAFETY: this CPU's own bank and record.
        unsafe {
            (*bank).oom_kills += 1;
            moved(cpu, slot);
        }
    }
}
