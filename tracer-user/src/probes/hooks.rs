//! Every hook: its program, what the kernel must have for it, and what is lost without it.

use aya::programs::perf_event::SoftwareEvent;

/// Which page faults are timed.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    clap::ValueEnum,
    serde::Serialize,
    serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum FaultMode {
    /// Waits in major faults only; nothing runs on a minor fault.
    Major,
    /// Also the latencies of minor (sampled) and major faults.
    #[default]
    Full,
}

/// What a program is attached to.
#[derive(Clone, Copy, Debug)]
pub enum Point {
    /// A tracepoint, by BTF: its name and the arguments this program understands.
    Tracepoint(&'static str, &'static [&'static str]),
    /// A software event of every CPU, with its period.
    Software(SoftwareEvent, Period),
    /// Entry of a kernel function.
    FunctionEntry(&'static str),
}

/// How often a software event runs its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Each time.
    Each,
    /// Once in [`MINOR_LATENCY_EVERY`](tracer_ebpf::settings::MINOR_LATENCY_EVERY), by the loaded
    /// programs' own global.
    Sampled,
}

/// A hook.
#[derive(Debug)]
pub struct Hook {
    /// Name of the program in the object.
    pub program: &'static str,
    /// What it is attached to.
    pub point: Point,
    /// Kernel fields it cannot do without, by the names of their globals.
    pub needs: &'static [&'static str],
    /// What is unknown without it.
    pub gives: &'static str,
    /// Only in full mode.
    pub full_only: bool,
    /// Hooks of one group are alternatives: the first that attaches is kept.
    pub group: &'static str,
}

/// How a hook fared.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum HookState {
    /// Attached.
    Attached,
    /// Not asked for, or an alternative of it is attached.
    NotNeeded,
    /// This kernel lacks what it needs, or refused it: why.
    Missing(String),
}

/// What every time but `on_cpu_ns` is made of (CONFIG_SCHED_INFO, CONFIG_FAIR_GROUP_SCHED).
pub const TIMES_NEED: [&str; 7] = [
    "TASK_CFS_RQ",
    "CFS_RQ_RQ",
    "RQ_CLOCK",
    "TASK_RUN_DELAY",
    "TASK_LAST_ARRIVAL",
    "TASK_LAST_QUEUED",
    "TASK_PCOUNT",
];
const UNTIMED_NEEDS: &[&str] = &[
    "TASK_PID",
    "TASK_CGROUPS",
    "CGROUP_KN",
    "KERNFS_ID",
    "TASK_NVCSW",
    "TASK_NIVCSW",
    "TASK_MIN_FLT",
    "TASK_MAJ_FLT",
    "TASK_IN_IOWAIT",
    "TASK_SUM_EXEC",
    "TASK_MIGRATIONS",
];
const UNTIMED_3_NEEDS: &[&str] = &joined::<12>(UNTIMED_NEEDS, &["TASK_STATE"]);
const SWITCH_NEEDS: &[&str] = &joined::<18>(UNTIMED_NEEDS, &TIMES_NEED);
const SWITCH_3_NEEDS: &[&str] = &joined::<19>(UNTIMED_3_NEEDS, &TIMES_NEED);
const CGROUP_NEEDS: &[&str] = &["CGROUP_ROOT", "ROOT_HIERARCHY", "CGROUP_KN", "KERNFS_ID"];
const ATTACH_ARGUMENTS: &[&str] = &["*cgroup", "*", "*task_struct", "scalar"];
const ATTACH_SELF_NEEDS: &[&str] = &joined::<5>(CGROUP_NEEDS, &["TASK_PID"]);
const ATTACH_NEEDS: &[&str] = &joined::<7>(ATTACH_SELF_NEEDS, &["TASK_ON_CPU", "TASK_CPU"]);
const TASK_NEEDS: &[&str] = &["TASK_CGROUPS", "CGROUP_KN", "KERNFS_ID"];

const EXEC_NEEDS: &[&str] = &joined::<4>(TASK_NEEDS, &["TASK_PID"]);

const SWITCH_WITH_STATE: &[&str] = &["scalar", "*task_struct", "*task_struct", "scalar"];
const SWITCH_WITHOUT_STATE: &[&str] = &["scalar", "*task_struct", "*task_struct"];

