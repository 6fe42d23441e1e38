//! What the kernel runs.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
#[cfg(not(target_arch = "bpf"))]
fn main() {
    eprintln!("these programs run in the kernel: build them with `cargo xtask ebpf`");
    std::process::exit(2);
}
