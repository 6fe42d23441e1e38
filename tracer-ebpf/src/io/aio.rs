//! Requests to libaio, where they are submitted: nothing tells of their end but a ring that the program itself reads.

use aya_ebpf::helpers::bpf_probe_read_user;
use tracer_ebpf::tables::io::{IO_SUBMISSIONS, IoCpu, op};

use crate::{
    arguments::Arguments,
    cells::{Submission, submitted},
    kernel::Pointer,
    places::System,
    typed::file_of_descriptor,
};

/// What a request is to do (linux/aio_abi.h).
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// `struct iocb` (linux/aio_abi.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    opcode: u16,
    priority: u16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
}

/// Counts the first `number` requests that the call with these arguments, of `task`, submitted.
#[inline(never)]
pub fn count(cpu: *mut IoCpu, task: impl Pointer, arguments: Arguments, number: u64) -> u64 {
    let list = arguments.third();
    let mut at = 0;
    while at < IO_SUBMISSIONS {
        if at >= number {
            return 0;
        }
        // SAFETY: read with all faults caught.
        let read = unsafe {
            let request = if arguments.are_of_32_bits() {
                bpf_probe_read_user((list + 4 * at) as *const u32).map(u64::from)
            } else {
                bpf_probe_read_user((list + 8 * at) as *const u64)
            };
            request.and_then(|request| bpf_probe_read_user(request as *const Request))
        };
        at += 1;
        let Ok(request) = read else { continue };
        let op = match request.opcode {
            PREAD | 7 => op::AIO_READ,
            PWRITE | 8 => op::AIO_WRITE,
            FSYNC | FDSYNC => op::AIO_FSYNC,
            _ => continue,
        };
        // Of vectors there is a number where the bytes are.
        let bytes = if request.opcode <= PWRITE { request.bytes } else { 0 };
        let system = System::of_file(file_of_descriptor(task, request.descriptor));
        submitted(cpu, &Submission { op, bytes, system });
    }
    // SAFETY: this CPU's own.
    unsafe { (*cpu).no_aio += number - IO_SUBMISSIONS };
    0
}
