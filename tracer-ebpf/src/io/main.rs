//! What the kernel runs on request for one job: a program at the entry of every system call and one at its
//! return count the job's operations on files.
//!
//! Licence: MIT OR Apache-2.0, and GPL-2.0 as the kernel demands of programs that use its helpers.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

#[cfg(target_arch = "bpf")]
mod aio;
#[cfg(target_arch = "bpf")]
mod arguments;
#[cfg(target_arch = "bpf")]
mod calls;
#[cfg(target_arch = "bpf")]
mod cells;
// What every object shares is compiled into each: from the library it comes out as other instructions.
#[cfg(target_arch = "bpf")]
mod fetch;
#[cfg(target_arch = "bpf")]
#[path = "../file.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod file;
#[cfg(target_arch = "bpf")]
mod files;
#[cfg(target_arch = "bpf")]
mod held;
#[cfg(target_arch = "bpf")]
mod inode;
#[cfg(target_arch = "bpf")]
mod instance;
#[cfg(target_arch = "bpf")]
mod job;
#[cfg(target_arch = "bpf")]
#[path = "../kernel.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod lives;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod names;
#[cfg(target_arch = "bpf")]
mod operation;
#[cfg(target_arch = "bpf")]
mod places;
#[cfg(target_arch = "bpf")]
#[path = "../record.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod record;
#[cfg(target_arch = "bpf")]
mod slowest;
#[cfg(target_arch = "bpf")]
mod task;
#[cfg(target_arch = "bpf")]
mod tasks;
#[cfg(target_arch = "bpf")]
mod typed;
#[cfg(target_arch = "bpf")]
mod uring;

#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier refuses any program that could get here.
    loop {}
}

#[cfg(not(target_arch = "bpf"))]
fn main() {
    eprintln!("these programs run in the kernel: build them with `cargo xtask ebpf`");
    std::process::exit(2);
}
