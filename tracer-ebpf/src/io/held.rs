//! Keeping a task on its CPU. From Linux 7.0 on it may be taken off within a program of a typed tracepoint, and others
//! there would then write to the same cells.

use core::arch::asm;

use tracer_ebpf::{
    kernel_calls::{HOLD, RELEASE},
    settings::globals::HOLDS_CPU,
};

use crate::kernel::global;

/// Does `work` with the running task kept on its CPU, where this kernel lets programs ask for that.
#[inline(always)]
pub fn held(work: impl FnOnce()) {
    let holds = global(&HOLDS_CPU) != 0;
    if holds {
        call::<HOLD>();
    }
    work();
    if holds {
        call::<RELEASE>();
    }
}

#[inline(always)]
fn call<const MARK: i32>() {
    // SAFETY: without arguments; where the agent says that programs may ask for it, the function is there.
    unsafe {
        asm!(
            "call {mark}",
            mark = const MARK,
            lateout("r0") _,
            lateout("r1") _,
            lateout("r2") _,
            lateout("r3") _,
            lateout("r4") _,
            lateout("r5") _,
            options(nostack)
        );
    }
}
