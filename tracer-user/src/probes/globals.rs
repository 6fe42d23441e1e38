//! The globals of the programs that always run: the kernel's fields, and how this host's cgroups lie.

use anyhow::{Context, Result};
use tracer_ebpf::{kernel_fields::MISSING, settings};

use super::{needs::TIMES_NEED, options::Options};
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
    globals.insert(settings::TASKS_HIERARCHY, layout.tasks_hierarchy.into());
    globals.insert(settings::BLOCK_HIERARCHY, layout.block_hierarchy.map_or(MISSING, u64::from));
    globals.insert(settings::BLOCK_TABLE, layout.block_table().into());
    let times = TIMES_NEED.iter().all(|field| globals[field] != MISSING);
    globals.insert(settings::TIMES_KNOWN, times.into());
    let fault_bit = globals["TASK_IN_USER_FAULT"] != MISSING;
    globals.insert(settings::FAULT_BIT_KNOWN, fault_bit.into());
    let helper = btf.enum_value("bpf_func_id", "BPF_FUNC_get_current_task_btf");
    globals.insert(settings::CURRENT_TASK_TYPED, helper.is_some().into());
    globals.insert(settings::NEW_CGROUPS_GET_SLOTS, options.whole_node.into());
    Ok((globals, offsets))
}
