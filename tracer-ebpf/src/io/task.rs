//! The running task. From Linux 5.11 on a helper gives it with its type, and its fields are loaded; before that its
//! address alone is known, and each field is read. The programs are built for both: on the way of each call nothing
//! is decided.

use aya_ebpf::helpers::generated::{bpf_get_current_task, bpf_get_current_task_btf};
use tracer_ebpf::{
    kernel_fields::{Marked, fields::*},
    settings::globals::TASKS_IN_V1,
};

use crate::{
    file::word_at,
    kernel::{Kernel, Pointer, Word, global, load},
};

/// What the running task is known by.
pub trait Task: Pointer {
    /// The running task.
    fn current() -> Self;
}

impl Task for Kernel {
    #[inline(always)]
    fn current() -> Self {
        // SAFETY: always the running task.
        unsafe { bpf_get_current_task_btf() }.cast()
    }
}

/// The address of a kernel struct, of which the verifier knows nothing.
#[derive(Clone, Copy)]
pub struct Address(pub u64);

impl Task for Address {
    #[inline(always)]
    fn current() -> Self {
        // SAFETY: as above.
        Self(unsafe { bpf_get_current_task() })
    }
}

impl Pointer for Address {
    #[inline(always)]
    fn field<T: Word, F: Marked>(self) -> T {
        T::of_word(word(self.0 + global(F::global())))
    }

    #[inline(always)]
    fn address(self) -> u64 {
        self.0
    }
}

/// [`word_at`] with a stack of its own: each read would have its place in the caller's, whose stack is as large as the
/// verifier allows.
#[inline(never)]
fn word(address: u64) -> u64 {
    word_at(address)
}

impl Word for Address {
    #[inline(always)]
    fn load<F: Marked>(base: Kernel) -> Self {
        Self(u64::load::<F>(base))
    }

    #[inline(always)]
    fn of_word(word: u64) -> Self {
        Self(word)
    }
}

/// The cgroup that `task` is in, as `task_cgroup` of the shared part gives it, whatever the task is known by: a generic
/// function there would have the programs that always run compiled otherwise.
#[inline(always)]
pub fn cgroup_of<P: Pointer>(task: P) -> P {
    let set: P = load(task, TASK_CGROUPS);
    if global(&TASKS_IN_V1) != 0 {
        let css: P = load(set, CSS_SET_SUBSYS);
        load(css, CSS_CGROUP)
    } else {
        load(set, CSS_SET_DFL_CGRP)
    }
}
