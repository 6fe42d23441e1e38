//! Reading the kernel's structs through BTF pointers, at offsets that the agent supplies.

use core::{arch::asm, ptr::read_volatile};

use aya_ebpf::helpers::bpf_probe_read_kernel;
use tracer_ebpf::{
    kernel_fields::{MISSING, Marked, fields::*},
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

/// What a program knows a kernel struct by.
pub trait Pointer: Word {
    /// Reads the field `F` of the struct.
    fn field<T: Word, F: Marked>(self) -> T;

    /// Where it is; 0 where there is none.
    fn address(self) -> u64;
}

impl Pointer for Kernel {
    #[inline(always)]
    fn field<T: Word, F: Marked>(self) -> T {
        T::load::<F>(self)
    }

    #[inline(always)]
    fn address(self) -> u64 {
        self as u64
    }
}

/// A value that is loaded in one instruction.
pub trait Word: Copy {
    /// Loads the field `F` of the struct at `base`.
    fn load<F: Marked>(base: Kernel) -> Self;

    /// The value at the beginning of a word of memory.
    fn of_word(word: u64) -> Self;
}

macro_rules! word {
    ($($word:ty = $instruction:literal),*) => {
        $(impl Word for $word {
            #[inline(always)]
            fn load<F: Marked>(base: Kernel) -> Self {
                let value: u64;
                // SAFETY: the verifier has `base` typed by BTF and checks the offset; faults read as zero.
                unsafe {
                    asm!(
                        $instruction,
                        value = lateout(reg) value,
                        base = in(reg) base,
                        mark = const F::MARK,
                        options(pure, readonly, nostack)
                    );
                }
                value as Self
            }

            #[inline(always)]
            fn of_word(word: u64) -> Self {
                word as Self
            }
        })*
    };
}

word! {
    u64 = "{value} = *(u64 *)({base} + {mark})",
    Kernel = "{value} = *(u64 *)({base} + {mark})",
    u32 = "{value} = *(u32 *)({base} + {mark})",
    u16 = "{value} = *(u16 *)({base} + {mark})",
    u8 = "{value} = *(u8 *)({base} + {mark})"
}

/// Reads `field` of the struct at `base`.
#[inline(always)]
pub fn load<T: Word, F: Marked>(base: impl Pointer, _: F) -> T {
    base.field::<T, F>()
}

/// The word behind the address `base`, which need not be of a struct that the verifier knows, at the offset that
/// the global of a field holds; 0 where there is none.
#[inline(always)]
pub fn probed(base: u64, field: &'static u64) -> u64 {
    // SAFETY: read with all faults caught.
    unsafe { bpf_probe_read_kernel((base + global(field)) as *const u64) }.unwrap_or(0)
}

/// Reads a bit field of one bit, whose global is `place`.
#[inline(always)]
pub fn load_bit(base: Kernel, field: impl Marked, place: &'static u64) -> bool {
    u64::from(load::<u8, _>(base, field)) & global(place) & 0xff != 0
}

/// Id of a cgroup: the inode of its directory.
#[inline(always)]
pub fn cgroup_id(cgroup: Kernel) -> u64 {
    load(load::<Kernel, _>(cgroup, CGROUP_KN), KERNFS_ID)
}

/// The cgroup that a task is in, in the hierarchy that jobs are told apart by.
#[inline(always)]
pub fn task_cgroup(task: Kernel) -> Kernel {
    let set: Kernel = load(task, TASK_CGROUPS);
    if global(&settings::globals::TASKS_IN_V1) != 0 {
        let css: Kernel = load(set, CSS_SET_SUBSYS);
        load(css, CSS_CGROUP)
    } else {
        load(set, CSS_SET_DFL_CGRP)
    }
}

/// Its id.
#[inline(always)]
pub fn task_cgroup_id(task: Kernel) -> u64 {
    cgroup_id(task_cgroup(task))
}

/// The clock of the run queue that `task` is on.
#[inline(always)]
pub fn run_queue_clock(task: Kernel) -> u64 {
    let cfs_rq: Kernel = load(task, TASK_CFS_RQ);
    let rq: Kernel = load(cfs_rq, CFS_RQ_RQ);
    load(rq, RQ_CLOCK)
}
