//! What the kernel runs where somebody asks which software jobs run: programs that see what is executed, mapped to be
//! executed, or read by a Python interpreter, and tell each thing once.
//!
//! Licence: MIT OR Apache-2.0, and GPL-2.0 as the kernel demands of programs that use its helpers.
#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

// What every object shares is compiled into each: from the library it comes out as other instructions.
#[cfg(target_arch = "bpf")]
#[path = "../file.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod file;
#[cfg(target_arch = "bpf")]
#[path = "../io/instance.rs"]
mod instance;
#[cfg(target_arch = "bpf")]
mod job;
#[cfg(target_arch = "bpf")]
#[path = "../kernel.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod kernel;
#[cfg(target_arch = "bpf")]
mod mapped;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod modules;
#[cfg(target_arch = "bpf")]
mod names;
#[cfg(target_arch = "bpf")]
mod opens;
#[cfg(target_arch = "bpf")]
mod processes;
#[cfg(target_arch = "bpf")]
mod reads;
#[cfg(target_arch = "bpf")]
#[path = "../record.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod record;
#[cfg(target_arch = "bpf")]
mod sight;
#[cfg(target_arch = "bpf")]
#[path = "../io/task.rs"]
mod task;
#[cfg(target_arch = "bpf")]
#[path = "../io/typed.rs"]
#[allow(dead_code, reason = "of what is shared this object needs a part")]
mod typed;

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
