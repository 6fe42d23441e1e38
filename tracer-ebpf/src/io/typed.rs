//! A kernel's struct by its address. Where this kernel has `bpf_rdonly_cast` (6.2 on), the verifier takes the address
//! for one of that type: a field is one load, whose faults read as zero. Elsewhere a helper copies it.

use core::arch::asm;

use tracer_ebpf::{
    kernel_calls::CAST,
    kernel_fields::{Marked, fields::*},
    settings::globals::{CAST_TO_FILE, CAST_TO_LIST, CAST_TO_SUPER, CAST_TO_WORDS},
};

use crate::{
    file,
    kernel::{Kernel, Pointer, Word, global, load},
};

/// A struct of a type that the verifier knows, or its mere address.
#[derive(Clone, Copy)]
pub struct Typed {
    address: u64,
    /// Null where this kernel casts nothing.
    typed: Kernel,
}

impl Typed {
    /// The struct at `address`; the number of its type is in the global `type_id`.
    #[inline(always)]
    pub fn at(address: u64, type_id: &'static u64) -> Self {
        if !casts() {
            return Self { address, typed: core::ptr::null() };
        }
        let typed: Kernel;
        // SAFETY: the function has no effect, and where the types have numbers it is there.
        unsafe {
            asm!(
                "call {mark}",
                mark = const CAST,
                inlateout("r1") address => _,
                inlateout("r2") global(type_id) => _,
                lateout("r0") typed,
                lateout("r3") _,
                lateout("r4") _,
                lateout("r5") _,
                options(pure, nomem, nostack)
            );
        }
        Self { address, typed }
    }

    /// Its address.
    #[inline(always)]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its field `F`; what follows a small one may come with it.
    #[inline(always)]
    pub fn field<T: Word + Into<u64>, F: Marked>(&self, field: F) -> u64 {
        if casts() {
            load::<T, F>(self.typed, field).into()
        } else {
            file::word_at(self.address + global(F::global()))
        }
    }
}

/// Whether this kernel gives types to addresses.
#[inline(always)]
pub fn casts() -> bool {
    global(&CAST_TO_LIST) != 0
}

/// The word at `address` of the kernel; 0 where it cannot be read. Taken for one of a set of CPUs, it is no pointer.
#[inline(always)]
pub fn word_at(address: u64) -> u64 {
    Typed::at(address, &CAST_TO_WORDS).field::<u64, _>(CPUMASK_BITS)
}

/// The open file at `address`.
#[inline(always)]
pub fn file(address: u64) -> Typed {
    Typed::at(address, &CAST_TO_FILE)
}

/// Address of the open file that `task` has as `descriptor`; 0 where it has none.
#[inline(always)]
pub fn file_of_descriptor<P: Pointer>(task: P, descriptor: u32) -> u64 {
    let table: P = load(load::<P, _>(task, TASK_FILES), FILES_TABLE);
    if descriptor >= load::<u32, _>(table, FILES_MOST) {
        return 0;
    }
    let place = load::<u64, _>(table, FILES_FILES) + 8 * u64::from(descriptor);
    // What is there is a pointer; so is what a list begins with.
    Typed::at(place, &CAST_TO_LIST).field::<u64, _>(LIST_NEXT)
}

/// The device of the super block at `address`.
#[inline(always)]
pub fn device_of(address: u64) -> u32 {
    Typed::at(address, &CAST_TO_SUPER).field::<u32, _>(SUPER_DEVICE) as u32
}
