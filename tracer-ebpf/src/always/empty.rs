//! Programs that do nothing, one for each kind of hook: the floor that `cargo xtask bench` measures
//! beside the real ones. Never loaded otherwise.

use aya_ebpf::{
    macros::{btf_tracepoint, perf_event},
    programs::{BtfTracePointContext, PerfEventContext},
};

/// Floor of sched_switch.
#[btf_tracepoint(function = "sched_switch")]
pub fn empty_switch(_: BtfTracePointContext) -> i32 {
    0
}

/// Floor of block_rq_complete.
#[btf_tracepoint(function = "block_rq_complete")]
pub fn empty_complete(_: BtfTracePointContext) -> i32 {
    0
}

/// Floor of page_fault_user.
#[btf_tracepoint(function = "page_fault_user")]
pub fn empty_fault(_: BtfTracePointContext) -> i32 {
    0
}

/// Floor of a software event.
#[perf_event]
pub fn empty_event(_: PerfEventContext) -> u32 {
    0
}
