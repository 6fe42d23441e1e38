//! Every hook of the object in one row.

use crate::bpf::hook::{
    Hook,
    Point::{Event, Tracepoint},
};

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
    "CALL_FIRST_32",
    "CALL_SECOND_32",
    "CALL_FOURTH_32",
    "CALL_FIFTH_32",
    "FILE_MODE",
    "FILE_FLAGS",
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

/// Of a program that looks at what a task does outside of its operations, and more.
macro_rules! besides {
    ($($more:literal)*) => {
        &[
            JOB[0], JOB[1], JOB[2], JOB[3], JOB[4], "TASK_PID", "TASK_FLAGS", "TASK_STACK",
            "TASK_MAJ_FLT", "CALL_NUMBER", "FILE_INODE", "INODE_SUPER", "INODE_MODE", "INODE_NUMBER",
            "INODE_GENERATION", "INODE_SIZE", "SUPER_DEVICE", "SUPER_MAGIC", $($more),*
        ]
    };
}

/// All hooks that are required, in the order of their attaching: what keeps a call's job right comes first, and the begin
/// of a call before its end. Without any of their groups nothing is counted.
pub static HOOKS: [Hook; 9] = [
    row("io_move", "cgroup_attach_task", &["*cgroup", "*", "*task_struct", "scalar"], &[]),
    row("io_fork", "sched_process_fork", &["*task_struct", "*task_struct"], TASK),
    row("io_exec", "sched_process_exec", &["*task_struct", "scalar", "*linux_binprm"], &JOB),
    event(EVENTS[0], "sys_enter", "io_enter"),
    row("io_enter", "sys_enter", &["*pt_regs", "scalar"], CALLS),
    Hook { group: "io_enter", ..row(PROBED[0], "sys_enter", &["*pt_regs", "scalar"], CALLS) },
    event(EVENTS[1], "sys_exit", "io_exit"),
    row("io_exit", "sys_exit", &["*pt_regs", "scalar"], CALLS),
    Hook { group: "io_exit", ..row(PROBED[1], "sys_exit", &["*pt_regs", "scalar"], CALLS) },
];

const fn event(program: &'static str, name: &'static str, group: &'static str) -> Hook {
    Hook { program, point: Event("raw_syscalls", name), needs: CALLS, group, covers: &[] }
}

/// Programs for kernels without a helper for the typed current task (before 5.11).
const PROBED: [&str; 2] = ["io_enter_probed", "io_exit_probed"];
/// Programs for kernels where another task may interrupt those of typed tracepoints. An event's cost more.
const EVENTS: [&str; 2] = ["io_enter_event", "io_exit_event"];

/// Whether `hook` is for a kernel with (`is_typed`) or without that helper, whose programs may be interrupted
/// (`is_interrupted`) or not.
pub fn is_for(hook: &Hook, is_typed: bool, is_interrupted: bool) -> bool {
    let is_alternative = HOOKS.iter().filter(|other| other.group == hook.group).count() > 1;
    match hook.point {
        Event(..) => is_typed && is_interrupted,
        _ => !is_alternative || PROBED.contains(&hook.program) != is_typed,
    }
}

/// Whether nothing is counted without `hook`, or one of its group.
pub fn is_required(hook: &Hook) -> bool {
    HOOKS.iter().any(|required| required.program == hook.program)
}

/// What these give, where a kernel has them: names of their groups.
pub const FETCHED: &str = "pages fetched";
pub const THROTTLED: &str = "pauses";
pub const SUBMITTED: &str = "io_uring submissions";
pub const COMPLETED: &str = "io_uring completions";

const SCALAR: &str = "scalar";

