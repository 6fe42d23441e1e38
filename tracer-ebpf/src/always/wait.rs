//! What a task waits for, from the registers that it entered the kernel with: the call it sleeps or is
//! blocked in, and where it is blocked on a file, that file's system.

use core::{
    arch::asm,
    ptr::{addr_of_mut, read_volatile},
};

use aya_ebpf::helpers::{bpf_probe_read_kernel, generated::bpf_task_pt_regs};
use tracer_ebpf::{
    calls::{CALLS as CALLS_KNOWN, Call, Calls, NO_CALL, OTHER, file},
    kernel_fields::{fields::*, globals},
    records::left,
    settings::{
        globals::{COMPAT_BITS, REGISTERS_AT, WAITS},
        waits,
    },
    tables::{
        job::JobBank,
        wait::{FILE_CALLS, WaitKey, Waits, blocked, sleep},
    },
};

use crate::{
    cells::{Table, cell},
    file::{file_of_descriptor, inode_of_file, word_at},
    kernel::{Kernel, global, has, load, load_bit},
    maps::{WaitCells, cpu_record},
    record::{file as file_in, file_shared},
};

/// What each call waits for; the agent fills it, for this machine's numbers.
#[unsafe(no_mangle)]
pub static CALLS: Calls = [OTHER.0 as u16; CALLS_KNOWN];

/// The kernel's `state` of a task (`include/linux/sched.h`): stopped, traced, frozen.
const TASK_HELD: u32 = 0x4 | 0x8 | 0x8000;
/// Its `flags`: exiting; waiting for others of its process to be dumped, then exiting (from 5.16 on, unused
/// before); a worker of io_uring, which has the registers of the task that made it; frozen, on
/// kernels below 6.1; a thread of the kernel, which has none.
const PF_EXITING: u32 = 0x4;
const PF_POSTCOREDUMP: u32 = 0x8;
const PF_IO_WORKER: u32 = 0x10;
const PF_FROZEN: u32 = 0x1_0000;
const PF_KTHREAD: u32 = 0x20_0000;
/// The kind of file in an inode's `i_mode`, and those of a regular file and of a pipe.
const S_IFMT: u64 = 0o170_000;
const S_IFREG: u64 = 0o100_000;
const S_IFIFO: u64 = 0o010_000;

/// A sleep in a plain read or write, as [`left`] holds it: which file it was of, nobody has asked.
const IN_PIPE: u32 = left::ASLEEP | sleep::PIPE << left::CAUSE_SHIFT;
/// After so long a sleep its file is asked for, which takes 100 ns; but below the other bound, where the task's
/// last one was not of a regular file, for one in [`ASKED_OF`] alone.
const ASKED_FROM_NS: u64 = 10_000;
const ALWAYS_ASKED_FROM_NS: u64 = 1_000_000;
const ASKED_OF: u64 = 16;

/// Whether `task` is a thread of the kernel.
#[inline(always)]
pub fn is_kernels(task: Kernel) -> bool {
    load::<u32, _>(task, TASK_FLAGS) & PF_KTHREAD != 0
}

/// What `task`, of `slot`, falls asleep for, as [`left`] holds it, with what it had `kept` so far.
#[inline(always)]
pub fn asleep_for(task: Kernel, state: u32, slot: u32, kept: u32) -> u32 {
    if global(&WAITS) == waits::OFF {
        return 0;
    }
    let frozen = has(&globals::TASK_FROZEN) && load_bit(task, TASK_FROZEN, &globals::TASK_FROZEN);
    if state & TASK_HELD != 0 || frozen {
        return sleep::STOPPED << left::CAUSE_SHIFT | kept;
    }
    let flags: u32 = load(task, TASK_FLAGS);
    if flags & (PF_KTHREAD | PF_IO_WORKER) != 0 {
        let cause = if flags & PF_IO_WORKER != 0 { sleep::RING } else { sleep::OTHER };
        return cause << left::CAUSE_SHIFT;
    }
    let call = call_of(task);
    let mut cell = 0;
    if call.is_file_asleep() {
        cell = cell_of(task, slot, call.0);
    }
    let mut cause = call.sleep();
    if call.is_resumed() && kept & left::LAST != 0 {
        cause = (kept >> left::LAST_SHIFT) - 1;
    }
    let kept = kept & left::NO_FILE | (cause + 1) << left::LAST_SHIFT;
    kept | cause << left::CAUSE_SHIFT | cell << left::CELL_SHIFT
}

