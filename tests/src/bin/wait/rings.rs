//! Completions that never come: io_uring, and the kernel's older asynchronous I/O.

use std::{io, mem::zeroed};

use jobtrace_tests::work::off_cpu_ns;

use super::{
    Amount, Cause, Waited,
    alone::{ended_with, timespec},
};

pub const CAUSES: &[Cause] = &[("ring", ring), ("aio", aio)];

/// `io_uring_params`: 30 words, of which none is needed.
const PARAMETERS: usize = 30;
/// Flags of io_uring_enter: wait, and the argument holds a time (Linux 5.11).
const GETEVENTS: u32 = 1;
const EXT_ARG: u32 = 8;

/// `io_uring_getevents_arg`.
#[repr(C)]
struct Until {
    mask: u64,
    mask_bytes: u32,
    padding: u32,
    time: *const libc::timespec,
}

fn ring(amount: &Amount) -> Waited {
    let mut parameters = [0_u32; PARAMETERS];
    // SAFETY: parameters of ours.
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()) };
    assert!(
        ring >= 0,
        "io_uring_setup: {}: is kernel.io_uring_disabled set?",
        io::Error::last_os_error()
    );
    let time = timespec(amount.time);
    let until = Until { mask: 0, mask_bytes: 0, padding: 0, time: &time };
    let off = off_cpu_ns(|| {
        for _ in 0..amount.count {
            // SAFETY: a ring and an argument of ours.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_io_uring_enter,
                    ring,
                    0,
                    1,
                    GETEVENTS | EXT_ARG,
                    &raw const until,
                    size_of::<Until>(),
                )
            };
            ended_with(libc::ETIME, result);
        }
    });
    // SAFETY: ours.
    unsafe { libc::close(ring as i32) };
    off.into()
}

fn aio(amount: &Amount) -> Waited {
    let mut context = 0_u64;
    // SAFETY: a word of ours.
    let made = unsafe { libc::syscall(libc::SYS_io_setup, 4, &raw mut context) };
    assert_eq!(made, 0, "io_setup: {}", io::Error::last_os_error());
    let time = timespec(amount.time);
    let off = off_cpu_ns(|| {
        for _ in 0..amount.count {
            // SAFETY: room for one event, and a time of ours.
            let result = unsafe {
                let mut event: [u64; 4] = zeroed();
                let event = event.as_mut_ptr();
                libc::syscall(libc::SYS_io_getevents, context, 1_usize, 1_usize, event, &time)
            };
            assert_eq!(result, 0, "io_getevents: {}", io::Error::last_os_error());
        }
    });
    // It waits until no CPU can use the context any more.
    let apart_ns = off_cpu_ns(|| {
        // SAFETY: ours.
        unsafe { libc::syscall(libc::SYS_io_destroy, context) };
    });
    Waited { apart_ns, ..off.into() }
}