/// Hooks that a kernel may lack: what they give is then unknown. Of a group the first that the kernel has.
pub static OPTIONAL: [Hook; 8] = [
    optional(
        "io_fetch",
        "mm_filemap_add_to_page_cache",
        &["*folio"],
        besides!("FOLIO_MAPPING" "FOLIO_FLAGS" "FOLIO_PAGES" "MAPPING_HOST"),
        FETCHED,
    ),
    optional(
        "io_fetch_page",
        "mm_filemap_add_to_page_cache",
        &["*page"],
        besides!("PAGE_MAPPING" "MAPPING_HOST"),
        FETCHED,
    ),
    optional(
        "io_throttle",
        "balance_dirty_pages",
        &[
            "*bdi_writeback",
            "*dirty_throttle_control",
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
        ],
        besides!(),
        THROTTLED,
    ),
    optional(
        "io_throttle_12",
        "balance_dirty_pages",
        &[
            "*bdi_writeback",
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
            SCALAR,
        ],
        besides!(),
        THROTTLED,
    ),
    // The end before the begin: what is submitted is then completed in sight.
    optional(
        "io_complete",
        "io_uring_complete",
        &["*io_ring_ctx", "*", "*io_uring_cqe"],
        besides!("URING_OPCODE" "URING_FILE" "URING_RESULT" "FILE_DENTRY" "DENTRY_PARENT" "DENTRY_NAME"),
        COMPLETED,
    ),
    optional(
        "io_complete_7",
        "io_uring_complete",
        &["*", "*", SCALAR, SCALAR, SCALAR, SCALAR, SCALAR],
        besides!("URING_OPCODE" "URING_FILE" "FILE_DENTRY" "DENTRY_PARENT" "DENTRY_NAME"),
        COMPLETED,
    ),
    optional(
        "io_submit",
        "io_uring_submit_req",
        &["*io_kiocb"],
        besides!("URING_OPCODE" "URING_FILE"),
        SUBMITTED,
    ),
    optional(
        "io_submit_sqe",
        "io_uring_submit_sqe",
        &["*io_kiocb", SCALAR],
        besides!("URING_OPCODE" "URING_FILE"),
        SUBMITTED,
    ),
];

const fn optional(
    program: &'static str,
    tracepoint: &'static str,
    arguments: &'static [&'static str],
    needs: &'static [&'static str],
    group: &'static str,
) -> Hook {
    Hook { group, ..row(program, tracepoint, arguments, needs) }
}

/// All of them, the required ones first.
pub fn all() -> impl Iterator<Item = &'static Hook> {
    HOOKS.iter().chain(&OPTIONAL)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tracer_ebpf::kernel_fields;

    use super::*;

    #[test]
    fn each_program_has_one_row_and_needs_fields_that_there_are() {
        let programs: BTreeSet<_> = all().map(|hook| hook.program).collect();
        assert_eq!(programs.len(), HOOKS.len() + OPTIONAL.len());
        for need in all().flat_map(|hook| hook.needs) {
            assert!(kernel_fields::ALL.iter().any(|field| field.global == *need), "{need}");
        }
    }

    #[test]
    fn each_kernel_gets_one_program_of_each_group() {
        let groups: BTreeSet<_> = HOOKS.iter().map(|hook| hook.group).collect();
        for is_typed in [true, false] {
            let own: Vec<_> = HOOKS.iter().filter(|hook| is_for(hook, is_typed, false)).collect();
            assert_eq!(own.iter().map(|hook| hook.group).collect::<BTreeSet<_>>(), groups);
            assert_eq!(own.len(), groups.len());
            assert_eq!(own.iter().any(|hook| hook.program == "io_exit"), is_typed);
        }
        // Events come before what is taken where they cannot be had.
        let own: Vec<_> = HOOKS.iter().filter(|hook| is_for(hook, true, true)).collect();
        for group in ["io_enter", "io_exit"] {
            let programs: Vec<_> = own.iter().filter(|hook| hook.group == group).collect();
            assert_eq!(programs.len(), 2);
            assert!(EVENTS.contains(&programs[0].program) && programs[1].program == group);
        }
    }
}
