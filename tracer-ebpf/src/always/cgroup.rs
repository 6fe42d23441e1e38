//! Cgroups made and removed. A job's children are tracked from the moment they are made; for the agent,
//! any other new cgroup gets a slot of its own at that moment, until it is known whose it is.
//!
//! The kernel serialises both hooks (cgroup_mutex), over all hierarchies: no two run at once.

use aya_ebpf::{
    helpers::{bpf_get_current_uid_gid, bpf_ktime_get_ns, bpf_probe_read_kernel_str_bytes},
    macros::btf_tracepoint,
    programs::BtfTracePointContext,
};
use aya_log_ebpf::warn;
use tracer_ebpf::{
    ids::{INHERITED, KERNEL_WAYS_FROM, WAYS, entry},
    kernel_fields::{fields::*, globals},
    records::life,
    settings::globals::{BLOCK_HIERARCHY, BLOCK_TABLE, NEW_CGROUPS_GET_SLOTS, TASKS_HIERARCHY},
};

use crate::{
    kernel::{Kernel, cgroup_id, global, has, load, probed},
    maps::{cpu_record, give_spare, id_set, scratch, slot_flags, slot_of, take_spare, tell},
};

/// Table of the hierarchy that `cgroup` lies in; `None` for one that tells no jobs apart.
#[inline(always)]
fn table_of(cgroup: Kernel) -> Option<u32> {
    let root: Kernel = load(cgroup, CGROUP_ROOT);
    let hierarchy = u64::from(load::<u32, _>(root, ROOT_HIERARCHY));
    if hierarchy == global(&TASKS_HIERARCHY) {
        Some(0)
    } else if hierarchy == global(&BLOCK_HIERARCHY) {
        Some(global(&BLOCK_TABLE) as u32)
    } else {
        None
    }
}

/// A cgroup was made.
#[btf_tracepoint(function = "cgroup_mkdir")]
pub fn cgroup_mkdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let Some(table) = table_of(cgroup) else { return 0 };
    let parent_css: Kernel = load(cgroup, CGROUP_PARENT_CSS);
    let mut slot = slot_of(table, cgroup_id(load(parent_css, CSS_CGROUP)));
    let inherited = slot != 0 && slot_flags(slot) & INHERITED != 0;
    let for_agent = global(&NEW_CGROUPS_GET_SLOTS) != 0;
    if !inherited && !for_agent {
        return 0;
    }
    let (Some(cpu), id) = (cpu_record(), cgroup_id(cgroup)) else { return 0 };
    if !inherited {
        slot = take_spare();
    }
    let placed = slot != 0 && place(table, id, slot);
    // SAFETY: this CPU's own record.
    unsafe {
        if slot == 0 {
            (*cpu).no_spare += 1;
        } else if !placed {
            (*cpu).ids_full += 1;
            warn!(&ctx, "no room to track cgroup {} of slot {}", id, slot);
        }
    }
    if for_agent && !announce(&ctx, life::MADE, table, id, slot) {
        // SAFETY: as above.
        unsafe { (*cpu).ring_full += 1 };
        if !inherited && slot != 0 {
            // Nobody would ever let go of it.
            forget(table, id);
            give_spare(slot);
        }
    }
    0
}

/// Enters the cgroup into its set; `false` where there is no room.
#[inline(always)]
fn place(table: u32, id: u64, slot: u16) -> bool {
    let Some(set) = id_set(table, id) else { return false };
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
    placed
}

/// Undoes [`place`].
#[inline(always)]
fn forget(table: u32, id: u64) {
    let Some(set) = id_set(table, id) else { return };
    for way in KERNEL_WAYS_FROM..WAYS {
        // SAFETY: as in `place`.
        unsafe {
            if (*set)[way] >> tracer_ebpf::ids::SLOT_BITS == id {
                core::ptr::write_volatile(&raw mut (*set)[way], 0);
            }
        }
    }
}

/// Tells the agent of a cgroup with its path; `false` where the ring is full.
#[inline(always)]
fn announce(ctx: &BtfTracePointContext, kind: u32, table: u32, id: u64, slot: u16) -> bool {
    let Some(event) = scratch() else { return false };
    let path: *const u8 = ctx.arg(1);
    // SAFETY: this CPU's own; the hook is serialised. The path is read with all faults caught.
    unsafe {
        (*event).kind = kind;
        (*event).hierarchy = table;
        (*event).id = id;
        (*event).at_ns = bpf_ktime_get_ns();
        (*event).slot = slot.into();
        (*event).uid = bpf_get_current_uid_gid() as u32;
        let bytes = bpf_probe_read_kernel_str_bytes(path, &mut (*event).path);
        let bytes = bytes.map_or(0, |read| read.len() as u32);
        (*event).path_bytes = bytes;
        tell(event, bytes)
    }
}

/// The most memory that was ever charged to `cgroup`, in pages; 0 where its hierarchy counts none. The lock that
/// serialises these hooks keeps the controller's state where it is until they return.
#[inline(always)]
fn peak_pages(cgroup: Kernel) -> u64 {
    if !has(&globals::CGROUP_MEMORY) || !has(&globals::MEMORY_PEAK) {
        return 0;
    }
    let memory: Kernel = load(cgroup, CGROUP_MEMORY);
    // Asked before any arithmetic: kernels whose types say that it is RCU's know that it may be null.
    if memory.is_null() {
        return 0;
    }
    probed(memory as u64, &globals::MEMORY_PEAK)
}

/// A cgroup was removed. Its entry stays until the agent clears it: late completions still find it.
#[btf_tracepoint(function = "cgroup_rmdir")]
pub fn cgroup_rmdir(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let (Some(cpu), Some(event)) = (cpu_record(), scratch()) else { return 0 };
    let (for_agent, peak_pages) = (global(&NEW_CGROUPS_GET_SLOTS) != 0, peak_pages(cgroup));
    let id = cgroup_id(cgroup);
    let (kind, table, slot) = match table_of(cgroup) {
        Some(table) => (life::REMOVED, table, slot_of(table, id)),
        None if peak_pages != 0 => (life::DISCHARGED, 0, 0),
        None => return 0,
    };
    // The agent is told of those without a slot too: they may be a job's that waits for one.
    if slot == 0 && !for_agent {
        return 0;
    }
    // SAFETY: this CPU's own; the hook is serialised.
    unsafe {
        (*event).peak_pages = peak_pages;
        if !announce(&ctx, kind, table, id, slot) {
            (*cpu).ring_full += 1;
        }
    }
    0
}

/// A cgroup was renamed: it may be another job's now. Of interest to the agent only.
#[btf_tracepoint(function = "cgroup_rename")]
pub fn cgroup_rename(ctx: BtfTracePointContext) -> i32 {
    let cgroup: Kernel = ctx.arg(0);
    let Some(table) = table_of(cgroup) else { return 0 };
    let id = cgroup_id(cgroup);
    if global(&NEW_CGROUPS_GET_SLOTS) != 0
        && !announce(&ctx, life::RENAMED, table, id, slot_of(table, id))
        && let Some(cpu) = cpu_record()
    {
        // SAFETY: this CPU's own record.
        unsafe { (*cpu).ring_full += 1 };
    }
    0
}
