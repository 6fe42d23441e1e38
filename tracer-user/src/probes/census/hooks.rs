//! Every hook of the object in one row. Opening and mapping are met where the kernel lets programs meet a function, else
//! the reads of files' first pages.

use crate::{
    bpf::hook::{
        Hook,
        Point::{self, FunctionEntry, Tracepoint},
    },
    probes::{families::Family, hooks::HookRow},
};

/// Of a program that finds whose a task is.
const JOB: [&str; 4] = ["TASK_CGROUPS", "CGROUP_KN", "KERNFS_ID", "CSS_CGROUP"];

/// Of a program that tells of files, and more.
macro_rules! files {
    ($($more:literal),*) => {
        &[
            JOB[0], JOB[1], JOB[2], JOB[3], "TASK_MM", "MM_EXECUTABLE", "FILE_INODE", "FILE_DENTRY",
            "INODE_NUMBER", "INODE_GENERATION", "INODE_SUPER", "SUPER_DEVICE", "DENTRY_LENGTH",
            "DENTRY_PARENT", "DENTRY_INODE", "CPUMASK_BITS", $($more),*
        ]
    };
}

/// What is lost without them, in words.
const EXECUTIONS: &str = "the programs of job_software";
const PYTHONS: &str = "the most Python processes at once";
const MODULES: &str = "the Python packages of job_software but for compiled modules";
const LIBRARIES: &str = "the libraries of job_software";

const UNREAD: &str = "the libraries of job_software on file systems that read past the page cache";
const REPLACED: &str = "the same of processes that go on as another program";

/// What Python modules are seen by; the group of its alternatives.
pub const SEEN_BY_OPENING: [&str; 2] = ["census_open", "census_open_probed"];
pub const SEEN_BY_READING: &str = "census_read";
/// What libraries are seen by besides.
pub const SEEN_BY_MAPPING: [&str; 3] = ["census_map", "census_map_probed", "census_exit_maps"];
/// What is attached by kernels that give the current task with its type, or by others.
const TYPED: [&str; 3] = ["census_open", "census_map", "census_read"];
const PROBED: [&str; 2] = ["census_open_probed", "census_map_probed"];

const fn row(
    program: &'static str,
    group: &'static str,
    point: Point,
    needs: &'static [&'static str],
    gives: &'static str,
) -> HookRow {
    let hook = Hook { program, point, needs, group, covers: &[] };
    HookRow { hook, family: Family::Census, feeds: &[], gives }
}

/// All of them, in the order of their attaching.
pub static CENSUS_HOOKS: [HookRow; 11] = {
    const TASKS: Point = Tracepoint("sched_process_fork", &["*task_struct", "*task_struct"]);
    const EXEC: Point =
        Tracepoint("sched_process_exec", &["*task_struct", "scalar", "*linux_binprm"]);
    const EXIT: Point = Tracepoint("sched_process_exit", &["*task_struct"]);
    const EXIT_2: Point = Tracepoint("sched_process_exit", &["*task_struct", "scalar"]);
    const PAGES: Point =
        Tracepoint("mm_filemap_get_pages", &["*address_space", "scalar", "scalar"]);
    const OPEN: Point = FunctionEntry("security_file_open");
    const TASK: &[&str] = &[JOB[0], JOB[1], JOB[2], JOB[3], "TASK_PID", "TASK_TGID"];
    const OPENS: &[&str] = files!("FILE_MODE", "DENTRY_SUPER");
    const READS: &[&str] = files!("MAPPING_HOST", "INODE_ALIASES", "DENTRY_ALIAS");
    const LAST_MAPS: &[&str] =
        files!("VMA_FLAGS", "VMA_FILE", "TASK_FLAGS", "MM_MAPPINGS", "MM_EXECUTABLE_PAGES");
    const PREPARE: Point = Tracepoint("sched_prepare_exec", &["*task_struct", "*linux_binprm"]);
    let read = row("census_read", "modules", PAGES, READS, MODULES);
    let read = HookRow { hook: Hook { covers: &["libraries"], ..read.hook }, ..read };
    [
        // A process that ends is counted before one that begins.
        row("census_exit", "ended processes", EXIT, TASK, PYTHONS),
        row("census_exit_2", "ended processes", EXIT_2, TASK, PYTHONS),
        row("census_fork", "processes", TASKS, TASK, PYTHONS),
        row("census_exec", "executions", EXEC, files!("BINARY_FILE", "TASK_TGID"), EXECUTIONS),
        row("census_open", "modules", OPEN, OPENS, MODULES),
        row("census_open_probed", "modules", OPEN, OPENS, MODULES),
        read,
        of_all("census_map"),
        of_all("census_map_probed"),
        row("census_exit_maps", "mapped libraries", EXIT_2, LAST_MAPS, UNREAD),
        row("census_exec_maps", "replaced libraries", PREPARE, LAST_MAPS, REPLACED),
    ]
};

/// One that meets each mapping, so that none is looked for later.
const fn of_all(program: &'static str) -> HookRow {
    let row = row(program, "libraries", FunctionEntry("security_mmap_file"), files!(), LIBRARIES);
    HookRow {
        hook: Hook { covers: &["mapped libraries", "replaced libraries"], ..row.hook },
        ..row
    }
}

/// Whether `row` is for a kernel with (`is_typed`) or without a helper that gives the current task with its type.
pub fn is_for(row: &HookRow, is_typed: bool) -> bool {
    let others = if is_typed { &PROBED[..] } else { &TYPED[..] };
    !others.contains(&row.hook.program)
}
