//! Programs that do nothing, at both ends of a call: the floor that `cargo xtask bench` measures beside the real
//! ones. Never loaded otherwise.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};

/// Floor of sys_enter.
#[btf_tracepoint(function = "sys_enter")]
pub fn empty_enter(_: BtfTracePointContext) -> i32 {
    0
}

/// Floor of sys_exit.
#[btf_tracepoint(function = "sys_exit")]
pub fn empty_exit(_: BtfTracePointContext) -> i32 {
    0
}
