//! Both ends of a system call. Internal functions of file systems change from kernel to kernel, and not all
//! file systems have the same: calls are where they are alike.

use core::{arch::asm, ptr::read_volatile};

use aya_ebpf::{
    EbpfContext,
    helpers::generated::{bpf_ktime_get_ns, bpf_task_pt_regs},
    macros::{btf_tracepoint, tracepoint},
    programs::{BtfTracePointContext, TracePointContext},
};
use tracer_ebpf::{
    calls::CALLS,
    io_calls::{IoCall, IoCalls, NONE, OF_32_BITS, is_lock, place},
    kernel_fields::{fields::*, globals},
    settings::globals::COMPAT_BITS,
    tables::{
        in_flight::{InFlight, tag},
        io::{IoCpu, op},
    },
};

use crate::{
    aio,
    arguments::Arguments,
    cells::{Meanwhile, count},
    files,
    job::if_jobs,
    kernel::{Kernel, Pointer, global, has, load},
    lives,
    maps::in_flight,
    operation::Operation,
    places::{Place, awaits_writer, directed},
    slowest,
    task::{Address, Task},
    tasks,
};

/// What each call does to files; the agent fills it, for this machine's numbers.
#[unsafe(no_mangle)]
pub static IO_CALLS: IoCalls = [NONE.0 as u16; 2 * CALLS];

/// The kernel's own results of calls that a signal interrupted (linux/errno.h). Whether the call begins anew, fails or ends
/// with its task, no program sees: each is one that failed with EINTR, so that what was waited is not lost.
const RESTARTS: core::ops::RangeInclusive<i64> = -516..=-512;
const EINTR: i64 = 4;

/// Where an event of raw_syscalls/sys_exit has the result, in words: behind what all events begin with, and the number.
const EXIT_RESULT: usize = 2;

/// A task enters a call.
#[btf_tracepoint(function = "sys_enter")]
pub fn io_enter(ctx: BtfTracePointContext) -> i32 {
    enter::<Kernel>(ctx.arg(0))
}

/// The same, where the task is known by its address alone.
#[btf_tracepoint(function = "sys_enter")]
pub fn io_enter_probed(ctx: BtfTracePointContext) -> i32 {
    enter::<Address>(ctx.arg(0))
}

/// The same as an event's program, which no other task interrupts: from Linux 7.0 on one may interrupt those above, and
/// its calls on that CPU then run none.
#[tracepoint]
pub fn io_enter_event(_: TracePointContext) -> i32 {
    enter::<Kernel>(registers())
}

/// A call returns.
#[btf_tracepoint(function = "sys_exit")]
pub fn io_exit(ctx: BtfTracePointContext) -> i32 {
    exit::<Kernel>(ctx.arg(0), ctx.arg::<u64>(1) as i64)
}

/// The same, where the task is known by its address alone.
#[btf_tracepoint(function = "sys_exit")]
pub fn io_exit_probed(ctx: BtfTracePointContext) -> i32 {
    exit::<Address>(ctx.arg(0), ctx.arg::<u64>(1) as i64)
}

/// The same as an event's program.
#[tracepoint]
pub fn io_exit_event(ctx: TracePointContext) -> i32 {
    // SAFETY: a word of the event, which the verifier lets programs read.
    let result = unsafe { ctx.as_ptr().cast::<i64>().add(EXIT_RESULT).read() };
    exit::<Kernel>(registers(), result)
}

/// The running task's registers as they were when it entered its call.
#[inline(always)]
fn registers() -> Kernel {
    // SAFETY: of the running task, which is in a call.
    unsafe { bpf_task_pt_regs(Kernel::current().cast_mut().cast()) as usize as Kernel }
}

#[inline(always)]
fn enter<T: Task>(registers: Kernel) -> i32 {
    if if_jobs::<T>(registers).is_some() {
        begin(T::current(), registers);
    }
    0
}

#[inline(always)]
fn exit<T: Task>(registers: Kernel, result: i64) -> i32 {
    if let Some(cpu) = if_jobs::<T>(registers) {
        end::<T>(cpu, registers, result);
    }
    0
}

