//! Tasks that move to another cgroup. One that waits or sleeps is looked up when it next enters a CPU; of
//! one that runs, what it did so far belongs to the old cgroup, and the record of its CPU follows it.
//!
//! The kernel tells of a process's first thread only, also where it moves all of them: others that run
//! meanwhile are charged to the old cgroup until their next switch.

use core::ptr::{addr_of_mut, write_volatile};

use aya_ebpf::{
    helpers::bpf_get_current_pid_tgid, macros::btf_tracepoint, programs::BtfTracePointContext,
};
use tracer_ebpf::{
    kernel_fields::fields::*, records::CpuRecord, settings::globals::TASKS_HIERARCHY,
};

use crate::{
    counters::{charge, tag, times_known},
    kernel::{Kernel, cgroup_id, global, load, run_queue_clock},
    maps::{bank, cpu_record, cpu_record_of, moved as has_moved, slot_of, task_record},
    record::file,
};

/// A task moved, wherever it runs.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_task(ctx: BtfTracePointContext) -> i32 {
    moved(ctx.arg(0), ctx.arg(2), |task| {
        // One that is not running may have been the last that its CPU has seen.
        let runs = load::<u32, _>(task, TASK_ON_CPU) != 0;
        if runs { cpu_record_of(load(task, TASK_CPU)) } else { None }
    })
}

/// A task moved, on kernels where no program sees another CPU's records (before 5.19): of interest if it
/// moved itself.
#[btf_tracepoint(function = "cgroup_attach_task")]
pub fn cgroup_attach_self(ctx: BtfTracePointContext) -> i32 {
    moved(ctx.arg(0), ctx.arg(2), |task| {
        let is_self = bpf_get_current_pid_tgid() as u32 == load::<u32, _>(task, TASK_PID);
        if is_self { cpu_record() } else { None }
    })
}

#[inline(always)]
fn moved(cgroup: Kernel, task: Kernel, cpu_of: impl Fn(Kernel) -> Option<*mut CpuRecord>) -> i32 {
    let root: Kernel = load(cgroup, CGROUP_ROOT);
    if u64::from(load::<u32, _>(root, ROOT_HIERARCHY)) != global(&TASKS_HIERARCHY) {
        return 0;
    }
    let Some(cpu) = cpu_of(task) else { return 0 };
    let pid: u32 = load(task, TASK_PID);
    let record = task_record(pid);
    // SAFETY: the record of the CPU that the task runs on, and the task's own. Where that is another CPU,
    // a switch there at this very moment may count the last slice for both cgroups. The bank is this
    // CPU's own.
    unsafe {
        if (*cpu).task != task as u64 || (*cpu).pid != pid {
            return 0;
        }
        if let Some(bank) = bank((*cpu).slot)
            && (*record).task == tag(&*cpu)
            && let Some(own) = cpu_record()
        {
            charge(task, bank, &mut *record);
            (*cpu).sum_exec_ns = (*record).sum_exec_ns;
            if times_known() {
                let now = run_queue_clock(task);
                let arrival: u64 = load(task, TASK_LAST_ARRIVAL);
                let start = if (*cpu).since_ns > arrival { (*cpu).since_ns } else { arrival };
                if start != 0 && now > start {
                    file(addr_of_mut!((*bank).on_cpu_slice_ns), now - start);
                    (*cpu).since_ns = now;
                }
            }
            has_moved(own, (*cpu).slot);
        }
        let slot = u64::from(slot_of(0, cgroup_id(cgroup)));
        write_volatile(addr_of_mut!((*cpu).slot).cast::<u64>(), slot | u64::from(pid) << 32);
    }
    0
}
