//! Requests to io_uring: no call of their own begins or ends them. They are known by their addresses from their
//! submission, by the job's task or by the ring's own thread, which is in the job's cgroup too, to their completion.

use aya_ebpf::{
    bindings::BPF_ANY, helpers::generated::bpf_ktime_get_ns, macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use tracer_ebpf::{
    io_calls::{IoCall, NONE, place},
    kernel_fields::{fields::*, globals},
    tables::io::op,
};

use crate::{
    cells::{Meanwhile, count},
    file::word_at,
    files,
    held::held,
    job::if_jobs_task,
    kernel::{Kernel, global, load},
    maps::{REQUESTS, cpu},
    operation::Operation,
    places::Place,
    task::Task,
};

/// A request is submitted.
#[btf_tracepoint(function = "io_uring_submit_req")]
pub fn io_submit(ctx: BtfTracePointContext) -> i32 {
    held(|| submitted(ctx.arg(0)));
    0
}

/// The same on kernels that call it otherwise.
#[btf_tracepoint(function = "io_uring_submit_sqe")]
pub fn io_submit_sqe(ctx: BtfTracePointContext) -> i32 {
    submitted(ctx.arg(0));
    0
}

#[inline(always)]
fn submitted(request: Kernel) {
    if let Some(cpu) = if_jobs_task(Kernel::current()) {
        if !call_of(load(request, URING_OPCODE)).is_some() {
            return;
        }
        // SAFETY: has no preconditions.
        let now_ns = unsafe { bpf_ktime_get_ns() };
        // Its memory may be that of a request that was completed without a word.
        if REQUESTS.insert(request as u64, now_ns, BPF_ANY.into()).is_err() {
            // SAFETY: this CPU's own.
            unsafe { (*cpu).no_request += 1 };
        }
    }
}

/// A request is completed.
#[btf_tracepoint(function = "io_uring_complete")]
pub fn io_complete(ctx: BtfTracePointContext) -> i32 {
    let completion: Kernel = ctx.arg(2);
    held(|| completed(ctx.arg(1), load(completion, URING_RESULT)));
    0
}

/// The same on kernels that tell the result itself.
#[btf_tracepoint(function = "io_uring_complete")]
pub fn io_complete_7(ctx: BtfTracePointContext) -> i32 {
    completed(ctx.arg(1), ctx.arg::<u64>(3) as u32);
    0
}

#[inline(always)]
fn completed(request: u64, result: u32) {
    // SAFETY: copied at once.
    let Some(submitted_ns) = (unsafe { REQUESTS.get(&request) }).copied() else { return };
    let _ = REQUESTS.remove(&request);
    let Some(cpu) = cpu() else { return };
    // SAFETY: has no preconditions.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    let call = call_of(word_at(request + global(&globals::URING_OPCODE)) as u8);
    // At its submission it had none yet.
    let file = word_at(request + global(&globals::URING_FILE));
    let place = Place::of_file(file);
    let pid: u32 = load(Kernel::current(), TASK_PID);
    // SAFETY: this CPU's own.
    unsafe {
        let operation = Operation::of_request(cpu);
        operation.note(call, &place, now_ns, Some(now_ns - submitted_ns), result as i32 as i64);
        operation.note_besides(false, &Meanwhile::NONE);
        files::count_request(cpu, pid, operation);
        count(cpu, operation, None);
    }
}

/// What requests of this number do (linux/io_uring.h).
#[inline(always)]
fn call_of(opcode: u8) -> IoCall {
    // READV, READ_FIXED, READ, READ_MULTISHOT, READV_FIXED.
    const READ: u64 = 1 << 1 | 1 << 4 | 1 << 22 | 1 << 49 | 1 << 60;
    // WRITEV, WRITE_FIXED, WRITE, WRITEV_FIXED.
    const WRITE: u64 = 1 << 2 | 1 << 5 | 1 << 23 | 1 << 61;
    // FSYNC, SYNC_FILE_RANGE.
    const FSYNC: u64 = 1 << 3 | 1 << 8;
    // FALLOCATE, OPENAT, CLOSE, STATX, FADVISE, OPENAT2, SPLICE, TEE; RENAMEAT to LINKAT; xattrs, FTRUNCATE.
    const OTHER: u64 = 0b111 << 17
        | 1 << 21
        | 1 << 24
        | 1 << 28
        | 1 << 30
        | 1 << 33
        | 0b1_1111 << 35
        | 0b1111 << 41
        | 1 << 55;
    if opcode >= 64 {
        return NONE;
    }
    let bit = 1 << opcode;
    let of = |op| IoCall::new(op, place::FIRST);
    if READ & bit != 0 {
        of(op::URING_READ).moves()
    } else if WRITE & bit != 0 {
        of(op::URING_WRITE).moves()
    } else if FSYNC & bit != 0 {
        of(op::URING_FSYNC)
    } else if OTHER & bit != 0 {
        of(op::URING_OTHER)
    } else {
        NONE
    }
}
