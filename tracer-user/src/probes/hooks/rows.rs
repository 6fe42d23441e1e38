//! The rows themselves.

mod net;

use aya::programs::perf_event::SoftwareEvent;

use super::{FAULT_BEGINS, HookRow, REQUIRED_GROUP};
use crate::{
    bpf::hook::{
        Hook, Period,
        Point::{FunctionEntry, Software, Tracepoint},
    },
    probes::{
        families::Family::{Block, FullFault, LifeCycle, MajorFault, Sched},
        needs::*,
    },
};

const ALL: &str = "job_sched, minor and major of job_fault: all of jobtrace";
const MINOR_LATENCY: &[&str] = &["minor_latency_ns", "minor_sampled", "latency_sample_every"];
const LATENCIES: &[&str] = all_of!(MINOR_LATENCY, ["major_latency_ns"]);

/// All hooks, in the order of their attaching: what keeps slots right comes first, and what begins something
/// before what ends it.
pub static HOOKS: &[HookRow] =
    &joined::<_, { OF_TASKS.len() + net::ROWS.len() }>(net::ROWS[0], &[OF_TASKS, net::ROWS]);

const OF_TASKS: &[HookRow] = &[
    HookRow {
        hook: Hook {
            program: "cgroup_mkdir",
            point: Tracepoint("cgroup_mkdir", &["*cgroup", "*"]),
            needs: MADE_NEEDS,
            group: "cgroups made",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &[],
        gives: "cgroups that the job makes itself",
    },
    HookRow {
        hook: Hook {
            program: "cgroup_rmdir",
            point: Tracepoint("cgroup_rmdir", &["*cgroup", "*"]),
            needs: CGROUP_NEEDS,
            group: "cgroups removed",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &[],
        gives: "room for new cgroups after old ones end, peaks of memory after the last reading",
    },
    HookRow {
        hook: Hook {
            program: "cgroup_rename",
            point: Tracepoint("cgroup_rename", &["*cgroup", "*"]),
            needs: CGROUP_NEEDS,
            group: "cgroups renamed",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &[],
        gives: "jobs whose directory is renamed (cgroup v1)",
    },
    HookRow {
        hook: Hook {
            program: "cgroup_attach_task",
            point: Tracepoint("cgroup_attach_task", ATTACH_ARGUMENTS),
            needs: ATTACH_NEEDS,
            group: "cgroup changes",
            covers: &[],
        },
        family: Sched,
        feeds: &[],
        gives: "the exact moment at which a running task changes its cgroup",
    },
    HookRow {
        hook: Hook {
            program: "cgroup_attach_self",
            point: Tracepoint("cgroup_attach_task", ATTACH_ARGUMENTS),
            needs: ATTACH_SELF_NEEDS,
            group: "cgroup changes",
            covers: &[],
        },
        family: Sched,
        feeds: &[],
        gives: "the exact moment at which a running task changes its own cgroup",
    },
    HookRow {
        hook: Hook {
            program: "sched_switch",
            point: Tracepoint("sched_switch", SWITCH_WITH_STATE),
            needs: SWITCH_NEEDS,
            group: REQUIRED_GROUP,
            covers: &[],
        },
        family: Sched,
        feeds: COUNTERS_AND_TIMES,
        gives: ALL,
    },
    HookRow {
        hook: Hook {
            program: "sched_switch_3",
            point: Tracepoint("sched_switch", SWITCH_WITHOUT_STATE),
            needs: SWITCH_3_NEEDS,
            group: REQUIRED_GROUP,
            covers: &[],
        },
        family: Sched,
        feeds: COUNTERS_AND_TIMES,
        gives: ALL,
    },
    HookRow {
        hook: Hook {
            program: "switch_untimed",
            point: Tracepoint("sched_switch", SWITCH_WITH_STATE),
            needs: UNTIMED_NEEDS,
            group: REQUIRED_GROUP,
            covers: &[],
        },
        family: Sched,
        feeds: COUNTERS,
        gives: ALL,
    },
    HookRow {
        hook: Hook {
            program: "switch_untimed_3",
            point: Tracepoint("sched_switch", SWITCH_WITHOUT_STATE),
            needs: UNTIMED_3_NEEDS,
            group: REQUIRED_GROUP,
            covers: &[],
        },
        family: Sched,
        feeds: COUNTERS,
        gives: ALL,
    },
    HookRow {
        hook: Hook {
            program: "sched_process_fork",
            point: Tracepoint("sched_process_fork", &["*task_struct", "*task_struct"]),
            needs: TASK_NEEDS,
            group: "forks",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &["forks"],
        gives: "forks",
    },
    HookRow {
        hook: Hook {
            program: "sched_process_exec",
            point: Tracepoint("sched_process_exec", &["*task_struct", "scalar", "*linux_binprm"]),
            needs: TASK_AND_PID_NEED,
            group: "execs",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &["execs"],
        gives: "execs",
    },
    HookRow {
        hook: Hook {
            program: "mark_victim",
            point: Tracepoint("mark_victim", &["*task_struct", "scalar"]),
            needs: TASK_NEEDS,
            group: "out of memory",
            // Told of the victim itself, it need not wait for its exit.
            covers: &["out of memory, exits"],
        },
        family: LifeCycle,
        feeds: &["oom_kills"],
        gives: "oom_kills where no memory cgroup counts them",
    },
    HookRow {
        hook: Hook {
            program: "mark_victim_pid",
            point: Tracepoint("mark_victim", &["scalar"]),
            needs: &[],
            group: "out of memory",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &["oom_kills"],
        gives: "oom_kills where no memory cgroup counts them",
    },
    HookRow {
        hook: Hook {
            program: "victim_exit",
            point: Tracepoint("sched_process_exit", &["*task_struct"]),
            needs: TASK_AND_PID_NEED,
            group: "out of memory, exits",
            covers: &[],
        },
        family: LifeCycle,
        feeds: &["oom_kills"],
        gives: "oom_kills where no memory cgroup counts them",
    },
    HookRow {
        hook: Hook {
            program: "block_rq_complete",
            point: Tracepoint("block_rq_complete", &["*request", "scalar", "scalar"]),
            needs: BLOCK_NEEDS,
            group: "block I/O",
            covers: &[],
        },
        family: Block,
        feeds: &["job_block"],
        gives: "job_block",
    },
    HookRow {
        hook: Hook {
            program: "major_fault",
            point: Software(SoftwareEvent::PageFaultsMaj, Period::Each),
            needs: &[],
            group: "major faults",
            covers: &[],
        },
        family: MajorFault,
        feeds: &["major_wait_ns"],
        gives: "major_wait_ns",
    },
    HookRow {
        hook: Hook {
            program: "page_fault_user",
            point: Tracepoint("page_fault_user", &["scalar", "*pt_regs", "scalar"]),
            needs: &[],
            group: FAULT_BEGINS[0],
            covers: &[],
        },
        family: FullFault,
        feeds: LATENCIES,
        gives: "fault latencies",
    },
    HookRow {
        hook: Hook {
            program: "handle_mm_fault",
            point: FunctionEntry("handle_mm_fault"),
            needs: &[],
            group: FAULT_BEGINS[0],
            covers: &[FAULT_BEGINS[1]],
        },
        family: FullFault,
        feeds: LATENCIES,
        gives: "fault latencies",
    },
    HookRow {
        hook: Hook {
            program: "page_fault_kernel",
            point: Tracepoint("page_fault_kernel", &["scalar", "*pt_regs", "scalar"]),
            needs: &[],
            group: FAULT_BEGINS[1],
            covers: &[],
        },
        family: FullFault,
        feeds: &[],
        gives: "latencies and waits of faults taken inside system calls",
    },
    HookRow {
        hook: Hook {
            program: "major_fault_latency",
            point: Software(SoftwareEvent::PageFaultsMaj, Period::Each),
            needs: TASK_NEEDS,
            group: "major fault latency",
            covers: &[],
        },
        family: FullFault,
        feeds: &["major_latency_ns"],
        gives: "major_latency_ns",
    },
    HookRow {
        hook: Hook {
            program: "minor_fault_latency",
            point: Software(SoftwareEvent::PageFaultsMin, Period::Sampled),
            needs: TASK_NEEDS,
            group: "minor fault latency",
            covers: &[],
        },
        family: FullFault,
        feeds: MINOR_LATENCY,
        gives: "minor_latency_ns",
    },
];