/// What `task`, of `slot`, is blocked for, as [`left`] holds it.
#[inline(always)]
pub fn blocked_for(task: Kernel, slot: u32) -> u32 {
    if global(&WAITS) == waits::OFF {
        return 0;
    }
    let flags: u32 = load(task, TASK_FLAGS);
    let exit = PF_EXITING | PF_POSTCOREDUMP;
    let own = exit | PF_IO_WORKER | PF_FROZEN | PF_KTHREAD;
    if flags & own != 0 {
        let is_exit = flags & own & !exit == 0;
        let cause = if is_exit { blocked::EXIT } else { blocked::OTHER };
        return cause << left::CAUSE_SHIFT;
    }
    let mut call = call_of(task);
    if call.may_be_out_of_pipe() {
        call = Call(spliced(task, call.0));
    }
    let mut cell = 0;
    if (call.blocked() as usize) < FILE_CALLS.len() {
        cell = cell_of(task, slot, call.0);
    }
    call.blocked() << left::CAUSE_SHIFT | cell << left::CELL_SHIFT
}

/// How `task`, of `slot`, waited, which enters its CPU after `ns` nanoseconds and left it as `how` says: a plain
/// read or write that slept is told from one of a pipe by its file.
#[inline(always)]
pub fn waited_for(task: Kernel, how: u32, slot: u32, ns: u64) -> u32 {
    let is_plain = (how & !left::KEPT) == IN_PIPE;
    if !is_plain || ns < ASKED_FROM_NS {
        return how;
    }
    let is_asked = ns >= ALWAYS_ASKED_FROM_NS || how & left::NO_FILE == 0 || ns % ASKED_OF == 0;
    if is_asked { asleep_on_file(task, how, slot) } else { how }
}

/// `how`, but for a regular file that of a sleep for its file system.
#[inline(never)]
fn asleep_on_file(task: Kernel, how: u32, slot: u32) -> u32 {
    if global(&WAITS) != waits::FILES {
        return how;
    }
    let call = call_of(task);
    let inode = if call.may_be_file_asleep() { inode_of(task, call.file()) } else { 0 };
    if word_at(inode + global(&globals::INODE_MODE)) & S_IFMT != S_IFREG {
        return how | left::NO_FILE;
    }
    let cell = cell_of(task, slot, call.0);
    left::ASLEEP | sleep::OTHER << left::CAUSE_SHIFT | cell << left::CELL_SHIFT | how & left::LAST
}

/// Files a wait of `ns` nanoseconds of a task that left its CPU as `how` says and is in `slot` now. One
/// that moved to another job meanwhile is in no file system's cell.
///
/// # Safety
/// `bank` is this CPU's own.
#[inline(always)]
pub unsafe fn file_wait(bank: *mut JobBank, how: u32, slot: u32, ns: u64) {
    let asleep = left::how(how) == left::ASLEEP;
    // SAFETY: the caller's. A cause is below 16, and so many from either array on lie within the bank.
    unsafe {
        let hist =
            if asleep { addr_of_mut!((*bank).sleep_ns) } else { addr_of_mut!((*bank).blocked_ns) };
        file_in(hist, ns);
        if global(&WAITS) == waits::OFF {
            return;
        }
        let cause = (how >> left::CAUSE_SHIFT & 0xf) as usize;
        let of = if asleep {
            addr_of_mut!((*bank).sleeps).cast::<Waits>()
        } else {
            addr_of_mut!((*bank).blocks).cast::<Waits>()
        };
        let of = of.add(cause);
        (*of).count += 1;
        (*of).ns += ns;
    }
    if left::cell(how) != 0 {
        file_in_cell(left::cell(how) - 1, slot, ns);
    }
}

/// Files a wait in cell `number`, if that is still one of `slot`.
#[inline(never)]
fn file_in_cell(number: u32, slot: u32, ns: u64) -> u32 {
    let Some(cell) = WaitCells::cell(number) else { return 0 };
    // SAFETY: a cell of the map, shared by all CPUs.
    unsafe {
        let of = WaitKey::of_word((*cell).key).map_or(u32::MAX, |key| key.slot.into());
        if of == slot {
            let (ends, buckets) = (&raw mut (*cell).blocked_ends, &raw mut (*cell).blocked_buckets);
            file_shared(ends, buckets, ns);
        } else if let Some(cpu) = cpu_record() {
            (*cpu).wait_full += 1;
        }
    }
    0
}

