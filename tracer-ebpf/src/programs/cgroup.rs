//! Cgroups made and removed: a tracked one's children are tracked from the moment they are made.
//!
//! The kernel serialises both hooks (cgroup_mutex), over all hierarchies: no two run at once.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use aya_log_ebpf::warn;
use tracer_ebpf::{
    ids::{KERNEL_WAYS_FROM, WAYS, entry},
    kernel_fields::globals::*,
    records::{CgroupEvent, cgroup_event},
    settings::globals::{BLOCK_HIERARCHY, BLOCK_TABLE, TASKS_HIERARCHY},
};

use crate::{
    kernel::{Kernel, cgroup_id, global, load},
    maps::{cpu_record, id_set, slot_of, tell},
};

/// Table of the hierarchy that `cgroup` lies in; `None` for one that tells no jobs apart.
#[inline(always)]
fn table_of(cgroup: Kernel) -> Option<u32> {
    let root: Kernel = load(cgroup, &CGROUP_ROOT);
    let hierarchy = u64::from(load::<u32>(root, &ROOT_HIERARCHY));
    if hierarchy == global(&TASKS_HIERARCHY) {
        Some(0)
    } else if hierarchy == global(&BLOCK_HIERARCHY) {
        Some(global(&BLOCK_TABLE) as u32)
    } else {
        None
    }
}

/// A cgroup was made: its parent's slot is its own.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let Some(table) = table_of(cgroup) else { return 0 };
    let parent_css: Kernel = load(cgroup, &CGROUP_PARENT_CSS);
    let slot = slot_of(table, cgroup_id(load(parent_css, &CSS_CGROUP)));
    if slot == 0 {
        return 0;
    }
    let (Some(cpu), id) = (cpu_record(), cgroup_id(cgroup)) else { return 0 };
    let Some(set) = id_set(table, id) else { return 0 };
    let mut placed = false;
    for way in KERNEL_WAYS_FROM..WAYS {
        // SAFETY: a set of the id table; only this hook fills these ways.
        unsafe {
            if !placed && (*set)[way] == 0 {
                core::ptr::write_volatile(&raw mut (*set)[way], entry(id, slot));
                placed = true;
            }
        }
    }
    // SAFETY: this CPU's own record.
    unsafe {
        if !placed {
            (*cpu).ids_full += 1;
            warn!(&ctx, "no room to track cgroup {} of slot {}", id, slot);
        }
        let kind = cgroup_event::MADE;
        if !tell(CgroupEvent { kind, hierarchy: table, id, slot: slot.into(), _pad: 0 }) {
            (*cpu).ring_full += 1;
        }
    }
    0
}

/// A cgroup was removed. Its entry stays until the agent clears it: late completions still find it.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let Some(table) = table_of(cgroup) else { return 0 };
    let id = cgroup_id(cgroup);
    let slot = slot_of(table, id);
    let Some(cpu) = cpu_record() else { return 0 };
    let kind = cgroup_event::REMOVED;
    if slot != 0 && !tell(CgroupEvent { kind, hierarchy: table, id, slot: slot.into(), _pad: 0 }) {
        // SAFETY: this CPU's own record.
        unsafe { (*cpu).ring_full += 1 };
    }
    0
}