/// The call with these registers, of the job's, returns `result`.
#[inline(always)]
fn end<T: Task>(cpu: *mut IoCpu, registers: Kernel, result: i64) {
    let task = T::current();
    let (call, number) = call_of(task, registers);
    let arguments = Arguments::of(registers, call);
    if !call.is_some() {
        if call.is_submission() && result > 0 {
            aio::count(cpu, task, arguments, result as u64);
        }
        if call.is_of_other_numbers() {
            // SAFETY: this CPU's own.
            unsafe { (*cpu).calls_32 += 1 };
        }
        return;
    }
    let call = directed(task, arguments, call, result);
    let result = if RESTARTS.contains(&result) { -EINTR } else { result };
    // SAFETY: has no preconditions.
    let now = unsafe { bpf_ktime_get_ns() };
    let pid: u32 = load(task, TASK_PID);
    let Some(own) = in_flight(pid) else { return };
    // SAFETY: the task's own, or that of another that shares its place: the tag tells.
    let (is_known, begun) = unsafe { ((*own).tag == tag(pid, number), &mut *own) };
    let is_closed = call.place() == place::CLOSED;
    let mut place = match is_closed {
        true if is_known => Place::closed_by(begun),
        true => Place::UNKNOWN,
        false => Place::of_call(task, arguments, call, result),
    };
    if call.op() == op::OPEN {
        lives::note_opened(&mut place.file, now);
    }
    // SAFETY: this CPU's own.
    let operation = unsafe { Operation::of_call(cpu) };
    let is_timed = is_known && begun.start_ns != 0;
    operation.note(call, &place, now, is_timed.then(|| now - begun.start_ns), result);
    let has_waited = is_timed && load::<u64, _>(task, TASK_NVCSW) != begun.switches;
    let meanwhile = if is_known { meanwhile(task, call, begun) } else { Meanwhile::NONE };
    operation.note_besides(has_waited, &meanwhile);
    begun.tag = 0;
    let pattern = files::count(cpu, pid, arguments, operation);
    // SAFETY: this CPU's own.
    unsafe { count(cpu, operation, pattern) };
    if !operation.id().is_stream() {
        tasks::count(own, pid, operation);
        // SAFETY: this CPU's own.
        unsafe { slowest::note::<T>(cpu, arguments, operation) };
    }
}

#[inline(always)]
fn begin(task: impl Pointer, registers: Kernel) {
    let (call, number) = call_of(task, registers);
    if !call.is_some() {
        return;
    }
    let pid: u32 = load(task, TASK_PID);
    let Some(begun) = in_flight(pid) else { return };
    let arguments = Arguments::of(registers, call);
    let closed = if call.place() == place::CLOSED {
        Place::of_descriptor(task, arguments.first() as u32)
    } else {
        Place::UNKNOWN
    };
    // SAFETY: has no preconditions.
    let start_ns =
        if awaits_writer(task, arguments, call) { 0 } else { unsafe { bpf_ktime_get_ns() } };
    let switches = load(task, TASK_NVCSW);
    // SAFETY: the task's own, or that of another that shares its place, whose latency is then lost.
    unsafe {
        *begun = InFlight {
            tag: tag(pid, number),
            cell: (*begun).cell,
            file: closed.file.id,
            system: closed.system.block,
            start_ns,
            switches,
            device_bytes: device_bytes(task),
            pages: 0,
            pauses: 0,
            paused_ticks: 0,
        };
    }
}

/// Bytes that devices have read for `task`, the low half; 0 where the kernel keeps no account.
#[inline(always)]
fn device_bytes(task: impl Pointer) -> u32 {
    if has(&globals::TASK_READ_BYTES) { load(task, TASK_READ_BYTES) } else { 0 }
}

/// What came of `call` of `task` that began like this. Pages that a write brings into the page cache are no misses.
#[inline(always)]
fn meanwhile(task: impl Pointer, call: IoCall, begun: &InFlight) -> Meanwhile {
    let writes = matches!(call.op(), op::WRITE | op::COPY | op::TRUNCATE | op::FALLOCATE);
    Meanwhile {
        device_bytes: device_bytes(task).wrapping_sub(begun.device_bytes),
        fetched_pages: if writes { 0 } else { begun.pages },
        pauses: begun.pauses,
        paused_ticks: begun.paused_ticks,
    }
}

/// The call of `task` that these registers are of, and its number.
#[inline(always)]
fn call_of(task: impl Pointer, registers: Kernel) -> (IoCall, u32) {
    let number: u32 = load(registers, CALL_NUMBER);
    let call = call_at(task, number);
    if call.is_lock_by_command() && !is_lock(Arguments::of(registers, call).second()) {
        return (NONE, number);
    }
    (call, number)
}

/// The call with this number that `task` is in.
#[inline(always)]
pub fn call_at(task: impl Pointer, number: u32) -> IoCall {
    if number as usize >= CALLS {
        return NONE;
    }
    const _: () = assert!(OF_32_BITS == 512 && size_of::<IoCalls>() == 2 * 1024);
    let mut index = u64::from(number);
    if u64::from(load::<u32, _>(task, TASK_COMPAT)) & global(&COMPAT_BITS) != 0 {
        index |= OF_32_BITS as u64;
    }
    // SAFETY: masks a register, which the verifier must see; the index is then within the table.
    unsafe {
        asm!("{0} &= 1023", inout(reg) index, options(pure, nomem, nostack));
        IoCall(read_volatile(IO_CALLS.as_ptr().add(index as usize)).into())
    }
}
