//! What a process has mapped to be executed, looked at before it gives that up: on kernels that let nobody meet a mapping.
//! What a file system reads past the page cache (tmpfs) is seen here alone; what was closed again (`dlclose`) is not.

use core::arch::asm;

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use tracer_ebpf::{
    kernel_calls::{NEXT_MAPPING, NO_MORE_MAPPINGS, TO_MAPPINGS},
    kernel_fields::fields::*,
    tables::census::{LookedKey, means},
};

use crate::{
    job::Job,
    kernel::{Kernel, load},
    maps::LOOKED,
    sight::{Program, id_of, library},
};

/// VM_EXEC (linux/mm.h).
const EXECUTABLE: u64 = 4;
/// PF_FORKNOEXEC (linux/sched.h): it is what it was forked as.
const FORKED: u32 = 0x40;

/// A task ended. Kernels that tell whether it was the last of its process tell it while it has its memory (6.16 on).
#[btf_tracepoint(function = "sched_process_exit")]
pub fn census_exit_maps(ctx: BtfTracePointContext) -> i32 {
    if ctx.arg::<u64>(1) & 1 != 0 { look(ctx.arg(0)) } else { 0 }
}

/// A task is about to execute another program.
#[btf_tracepoint(function = "sched_prepare_exec")]
pub fn census_exec_maps(ctx: BtfTracePointContext) -> i32 {
    let task: Kernel = ctx.arg(0);
    // What it had mapped as it was forked its parent has; the first one in a job has that of who starts jobs.
    if load::<u32, _>(task, TASK_FLAGS) & FORKED == 0 { look(task) } else { 0 }
}

/// Tells of what `task` has mapped, unless another process of its program was looked through that had as much and nothing
/// new: what it has is the same. (Not so where it has another library in place of one, of as many pages.)
#[inline(always)]
fn look(task: Kernel) -> i32 {
    let Some(job) = Job::of(task) else { return 0 };
    let Some(program) = Program::of(task) else { return 0 };
    let memory: Kernel = load(task, TASK_MM);
    let key = LookedKey {
        lease: job.lease,
        mappings: load(memory, MM_MAPPINGS),
        program: program.id,
        pages: load(memory, MM_EXECUTABLE_PAGES),
    };
    if LOOKED.get_ptr(&key).is_some() {
        return 0;
    }
    if look_through(task, job, program) {
        // Where that fails the next one is looked through again.
        let _ = LOOKED.insert(&key, &1, 0);
    }
    0
}

/// Tells of all that `task` has mapped. Whether all was known already.
#[inline(always)]
fn look_through(task: Kernel, job: Job, program: Program) -> bool {
    let mut are_known = true;
    let mut place = 0_u64;
    let mappings = &raw mut place;
    if call::<TO_MAPPINGS>(mappings, task as u64) & 0xffff_ffff != 0 {
        job.lose();
        are_known = false;
    }
    loop {
        let mapping = call::<NEXT_MAPPING>(mappings, 0) as usize as Kernel;
        if mapping.is_null() {
            break;
        }
        if load::<u64, _>(mapping, VMA_FLAGS) & EXECUTABLE == 0 {
            continue;
        }
        let file: Kernel = load(mapping, VMA_FILE);
        if file.is_null() {
            continue;
        }
        let id = id_of(load::<Kernel, _>(file, FILE_INODE));
        if id == program.id {
            continue;
        }
        are_known &= library(program, job, id, load(file, FILE_DENTRY), means::MAPPED);
    }
    call::<NO_MORE_MAPPINGS>(mappings, 0);
    are_known
}

/// Calls the kernel's function that `MARK` stands for.
#[inline(always)]
fn call<const MARK: i32>(mappings: *mut u64, task: u64) -> u64 {
    let result: u64;
    // SAFETY: the verifier holds the arguments against the function's.
    unsafe {
        asm!(
            "call {mark}",
            mark = const MARK,
            lateout("r0") result,
            inlateout("r1") mappings => _,
            inlateout("r2") task => _,
            inlateout("r3") 0_u64 => _,
            lateout("r4") _,
            lateout("r5") _,
            options(nostack)
        );
    }
    result
}
