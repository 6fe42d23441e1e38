//! Pages that come into the page cache, and pauses of those who write too fast. What a task does in an operation is
//! noted with that, and counted when it returns; page faults and other calls count at once.

use aya_ebpf::{
    helpers::generated::{bpf_ktime_get_ns, bpf_task_pt_regs},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use tracer_ebpf::{
    kernel_fields::{Marked, fields::*},
    settings::globals::{CALL_URING_ENTER, PAGE_HEAD, REGISTERS_AT},
    tables::{
        in_flight::{FAULT, InFlight, is_operation, tag},
        io::{IoCpu, IoKey, op},
    },
};

use crate::{
    calls::call_at,
    cells::{Besides, Meanwhile, count_besides},
    file::word_at,
    files,
    held::held,
    inode::Inode,
    job::if_jobs_task,
    kernel::{Kernel, global, load},
    lives::id_of,
    maps::in_flight,
    task::Task,
    typed::{device_of, file, file_of_descriptor},
};

/// A task's `flags` (linux/sched.h): it works for io_uring, and has the registers of the task that made it.
const PF_IO_WORKER: u32 = 0x10;
/// In place of a call's number: a page fault.
const NO_CALL: u32 = u32::MAX;
/// The kernel's numbers of devices have so many bits below the major number (linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// A page, or several, came into the page cache.
#[btf_tracepoint(function = "mm_filemap_add_to_page_cache")]
pub fn io_fetch(ctx: BtfTracePointContext) -> i32 {
    held(|| {
        let task = Kernel::current();
        let Some(cpu) = if_jobs_task(task) else { return };
        let folio: Kernel = ctx.arg(0);
        let flags: u64 = load(folio, FOLIO_FLAGS);
        let pages: u32 = if flags & global(&PAGE_HEAD) == 0 { 1 } else { load(folio, FOLIO_PAGES) };
        fetched(cpu, task, load(load::<Kernel, _>(folio, FOLIO_MAPPING), MAPPING_HOST), pages);
    });
    0
}

/// The same on kernels that know single pages alone.
#[btf_tracepoint(function = "mm_filemap_add_to_page_cache")]
pub fn io_fetch_page(ctx: BtfTracePointContext) -> i32 {
    // Kernels that let nobody interrupt it.
    let task = Kernel::current();
    if let Some(cpu) = if_jobs_task(task) {
        let page: Kernel = ctx.arg(0);
        fetched(cpu, task, load(load::<Kernel, _>(page, PAGE_MAPPING), MAPPING_HOST), 1);
    }
    0
}

/// A task has written so much that it is to pause for a while.
#[btf_tracepoint(function = "balance_dirty_pages")]
pub fn io_throttle(ctx: BtfTracePointContext) -> i32 {
    held(|| throttled(ctx.arg(6)));
    0
}

/// The same on kernels that tell the thresholds too.
#[btf_tracepoint(function = "balance_dirty_pages")]
pub fn io_throttle_12(ctx: BtfTracePointContext) -> i32 {
    throttled(ctx.arg(10));
    0
}

#[inline(always)]
fn throttled(ticks: u64) {
    // Told also of a task that need not pause.
    if ticks as i64 <= 0 {
        return;
    }
    let task = Kernel::current();
    let Some(cpu) = if_jobs_task(task) else { return };
    let pid: u32 = load(task, TASK_PID);
    let Some(begun) = in_flight(pid) else { return };
    let number = call_of(task);
    // SAFETY: the task's own, or that of another that shares its place: the tag tells.
    unsafe {
        if number != NO_CALL && is_operation((*begun).tag, pid) {
            (*begun).pauses += 1;
            (*begun).paused_ticks += ticks as u32;
            return;
        }
    }
    // Which file it is for is not told.
    let op = if is_uring(number) { op::URING_WRITE } else { op::MMAP };
    let meanwhile = Meanwhile { pauses: 1, paused_ticks: ticks as u32, ..Meanwhile::NONE };
    count(cpu, 0, op, 0, Besides { ops: 0, are_more: 0, meanwhile });
}

/// `task` has brought so many pages of the file of `inode` into the page cache.
#[inline(always)]
fn fetched(cpu: *mut IoCpu, task: Kernel, inode: u64, pages: u32) {
    let pid: u32 = load(task, TASK_PID);
    let Some(begun) = in_flight(pid) else { return };
    let number = call_of(task);
    // SAFETY: as above.
    unsafe {
        if number != NO_CALL && is_operation((*begun).tag, pid) {
            if !is_written(task, number, inode) {
                (*begun).pages += pages;
            }
            return;
        }
    }
    let Some(inode) = Inode::at(inode) else { return };
    // Else it is of the file system's own tables.
    if !inode.is_regular() {
        return;
    }
    let block = inode.system();
    let device = device_of(block);
    let mut besides = Besides {
        ops: 0,
        are_more: 0,
        meanwhile: Meanwhile { fetched_pages: pages, ..Meanwhile::NONE },
    };
    if number != NO_CALL {
        let op = if is_uring(number) { op::URING_READ } else { op::OTHER };
        count(cpu, device, op, block, besides);
        return;
    }
    let id = id_of(&inode, device);
    // SAFETY: as above; a page fault is no call, so that nobody else needs the place meanwhile.
    let before = unsafe { *begun };
    let major: u64 = load(task, TASK_MAJ_FLT);
    let is_first =
        before.tag != tag(pid, FAULT) || before.switches != major || before.file.inode != id.inode;
    besides.ops = is_first.into();
    besides.are_more = u64::from(if is_first { pages > 1 } else { before.pages == 1 });
    let already = if is_first { 0 } else { before.pages };
    // SAFETY: as above.
    unsafe {
        *begun = InFlight {
            tag: tag(pid, FAULT),
            cell: before.cell,
            file: id,
            system: block,
            start_ns: 0,
            switches: major,
            device_bytes: 0,
            pages: already + pages,
            pauses: 0,
            paused_ticks: 0,
        };
    }
    // SAFETY: has no preconditions.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    files::count_fault(cpu, id, pid, now_ns, is_first, besides.meanwhile.fetched_bytes());
    count(cpu, device, op::MMAP, block, besides);
}

#[inline(always)]
fn count(cpu: *mut IoCpu, device: u32, op: u32, block: u64, besides: Besides) {
    let key = IoKey { device, op: op as u16, error: 0 };
    // SAFETY: this CPU's own.
    unsafe { count_besides(cpu, key.word(), block, &besides) };
}

/// Whether `task` is in a copy, call `number`, to the file whose inode is at `address`: its pages are no misses.
#[inline(always)]
fn is_written(task: Kernel, number: u32, address: u64) -> bool {
    let call = call_at(task, number);
    let descriptor = match call.op() {
        op::SENDFILE if call.is_of_32_bits() => argument(task, CALL_FIRST_32),
        op::SENDFILE => argument(task, CALL_FIRST),
        op::SPLICE => argument(task, CALL_THIRD),
        _ => return false,
    };
    let open = file_of_descriptor(task, descriptor);
    if open == 0 {
        return false;
    }
    let own = file(open).field::<u64, _>(FILE_INODE);
    if own == address {
        return true;
    }
    // A file of a system without a device may have its pages on another: that of an overlay in its layer, by its number.
    let (Some(own), Some(other)) = (Inode::at(own), Inode::at(address)) else { return false };
    own.number() == other.number() && device_of(own.system()) >> MINOR_BITS == 0
}

/// The number of the call that `task` is in, [`NO_CALL`] in a page fault; of a worker of io_uring's, the call that
/// submits to it.
#[inline(always)]
fn call_of(task: Kernel) -> u32 {
    if load::<u32, _>(task, TASK_FLAGS) & PF_IO_WORKER != 0 {
        return global(&CALL_URING_ENTER) as u32;
    }
    argument(task, CALL_NUMBER)
}

/// What register `field` held when `task` entered its call.
#[inline(always)]
fn argument<F: Marked>(task: Kernel, field: F) -> u32 {
    if global(&REGISTERS_AT) == 0 {
        // SAFETY: the running task.
        let registers = unsafe { bpf_task_pt_regs(task.cast_mut().cast()) as usize as Kernel };
        load(registers, field)
    } else {
        let stack: u64 = load(task, TASK_STACK);
        word_at(stack + global(&REGISTERS_AT) + global(F::global())) as u32
    }
}

#[inline(always)]
fn is_uring(number: u32) -> bool {
    number == global(&CALL_URING_ENTER) as u32
}
