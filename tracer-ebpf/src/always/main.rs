//! What the kernel always runs: one program for each hook, one file for each family of hooks, and the maps
//! they fill.
//!
//! Licence: MIT OR Apache-2.0, and GPL-2.0 as the kernel demands of programs that use its helpers.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

#[cfg(target_arch = "bpf")]
mod attach;
#[cfg(target_arch = "bpf")]
mod block;
#[cfg(target_arch = "bpf")]
mod cells;
#[cfg(target_arch = "bpf")]
mod cgroup;
#[cfg(target_arch = "bpf")]
mod counters;
#[cfg(target_arch = "bpf")]
mod current;
#[cfg(target_arch = "bpf")]
mod empty;
#[cfg(target_arch = "bpf")]
mod fault;
// What every object shares is compiled into each: from the library it comes out as other instructions.
#[cfg(target_arch = "bpf")]
#[path = "../file.rs"]
mod file;
#[cfg(target_arch = "bpf")]
#[path = "../kernel.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod net;
#[cfg(target_arch = "bpf")]
#[path = "../record.rs"]
mod record;
#[cfg(target_arch = "bpf")]
mod switch;
#[cfg(target_arch = "bpf")]
mod task;
#[cfg(target_arch = "bpf")]
mod wait;

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
