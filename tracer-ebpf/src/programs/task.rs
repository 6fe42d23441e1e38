//! Rare events of a task: forked, executed, moved to another cgroup, killed for memory.

use aya_ebpf::{
    helpers::bpf_get_current_pid_tgid, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use tracer_ebpf::{kernel_fields::globals::*, settings::globals::TASKS_HIERARCHY};

use super::switch::{charge, times_known};
use crate::{
    kernel::{Kernel, cgroup_id, global, load, run_queue_clock, task_cgroup_id},
    maps::{bank, cpu_record, slot_of, task_record},
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
    if let Some(bank) = bank(slot_of(0, task_cgroup_id(ctx.arg(0))).into()) {
        // SAFETY: this CPU's own bank.
        unsafe { (*bank).execs += 1 };
    }
    0
}

/// The out-of-memory killer chose a task (kernels that pass the task; where they pass its pid, the agent
/// reads the cgroup's own count).
#[btf_tracepoint(function = "mark_victim")]
pub fn mark_victim(ctx: BtfTracePointContext) -> i32 {
    if let Some(bank) = bank(slot_of(0, task_cgroup_id(ctx.arg(0))).into()) {
        // SAFETY: this CPU's own bank.
        unsafe { (*bank).oom_kills += 1 };
    }
    0
}

/// A task moved to another cgroup. If it is the one running here, what it did so far belongs to the
/// old one, and this CPU's record follows it; any other is looked up when it next enters a CPU.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let task: Kernel = ctx.arg(2);
    let root: Kernel = load(cgroup, &CGROUP_ROOT);
    if u64::from(load::<u32>(root, &ROOT_HIERARCHY)) != global(&TASKS_HIERARCHY) {
        return 0;
    }
    let pid: u32 = load(task, &TASK_PID);
    if bpf_get_current_pid_tgid() as u32 != pid {
        return 0;
    }
    let Some(cpu) = cpu_record() else { return 0 };
    let record = task_record(pid);
    // SAFETY: this CPU's own records.
    unsafe {
        if (*cpu).pid != pid {
            return 0;
        }
        if let Some(bank) = bank((*cpu).slot)
            && (*record).pid == pid
        {
            charge(task, bank, &mut *record);
            (*cpu).sum_exec_ns = (*record).sum_exec_ns;
            (*cpu).since_ns = if times_known() { run_queue_clock(task) } else { 0 };
        }
        (*cpu).slot = slot_of(0, cgroup_id(cgroup)).into();
    }
    0
}
