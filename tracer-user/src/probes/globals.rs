//! The globals of the programs that always run: the kernel's fields, and how this host's cgroups lie.

use anyhow::{Context, Result};
use tracer_ebpf::{
    kernel_fields::MISSING,
    settings::{self, waits},
};

use super::{
    needs::{CALLS_NEED, FILES_NEED, TIMES_NEED},
    options::{Options, WaitMode},
};
use crate::{
    base::layout::Layout,
    bpf::{
        btf::Btf,
        globals::{Globals, find},
        offsets::Offsets,
    },
};

/// Values of all of them, and offsets of the fields.
///
/// # Errors
/// When this kernel has not the controller by which `layout` tells jobs apart.
pub fn globals(btf: &Btf, layout: &Layout, options: &Options) -> Result<(Globals, Offsets)> {
    let (mut globals, mut offsets) = find(btf, options.without);
    if let Some(controller) = &layout.tasks_controller {
        let subsystem = format!("{controller}_cgrp_id");
        let index = btf.enum_value("cgroup_subsys_id", &subsystem).with_context(|| {
            format!("this kernel's types have no cgroup controller {controller}")
        })?;
        globals.insert(settings::TASKS_IN_V1, 1);
        let place = u64::from(index) * size_of::<*const ()>() as u64;
        if let Some(offset) = offsets.get_mut("CSS_SET_SUBSYS") {
            *offset += place;
            globals.insert("CSS_SET_SUBSYS", *offset);
        }
    }
    // Without the controller no cgroup has its state.
    match (btf.enum_value("cgroup_subsys_id", "memory_cgrp_id"), offsets.get_mut("CGROUP_MEMORY")) {
        (Some(index), Some(offset)) => {
            *offset += u64::from(index) * size_of::<*const ()>() as u64;
            globals.insert("CGROUP_MEMORY", *offset);
        }
        _ => drop(globals.insert("CGROUP_MEMORY", MISSING)),
    }
    globals.insert(settings::TASKS_HIERARCHY, layout.tasks_hierarchy.into());
    globals.insert(settings::BLOCK_HIERARCHY, layout.block_hierarchy.map_or(MISSING, u64::from));
    globals.insert(settings::BLOCK_TABLE, layout.block_table().into());
    let times = TIMES_NEED.iter().all(|field| globals[field] != MISSING);
    globals.insert(settings::TIMES_KNOWN, times.into());
    let fault_bit = globals["TASK_IN_USER_FAULT"] != MISSING;
    globals.insert(settings::FAULT_BIT_KNOWN, fault_bit.into());
    let has_all = |fields: &[&str]| fields.iter().all(|field| globals[field] != MISSING);
    let registers = registers_at(btf);
    let waits = match options.waits {
        _ if registers.is_none() || !has_all(&CALLS_NEED) => waits::OFF,
        WaitMode::Off => waits::OFF,
        WaitMode::Files if has_all(&FILES_NEED) => waits::FILES,
        WaitMode::Calls | WaitMode::Files => waits::CALLS,
    };
    globals.insert(settings::WAITS, waits);
    globals.insert(settings::REGISTERS_AT, registers.unwrap_or(0));
    globals.insert(settings::COMPAT_BITS, COMPAT_BITS);
    if cfg!(target_arch = "aarch64") {
        // Of an array.
        for (name, place) in [
            ("CALL_SECOND", 8),
            ("CALL_THIRD", 16),
            ("CALL_FOURTH", 24),
            ("CALL_FIFTH", 32),
            ("CALL_SECOND_32", 8),
            ("CALL_FOURTH_32", 24),
            ("CALL_FIFTH_32", 32),
        ] {
            if let Some((offset, global)) = offsets.get_mut(name).zip(globals.get_mut(name)) {
                *offset += place;
                *global += place;
            }
        }
    }
    let helper = btf.enum_value("bpf_func_id", "BPF_FUNC_get_current_task_btf");
    globals.insert(settings::CURRENT_TASK_TYPED, helper.is_some().into());
    globals.insert(settings::NEW_CGROUPS_GET_SLOTS, options.whole_node.into());
    Ok((globals, offsets))
}

/// How `thread_info` tells that a task is in a call of 32 bits: `TS_COMPAT` of its status, `TIF_32BIT` of its
/// flags.
const COMPAT_BITS: u64 = if cfg!(target_arch = "aarch64") { 1 << 22 } else { 2 };

/// Where a task's registers lie in its stack: at its very end; 0 where a helper tells (from 5.15 on). `None`
/// where the kernel's types do not tell either.
fn registers_at(btf: &Btf) -> Option<u64> {
    if btf.enum_value("bpf_func_id", "BPF_FUNC_task_pt_regs").is_some() {
        return Some(0);
    }
    // Where nothing of the kernel's own says how large a task's stack is, x86-64's interrupts have one that is
    // as large by definition (`IRQ_STACK_ORDER` and `THREAD_SIZE_ORDER`).
    let of_interrupts = || if cfg!(target_arch = "x86_64") { btf.size("irq_stack") } else { None };
    let stack = btf.size("thread_union").or_else(of_interrupts)?;
    stack.checked_sub(btf.size("pt_regs")?)
}
