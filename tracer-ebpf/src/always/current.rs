//! The running task's job, asked of the task itself. From Linux 5.11 on a helper gives it with its type; before that
//! its address alone is known.

use aya_ebpf::helpers::{bpf_get_current_task, generated::bpf_get_current_task_btf};
use tracer_ebpf::{
    kernel_fields::globals,
    settings::globals::{CURRENT_TASK_TYPED, TASKS_IN_V1},
};

use crate::{
    kernel::{global, probed, task_cgroup_id},
    maps::slot_of,
};

/// Its slot; 0 where it is of no job.
#[inline(always)]
pub fn slot() -> u32 {
    let id = if global(&CURRENT_TASK_TYPED) != 0 {
        // SAFETY: always the running task.
        task_cgroup_id(unsafe { bpf_get_current_task_btf() }.cast())
    } else {
        // SAFETY: as above.
        probed_cgroup_id(unsafe { bpf_get_current_task() })
    };
    slot_of(0, id).into()
}

/// As [`task_cgroup_id`], of a task known by nothing but its address.
#[inline(never)]
fn probed_cgroup_id(task: u64) -> u64 {
    let set = probed(task, &globals::TASK_CGROUPS);
    let cgroup = if global(&TASKS_IN_V1) != 0 {
        probed(probed(set, &globals::CSS_SET_SUBSYS), &globals::CSS_CGROUP)
    } else {
        probed(set, &globals::CSS_SET_DFL_CGRP)
    };
    probed(probed(cgroup, &globals::CGROUP_KN), &globals::KERNFS_ID)
}
