//! Reading the kernel's structs through BTF pointers, at offsets that the agent supplies.

use core::ptr::read_volatile;

use tracer_ebpf::{
    kernel_fields::{MISSING, globals::*},
    settings,
};

/// A pointer the verifier knows to be a kernel struct's; a bad one reads as zeros.
pub type Kernel = *const u8;

/// Value of a global the agent has set.
#[inline(always)]
pub fn global(global: &'static u64) -> u64 {
    // SAFETY: a reference is always readable; volatile, because the value here is not the one at run
    // time.
    unsafe { read_volatile(global) }
}

/// Whether this kernel has the field. The verifier cuts the branch not taken.
#[inline(always)]
pub fn has(field: &'static u64) -> bool {
    global(field) != MISSING
}

/// Reads the field at the offset in `field` of the struct at `base`.
#[inline(always)]
pub fn load<T: Copy>(base: Kernel, field: &'static u64) -> T {
    // SAFETY: the verifier has `base` typed by BTF and checks the offset; faults read as zero.
    unsafe { read_volatile(base.add(global(field) as usize).cast::<T>()) }
}

/// Reads a bit field of one bit.
#[inline(always)]
pub fn load_bit(base: Kernel, field: &'static u64) -> bool {
    let place = global(field);
    // SAFETY: as in `load`.
    let byte = unsafe { read_volatile(base.add((place >> 8) as usize)) };
    u64::from(byte) & place & 0xff != 0
}

/// Id of a cgroup: the inode of its directory.
#[inline(always)]
pub fn cgroup_id(cgroup: Kernel) -> u64 {
    load(load(cgroup, &CGROUP_KN), &KERNFS_ID)
}

/// Id of the cgroup that a task is in, in the hierarchy that jobs are told apart by.
#[inline(always)]
pub fn task_cgroup_id(task: Kernel) -> u64 {
    let set: Kernel = load(task, &TASK_CGROUPS);
    if global(&settings::globals::TASKS_IN_V1) != 0 {
        let index = global(&settings::globals::TASKS_SUBSYS) as usize;
        let place = global(&CSS_SET_SUBSYS) as usize + index * size_of::<usize>();
        // SAFETY: as in `load`; `index` is one of the kernel's own enum.
        let css: Kernel = unsafe { read_volatile(set.add(place).cast()) };
        cgroup_id(load(css, &CSS_CGROUP))
    } else {
        cgroup_id(load(set, &CSS_SET_DFL_CGRP))
    }
}

/// The clock of the run queue that `task` is on.
#[inline(always)]
pub fn run_queue_clock(task: Kernel) -> u64 {
    let cfs_rq: Kernel = load(task, &TASK_CFS_RQ);
    let rq: Kernel = load(cfs_rq, &CFS_RQ_RQ);
    load(rq, &RQ_CLOCK)
}
