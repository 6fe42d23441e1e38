//! Every hook of the object in one row. Calls could be met at the entry and the return of each call's own function
//! instead, which costs other jobs nothing, where the kernel allows that: such rows would be alternatives, of the
//! same groups.

use crate::bpf::hook::{Hook, Point::Tracepoint};

/// Of a program that knows a task by its number.
const TASK: &[&str] = &["TASK_PID"];
/// Of a program that finds whose a call is.
const JOB: [&str; 6] =
    ["TASK_PID", "TASK_CGROUPS", "CGROUP_KN", "KERNFS_ID", "CGROUP_PARENT_CSS", "CSS_CGROUP"];
/// Of the programs at both ends of a call.
const CALLS: &[&str] = &[
    JOB[0],
    JOB[1],
    JOB[2],
    JOB[3],
    JOB[4],
    JOB[5],
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
/// its end. Without any of them nothing is counted.
pub static HOOKS: [Hook; 5] = [
    row("io_move", "cgroup_attach_task", &["*cgroup", "*", "*task_struct", "scalar"], &[]),
    row("io_fork", "sched_process_fork", &["*task_struct", "*task_struct"], TASK),
    row("io_exec", "sched_process_exec", &["*task_struct", "scalar", "*linux_binprm"], &JOB),
    row("io_enter", "sys_enter", &["*pt_regs", "scalar"], CALLS),
    row("io_exit", "sys_exit", &["*pt_regs", "scalar"], CALLS),
];

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
}