/// The call that `task`, which leaves or enters this CPU, is in.
#[inline(always)]
fn call_of(task: Kernel) -> Call {
    // Where a call has the number of another machine (32 bits), its number says nothing.
    let compat = u64::from(load::<u32, _>(task, TASK_COMPAT)) & global(&COMPAT_BITS);
    let number = if global(&REGISTERS_AT) == 0 {
        load::<u32, _>(registers(task), CALL_NUMBER)
    } else {
        in_stack(task, global(&globals::CALL_NUMBER))
    };
    if number == u32::MAX {
        return NO_CALL;
    }
    if compat != 0 || number as usize >= CALLS_KNOWN {
        return OTHER;
    }
    const _: () = assert!(CALLS_KNOWN == 512);
    let mut index = u64::from(number);
    // SAFETY: masks a register, which the verifier must see; the index is then within the table.
    unsafe {
        asm!("{0} &= 511", inout(reg) index, options(pure, nomem, nostack));
        Call(read_volatile(CALLS.as_ptr().add(index as usize)).into())
    }
}

/// The registers of `task`.
#[inline(always)]
fn registers(task: Kernel) -> Kernel {
    // SAFETY: a task of the kernel's.
    unsafe { bpf_task_pt_regs(task.cast_mut().cast()) as usize as Kernel }
}

/// The low half of the register at `offset`, from the stack of `task`.
#[inline(never)]
fn in_stack(task: Kernel, offset: u64) -> u32 {
    let at = load::<u64, _>(task, TASK_STACK) + global(&REGISTERS_AT) + offset;
    // SAFETY: a failed read is no call.
    unsafe { bpf_probe_read_kernel(at as *const u32) }.unwrap_or(u32::MAX)
}

/// The word of `task`'s call, of word `call`, a splice: one out of a pipe writes what its third argument describes.
#[inline(never)]
fn spliced(task: Kernel, call: u32) -> u32 {
    if global(&WAITS) != waits::FILES {
        return call;
    }
    let inode = inode_of(task, file::FIRST);
    if word_at(inode + global(&globals::INODE_MODE)) & S_IFMT != S_IFIFO {
        return call;
    }
    Call::new(sleep::PIPE, blocked::WRITE, file::THIRD).0
}

/// The cell, one more than its number, in which the waits of `task`, of `slot`, in the call of word `call` are filed;
/// 0 for none.
#[inline(never)]
fn cell_of(task: Kernel, slot: u32, call: u32) -> u32 {
    if global(&WAITS) != waits::FILES {
        return 0;
    }
    let call = Call(call);
    let inode = inode_of(task, call.file());
    let system = if inode == 0 { 0 } else { word_at(inode + global(&globals::INODE_SUPER)) };
    let device =
        if system == 0 { 0 } else { word_at(system + global(&globals::SUPER_DEVICE)) as u32 };
    let key = WaitKey { slot: slot as u16, call: call.blocked() as u16, device };
    let Some((number, cell)) = cell::<WaitCells>(key.word()) else {
        if let Some(cpu) = cpu_record() {
            // SAFETY: this CPU's own record.
            unsafe { (*cpu).wait_full += 1 };
        }
        return 0;
    };
    // SAFETY: a cell of the map; all that write it write the same.
    unsafe {
        if system != 0 && (*cell).magic == 0 {
            (*cell).magic = word_at(system + global(&globals::SUPER_MAGIC));
        }
    }
    number + 1
}

/// Address of the inode of the file that the argument of the call of `task` describes; 0 where there is none.
#[inline(always)]
fn inode_of(task: Kernel, argument: u32) -> u64 {
    if argument == file::NONE {
        return 0;
    }
    let descriptor = if global(&REGISTERS_AT) != 0 {
        let global_of = match argument {
            file::FIRST => &globals::CALL_FIRST,
            file::SECOND => &globals::CALL_SECOND,
            _ => &globals::CALL_THIRD,
        };
        in_stack(task, global(global_of))
    } else {
        match argument {
            file::FIRST => load::<u32, _>(registers(task), CALL_FIRST),
            file::SECOND => load::<u32, _>(registers(task), CALL_SECOND),
            _ => load::<u32, _>(registers(task), CALL_THIRD),
        }
    };
    inode_of_file(file_of_descriptor(task, descriptor))
}
