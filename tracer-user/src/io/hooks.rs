//! Every hook of the object in one row. Calls could be met at the entry and the return of each call's own function
//! instead, which costs other jobs nothing, where the kernel allows that: such rows would be alternatives, of the
//! same groups.

use crate::bpf::hook::{Hook, Point::Tracepoint};

/// Of a program that finds whose a call is.
const JOB: [&str; 5] =
    ["TASK_CGROUPS", "CGROUP_KN", "KERNFS_ID", "CGROUP_PARENT_CSS", "CSS_CGROUP"];
/// Of the programs at both ends of a call.
const CALLS: &[&str] = &[
    JOB[0],
    JOB[1],
    JOB[2],
    JOB[3],
    JOB[4],
    "TASK_PID",
    "TASK_NVCSW",
    "TASK_COMPAT",
    "TASK_FILES",
    "TASK_FS",
    "FS_CWD_DENTRY",
    "DENTRY_SUPER",
    "FILES_TABLE",
    "FILES_MOST",
    "FILES_FILES",
    "FILE_INODE",
    "INODE_SUPER",
    "SUPER_DEVICE",
    "SUPER_MAGIC",
    "CALL_NUMBER",
    "CALL_FIRST",
    "CALL_SECOND",
    "CALL_THIRD",
    "CALL_FOURTH",
    "CALL_FIFTH",
    "FILE_POSITION",
    "FILE_DENTRY",
    "DENTRY_PARENT",
    "DENTRY_NAME",
    "INODE_MODE",
    "INODE_NUMBER",
    "INODE_GENERATION",
    "INODE_SIZE",
];

const fn row(
    program: &'static str,
    tracepoint: &'static str,
    arguments: &'static [&'static str],
    needs: &'static [&'static str],
) -> Hook {
    let point = Tracepoint(tracepoint, arguments);
    Hook { program, point, needs, group: program, covers: &[] }
}

/// All hooks, in the order of their attaching: what keeps a call's job right comes first, and the begin of a call before
/// its end. Without any of their groups nothing is counted.
pub static HOOKS: [Hook; 7] = [
    row("io_move", "cgroup_attach_task", &["*cgroup", "*", "*task_struct", "scalar"], &[]),
    row("io_fork", "sched_process_fork", &["*task_struct", "*task_struct"], &[]),
    row("io_exec", "sched_process_exec", &["*task_struct", "scalar", "*linux_binprm"], &JOB),
    row("io_enter", "sys_enter", &["*pt_regs", "scalar"], CALLS),
    Hook { group: "io_enter", ..row(PROBED[0], "sys_enter", &["*pt_regs", "scalar"], CALLS) },
    row("io_exit", "sys_exit", &["*pt_regs", "scalar"], CALLS),
    Hook { group: "io_exit", ..row(PROBED[1], "sys_exit", &["*pt_regs", "scalar"], CALLS) },
];

/// Programs for kernels without a helper for the typed current task (before 5.11).
const PROBED: [&str; 2] = ["io_enter_probed", "io_exit_probed"];

/// Whether `hook` is for a kernel with (`is_typed`) or without that helper.
pub fn is_for(hook: &Hook, is_typed: bool) -> bool {
    let is_alternative = HOOKS.iter().filter(|other| other.group == hook.group).count() > 1;
    !is_alternative || PROBED.contains(&hook.program) != is_typed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tracer_ebpf::kernel_fields;

    use super::*;

    #[test]
    fn each_program_has_one_row_and_needs_fields_that_there_are() {
        let programs: BTreeSet<_> = HOOKS.iter().map(|hook| hook.program).collect();
        assert_eq!(programs.len(), HOOKS.len());
        for need in HOOKS.iter().flat_map(|hook| hook.needs) {
            assert!(kernel_fields::ALL.iter().any(|field| field.global == *need), "{need}");
        }
    }

    #[test]
    fn each_kernel_gets_one_program_of_each_group() {
        let groups: BTreeSet<_> = HOOKS.iter().map(|hook| hook.group).collect();
        for is_typed in [true, false] {
            let own: Vec<_> = HOOKS.iter().filter(|hook| is_for(hook, is_typed)).collect();
            assert_eq!(own.iter().map(|hook| hook.group).collect::<BTreeSet<_>>(), groups);
            assert_eq!(own.len(), groups.len());
            assert_eq!(own.iter().any(|hook| hook.program == "io_exit"), is_typed);
        }
    }
}
