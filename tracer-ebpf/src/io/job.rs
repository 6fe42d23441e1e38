//! Whose a call is. Every call of every task asks, so the answer for the task that made the CPU's last call is
//! kept by the address of its registers, which lie at the end of its stack. A stack passes to another task when
//! one is made, and a task to another job when it is moved: then all answers are asked for anew.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_fields::fields::*,
    settings::globals::{JOB_CGROUP, JOB_RUNS},
    tables::io::IoCpu,
};

use crate::{
    kernel::{Kernel, Pointer, global, load},
    maps::{STATE, cpu},
    task::{Task, cgroup_of},
    tasks,
};

/// Cgroups below the job's that a task may be in; one deeper is not found.
const MOST_DEPTH: u32 = 24;

/// A program was executed: the job's first one begins it, and what its thread does from now on is that program's.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn io_exec(ctx: BtfTracePointContext) -> i32 {
    tasks::forget(load(ctx.arg::<Kernel>(0), TASK_PID));
    // SAFETY: words of this object's own.
    unsafe {
        if STATE.has_begun.get().read_volatile() == 0 && is_inside(ctx.arg::<Kernel>(0)) {
            STATE.has_begun.get().write_volatile(1);
            changed();
        }
    }
    0
}

/// A task was made, which may have the number of one that ended.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn io_fork(ctx: BtfTracePointContext) -> i32 {
    tasks::forget(load(ctx.arg::<Kernel>(1), TASK_PID));
    changed();
    0
}

/// A task was moved.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn io_move(_: BtfTracePointContext) -> i32 {
    changed();
    0
}

#[inline(always)]
fn changed() {
    let count = STATE.tasks_changed.get();
    // SAFETY: a word of this object's own.
    unsafe { count.write_volatile(count.read_volatile() + 1) };
}

/// What is known of this CPU, where the call whose registers these are is one of the job's.
#[inline(always)]
pub fn if_jobs<T: Task>(registers: Kernel) -> Option<*mut IoCpu> {
    let cpu = cpu()?;
    // SAFETY: this CPU's own record, and a word of this object's own.
    let is_jobs = unsafe {
        let changed = STATE.tasks_changed.get().read_volatile();
        if (*cpu).registers != registers as u64 || (*cpu).asked_at != changed {
            (*cpu).is_jobs = ask::<T>();
            (*cpu).registers = registers as u64;
            (*cpu).asked_at = changed;
        }
        (*cpu).is_jobs != 0
    };
    is_jobs.then_some(cpu)
}

/// The same where the running task may be in no call: by the task's own address, which passes to another when one is
/// made, as its stack does.
#[inline(always)]
pub fn if_jobs_task(task: Kernel) -> Option<*mut IoCpu> {
    let cpu = cpu()?;
    // SAFETY: as above.
    let is_jobs = unsafe {
        let changed = STATE.tasks_changed.get().read_volatile();
        if (*cpu).task != task as u64 || (*cpu).task_asked_at != changed {
            (*cpu).task_is_jobs = ask::<Kernel>();
            (*cpu).task = task as u64;
            (*cpu).task_asked_at = changed;
        }
        (*cpu).task_is_jobs != 0
    };
    is_jobs.then_some(cpu)
}

/// 1 where the running task is the job's, and that has begun.
#[inline(never)]
fn ask<T: Task>() -> u64 {
    // SAFETY: a word of this object's own.
    let has_begun = unsafe { STATE.has_begun.get().read_volatile() } != 0;
    let has_begun = has_begun || global(&JOB_RUNS) != 0;
    (has_begun && is_inside(T::current())).into()
}

/// Whether `task` is in the job's cgroup or in one below it.
#[inline(always)]
fn is_inside<P: Pointer>(task: P) -> bool {
    let mut cgroup = cgroup_of(task);
    let mut depth = 0;
    while depth < MOST_DEPTH {
        if load::<u64, _>(load::<P, _>(cgroup, CGROUP_KN), KERNFS_ID) == global(&JOB_CGROUP) {
            return true;
        }
        let parent: P = load(cgroup, CGROUP_PARENT_CSS);
        if parent.address() == 0 {
            return false;
        }
        cgroup = load(parent, CSS_CGROUP);
        depth += 1;
    }
    false
}
