//! The operations that took longest: each CPU keeps its own, and its longest are kept exactly. A call costs a
//! comparison with the shortest of them; what is kept is read only where one takes its place.

use core::{arch::asm, ptr::read_volatile};

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid,
    generated::{bpf_get_current_comm, bpf_probe_read_kernel, bpf_probe_read_user_str},
};
use tracer_ebpf::{
    io_calls::place,
    tables::{
        io::{IoCpu, op},
        io_file::{FileName, NAME_BYTES},
        io_slow::{NO_OFFSET, SLOWEST, SlowOp, named},
    },
};

use crate::{
    arguments::Arguments,
    files::offset,
    maps::slowest,
    names::{name_of_closed, read_name},
    operation::Operation,
    task::Task,
    typed::file_of_descriptor,
};

/// Keeps `operation`, whose arguments these are, where it is among the longest.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
pub unsafe fn note<T: Task>(cpu: *mut IoCpu, arguments: Arguments, operation: Operation) {
    // SAFETY: the caller's.
    if operation.took_ns() > unsafe { (*cpu).shortest_kept_ns } {
        keep::<T>(cpu, arguments);
    }
}

/// Puts the last operation of `cpu`, this one, in the place of the shortest, and finds the next one that is it.
#[inline(never)]
fn keep<T: Task>(cpu: *mut IoCpu, arguments: Arguments) {
    let Some(kept) = slowest() else { return };
    const _: () = assert!(SLOWEST == 32);
    // SAFETY: this CPU's own; the index is masked where the verifier sees it.
    unsafe {
        let slow = Operation::of_call(cpu);
        let changing = (*kept).changing + 1;
        (&raw mut (*kept).changing).write_volatile(changing);
        let mut shortest = (*kept).shortest;
        asm!("{0} &= 31", inout(reg) shortest, options(pure, nomem, nostack));
        let to = (&raw mut (*kept).ops).cast::<SlowOp>().add(shortest as usize);
        (*to).ended_ns = slow.now_ns();
        (*to).took_ns = slow.took_ns();
        (*to).result = slow.result();
        (*to).file = slow.id();
        (*to).file.device = slow.system().device;
        (*to).call = slow.call().0;
        (*to).has_waited = slow.has_waited().into();
        let ids = bpf_get_current_pid_tgid();
        (*to).thread = ids as u32;
        (*to).process = (ids >> 32) as u32;
        bpf_get_current_comm((&raw mut (*to).program).cast(), 16);
        (*to).offset = match slow.call().op() {
            op::READ | op::WRITE if slow.file() != 0 => offset(slow, arguments),
            _ => NO_OFFSET,
        };
        (*to).named = tell_name::<T>(&raw mut (*to).name, arguments, slow);
        let (mut least_ns, mut at) = (u64::MAX, 0);
        for index in 0..SLOWEST {
            let took_ns = read_volatile(&raw const (*kept).ops[index].took_ns);
            if took_ns < least_ns {
                (least_ns, at) = (took_ns, index);
            }
        }
        (*kept).shortest = at as u64;
        (*cpu).shortest_kept_ns = least_ns;
        (&raw mut (*kept).changed).write_volatile(changing);
    }
}

/// Writes what the operation was on to `to`; what kind of name that is.
///
/// # Safety
/// `to` lies in a map value of this CPU's own.
#[inline(always)]
unsafe fn tell_name<T: Task>(to: *mut FileName, arguments: Arguments, slow: Operation) -> u32 {
    let (mut address, id, call) = (slow.file(), slow.id(), slow.call());
    if address == 0 && id.inode != 0 {
        // SAFETY: the caller's.
        return name_of_closed(&id).map_or(named::NOT, |name| unsafe { copy(to, name) });
    }
    let has_path = matches!(call.place(), place::OPENED | place::PATH | place::STAT | place::STATX);
    if address == 0 && has_path {
        let (path, folder) = arguments.path();
        // SAFETY: this CPU's own; the path is read with all faults caught, to where there is room for so much.
        let read = unsafe {
            let bytes = (&raw mut (*to).bytes).cast();
            bpf_probe_read_user_str(bytes, NAME_BYTES as u32, path as *const _)
        };
        if read > 1 {
            // SAFETY: this CPU's own.
            unsafe { (*to).length = read as u32 };
            return named::PATH;
        }
        // Without a path it is on the folder's descriptor.
        address = file_of_descriptor(T::current(), folder);
    }
    match address {
        0 => named::NOT,
        // SAFETY: the caller's.
        _ => read_name(address).map_or(named::NOT, |name| unsafe { copy(to, name) }),
    }
}

/// Copies a name; gives what kind it is.
///
/// # Safety
/// `to` lies in a map value of this CPU's own.
#[inline(always)]
unsafe fn copy(to: *mut FileName, from: *const FileName) -> u32 {
    // By the helper: LLVM would call a function that copies so much.
    // SAFETY: the caller's; both are as large.
    unsafe { bpf_probe_read_kernel(to.cast(), size_of::<FileName>() as u32, from.cast()) };
    named::FILE
}
