//! The operations that took longest: each CPU keeps its own, and its longest are kept exactly. A call costs a
//! comparison with the shortest of them; what is kept is read only where one takes its place.

use core::{arch::asm, ptr::read_volatile};

use aya_ebpf::helpers::{
    bpf_get_current_pid_tgid,
    generated::{bpf_get_current_comm, bpf_probe_read_kernel, bpf_probe_read_user_str},
};
use tracer_ebpf::{
    io_calls::{IoCall, place},
    kernel_fields::fields::*,
    tables::{
        io::{IoCpu, op},
        io_file::{FileName, NAME_BYTES},
        io_slow::{NO_OFFSET, SLOWEST, SlowOp, named},
    },
};

use crate::{
    cells::Operation,
    files::{File, offset},
    kernel::{Kernel, load},
    maps::slowest,
    names::{name_of_closed, read_name},
    places::Place,
    task::Task,
    typed::file_of_descriptor,
};

/// An operation that is kept.
struct Slow {
    took_ns: u64,
    ended_ns: u64,
    result: i64,
    file: File,
    device: u32,
    call: IoCall,
    has_waited: bool,
}

/// Keeps `operation` of `call`, whose registers these are, at `place` where it is among the longest.
///
/// # Safety
/// `cpu` is this CPU's own.
#[inline(always)]
pub unsafe fn note<T: Task>(
    cpu: *mut IoCpu,
    place: &Place,
    call: IoCall,
    registers: Kernel,
    operation: &Operation,
) {
    let took_ns = operation.took_ns.unwrap_or(0);
    // SAFETY: the caller's.
    if took_ns <= unsafe { (*cpu).shortest_kept_ns } {
        return;
    }
    let slow = Slow {
        took_ns,
        ended_ns: operation.now_ns,
        result: operation.result,
        file: place.file,
        device: place.system.device,
        call,
        has_waited: operation.has_waited,
    };
    keep::<T>(cpu, registers, &slow);
}

/// Puts `slow` in the place of the shortest, and finds the next one that is it.
#[inline(never)]
fn keep<T: Task>(cpu: *mut IoCpu, registers: Kernel, slow: &Slow) {
    let Some(kept) = slowest() else { return };
    const _: () = assert!(SLOWEST == 32);
    // SAFETY: this CPU's own; the index is masked where the verifier sees it.
    unsafe {
        let changing = (*kept).changing + 1;
        (&raw mut (*kept).changing).write_volatile(changing);
        let mut shortest = (*kept).shortest;
        asm!("{0} &= 31", inout(reg) shortest, options(pure, nomem, nostack));
        let to = (&raw mut (*kept).ops).cast::<SlowOp>().add(shortest as usize);
        (*to).ended_ns = slow.ended_ns;
        (*to).took_ns = slow.took_ns;
        (*to).result = slow.result;
        (*to).file = slow.file.id;
        (*to).file.device = slow.device;
        (*to).call = slow.call.0;
        (*to).has_waited = slow.has_waited.into();
        let ids = bpf_get_current_pid_tgid();
        (*to).thread = ids as u32;
        (*to).process = (ids >> 32) as u32;
        bpf_get_current_comm((&raw mut (*to).program).cast(), 16);
        (*to).offset = match slow.call.op() {
            op::READ | op::WRITE if slow.file.address != 0 => {
                let moved = if slow.result > 0 { slow.result as u64 } else { 0 };
                offset(slow.call, registers, slow.file.address, moved)
            }
            _ => NO_OFFSET,
        };
        (*to).named = tell_name::<T>(&raw mut (*to).name, registers, slow);
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
unsafe fn tell_name<T: Task>(to: *mut FileName, registers: Kernel, slow: &Slow) -> u32 {
    let mut address = slow.file.address;
    if address == 0 && slow.file.id.inode != 0 {
        // SAFETY: the caller's.
        return name_of_closed(&slow.file.id).map_or(named::NOT, |name| unsafe { copy(to, name) });
    }
    let has_path =
        matches!(slow.call.place(), place::OPENED | place::PATH | place::STAT | place::STATX);
    if address == 0 && has_path {
        let path: u64 = match slow.call.is_at() {
            true => load(registers, CALL_SECOND),
            false => load(registers, CALL_FIRST),
        };
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
        if slow.call.is_at() {
            address = file_of_descriptor(T::current(), load(registers, CALL_FIRST));
        }
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