/// Both lists, one after the other.
const fn joined<const N: usize>(
    first: &[&'static str],
    second: &[&'static str],
) -> [&'static str; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [""; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

const fn switch(
    program: &'static str,
    arguments: &'static [&'static str],
    needs: &'static [&'static str],
) -> Hook {
    let point = Point::Tracepoint("sched_switch", arguments);
    let gives = "job_sched, minor and major of job_fault: all of jobtrace";
    Hook { program, point, needs, gives, full_only: false, group: REQUIRED_GROUP }
}

/// The group without which nothing is traced.
pub const REQUIRED_GROUP: &str = "scheduling";

/// The groups that tell of a page fault's begin.
pub const FAULT_BEGINS: [&str; 2] = ["fault entry", "fault entry in the kernel"];

/// Programs that do the work of another group too: every fault on a user's address passes through
/// handle_mm_fault, whether it is taken in user mode or inside a system call; and whoever is told of the
/// victim itself need not wait for its exit.
pub const COVERS: [(&str, &str); 2] =
    [("handle_mm_fault", "fault entry in the kernel"), ("mark_victim", "out of memory, exits")];

/// All hooks, in the order of their attaching: what keeps slots right comes first.
pub static HOOKS: &[Hook] = &[
    Hook {
        program: "cgroup_mkdir",
        point: Point::Tracepoint("cgroup_mkdir", &["*cgroup", "*"]),
        needs: &[
            "CGROUP_ROOT",
            "ROOT_HIERARCHY",
            "CGROUP_KN",
            "KERNFS_ID",
            "CGROUP_PARENT_CSS",
            "CSS_CGROUP",
        ],
        gives: "cgroups that the job makes itself",
        full_only: false,
        group: "cgroups made",
    },
    Hook {
        program: "cgroup_rmdir",
        point: Point::Tracepoint("cgroup_rmdir", &["*cgroup", "*"]),
        needs: CGROUP_NEEDS,
        gives: "room for new cgroups after old ones end",
        full_only: false,
        group: "cgroups removed",
    },
    Hook {
        program: "cgroup_rename",
        point: Point::Tracepoint("cgroup_rename", &["*cgroup", "*"]),
        needs: CGROUP_NEEDS,
        gives: "jobs whose directory is renamed (cgroup v1)",
        full_only: false,
        group: "cgroups renamed",
    },
    Hook {
        program: "cgroup_attach_task",
        point: Point::Tracepoint("cgroup_attach_task", ATTACH_ARGUMENTS),
        needs: ATTACH_NEEDS,
        gives: "the exact moment at which a running task changes its cgroup",
        full_only: false,
        group: "cgroup changes",
    },
    Hook {
        program: "cgroup_attach_self",
        point: Point::Tracepoint("cgroup_attach_task", ATTACH_ARGUMENTS),
        needs: ATTACH_SELF_NEEDS,
        gives: "the exact moment at which a running task changes its own cgroup",
        full_only: false,
        group: "cgroup changes",
    },
    switch("sched_switch", SWITCH_WITH_STATE, SWITCH_NEEDS),
    switch("sched_switch_3", SWITCH_WITHOUT_STATE, SWITCH_3_NEEDS),
    switch("switch_untimed", SWITCH_WITH_STATE, UNTIMED_NEEDS),
    switch("switch_untimed_3", SWITCH_WITHOUT_STATE, UNTIMED_3_NEEDS),
    Hook {
        program: "sched_process_fork",
        point: Point::Tracepoint("sched_process_fork", &["*task_struct", "*task_struct"]),
        needs: TASK_NEEDS,
        gives: "forks",
        full_only: false,
        group: "forks",
    },
    Hook {
        program: "sched_process_exec",
        point: Point::Tracepoint(
            "sched_process_exec",
            &["*task_struct", "scalar", "*linux_binprm"],
        ),
        needs: EXEC_NEEDS,
        gives: "execs",
        full_only: false,
        group: "execs",
    },
    Hook {
        program: "mark_victim",
        point: Point::Tracepoint("mark_victim", &["*task_struct", "scalar"]),
        needs: TASK_NEEDS,
        gives: "oom_kills where no memory cgroup counts them",
        full_only: false,
        group: "out of memory",
    },
    Hook {
        program: "mark_victim_pid",
        point: Point::Tracepoint("mark_victim", &["scalar"]),
        needs: TASK_NEEDS,
        gives: "oom_kills where no memory cgroup counts them",
        full_only: false,
        group: "out of memory",
    },
    Hook {
        program: "victim_exit",
        point: Point::Tracepoint("sched_process_exit", &["*task_struct"]),
        needs: TASK_NEEDS,
        gives: "oom_kills where no memory cgroup counts them",
        full_only: false,
        group: "out of memory, exits",
    },
    Hook {
        program: "block_rq_complete",
        point: Point::Tracepoint("block_rq_complete", &["*request", "scalar", "scalar"]),
        needs: &[
            "REQUEST_FLAGS",
            "REQUEST_BIO",
            "REQUEST_START",
            "REQUEST_IO_START",
            "REQUEST_BYTES_LEFT",
            "DISK_MAJOR",
            "DISK_FIRST_MINOR",
            "BIO_BLKG",
            "BLKG_BLKCG",
            "BLKCG_CGROUP",
            "CGROUP_KN",
            "KERNFS_ID",
        ],
        gives: "job_block",
        full_only: false,
        group: "block I/O",
    },
    Hook {
        program: "major_fault",
        point: Point::Software(SoftwareEvent::PageFaultsMaj, Period::Each),
        needs: &[],
        gives: "major_wait_ns",
        full_only: false,
        group: "major faults",
    },
    Hook {
        program: "page_fault_user",
        point: Point::Tracepoint("page_fault_user", &["scalar", "*pt_regs", "scalar"]),
        needs: &[],
        gives: "fault latencies",
        full_only: true,
        group: "fault entry",
    },
    Hook {
        program: "handle_mm_fault",
        point: Point::FunctionEntry("handle_mm_fault"),
        needs: &[],
        gives: "fault latencies",
        full_only: true,
        group: "fault entry",
    },
    Hook {
        program: "page_fault_kernel",
        point: Point::Tracepoint("page_fault_kernel", &["scalar", "*pt_regs", "scalar"]),
        needs: &[],
        gives: "latencies and waits of faults taken inside system calls",
        full_only: true,
        group: "fault entry in the kernel",
    },
    Hook {
        program: "major_fault_latency",
        point: Point::Software(SoftwareEvent::PageFaultsMaj, Period::Each),
        needs: &[],
        gives: "major_latency_ns",
        full_only: true,
        group: "major fault latency",
    },
    Hook {
        program: "minor_fault_latency",
        point: Point::Software(SoftwareEvent::PageFaultsMin, Period::Sampled),
        needs: &[],
        gives: "minor_latency_ns",
        full_only: true,
        group: "minor fault latency",
    },
];
