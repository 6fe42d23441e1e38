//! Programs that are executed, and how many processes run Python.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{kernel_fields::fields::*, tables::census::Python};

use crate::{
    job::Job,
    kernel::{Kernel, load},
    maps::{PYTHONS, slot_census},
    record::add_shared,
    sight::Program,
};

/// A task executed a program.
#[btf_tracepoint(function = "sched_process_exec")]
pub fn census_exec(ctx: BtfTracePointContext) -> i32 {
    let task: Kernel = ctx.arg(0);
    let Some(job) = Job::of(task) else { return 0 };
    let Some(program) = Program::in_file(load::<Kernel, _>(ctx.arg::<Kernel>(2), BINARY_FILE))
    else {
        return 0;
    };
    program.count(job);
    let process: u32 = load(task, TASK_TGID);
    if program.is_python() {
        begin(process, job);
    } else {
        end(process);
    }
    0
}

/// A task was made.
#[btf_tracepoint(function = "sched_process_fork")]
pub fn census_fork(ctx: BtfTracePointContext) -> i32 {
    let (parent, child): (Kernel, Kernel) = (ctx.arg(0), ctx.arg(1));
    let Some(job) = Job::of(parent) else { return 0 };
    let (process, made): (u32, u32) = (load(parent, TASK_TGID), load(child, TASK_TGID));
    if process != made && PYTHONS.get_ptr(&process).is_some() {
        begin(made, job);
    }
    0
}

/// A task ended; kernels tell more or less of it.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn census_exit(ctx: BtfTracePointContext) -> i32 {
    ended(ctx.arg(0))
}

/// The same on kernels that also tell whether it was the last of its process.
#[btf_tracepoint(function = "sched_process_exit")]
pub fn census_exit_2(ctx: BtfTracePointContext) -> i32 {
    ended(ctx.arg(0))
}

#[inline(always)]
fn ended(task: Kernel) -> i32 {
    let (thread, process): (u32, u32) = (load(task, TASK_PID), load(task, TASK_TGID));
    if thread == process && Job::of(task).is_some() {
        end(process);
    }
    0
}

/// From now on `process` runs Python.
#[inline(always)]
fn begin(process: u32, job: Job) {
    if PYTHONS.get_ptr(&process).is_some() {
        return;
    }
    if PYTHONS.insert(&process, &Python { lease: job.lease, slot: job.slot }, 0).is_err() {
        job.lose();
        return;
    }
    let Some(census) = job.census() else { return };
    // SAFETY: words that several CPUs write; of those who add at once, the last one sees all.
    unsafe {
        add_shared(&raw mut (*census).pythons, 1);
        let now = (&raw const (*census).pythons).read_volatile();
        if now > (*census).pythons_most {
            (&raw mut (*census).pythons_most).write_volatile(now);
        }
    }
}

/// From now on it does not.
#[inline(always)]
fn end(process: u32) {
    // SAFETY: read at once.
    let Some(python) = (unsafe { PYTHONS.get(&process) }).copied() else { return };
    if PYTHONS.remove(&process).is_err() {
        return;
    }
    let Some(census) = slot_census(python.slot) else { return };
    // SAFETY: as above; of another lease the slot has forgotten it.
    unsafe {
        if (*census).lease == python.lease.into() {
            add_shared(&raw mut (*census).pythons, u64::MAX);
        }
    }
}
