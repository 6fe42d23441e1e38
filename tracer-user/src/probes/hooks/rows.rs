//! The rows themselves.

use aya::programs::perf_event::SoftwareEvent;

use super::{FAULT_BEGINS, HookRow, REQUIRED_GROUP};
use crate::{
    bpf::hook::{
        Hook, Period,
        Point::{FunctionEntry, FunctionExit, Software, Tracepoint},
    },
    probes::{
        families::Family::{Block, FullFault, LifeCycle, MajorFault, Net, Sched},
        needs::*,
    },
};

const ALL: &str = "job_sched, minor and major of job_fault: all of jobtrace";
const MINOR_LATENCY: &[&str] = &["minor_latency_ns", "minor_sampled", "latency_sample_every"];
const LATENCIES: &[&str] = all_of!(MINOR_LATENCY, ["major_latency_ns"]);

/// Of a protocol's message, as function `function` returns; its program has the same name.
const fn of_return(
    function: &'static str,
    arguments: &'static [&'static str],
    group: &'static str,
    feeds: &'static [&'static str],
    gives: &'static str,
) -> HookRow {
    HookRow {
        hook: Hook {
            program: function,
            point: FunctionExit(function, arguments),
            needs: OUTER_MESSAGE_NEEDS,
            group,
            covers: &[],
        },
        family: Net,
        feeds,
        gives,
    }
}

/// All hooks, in the order of their attaching: what keeps slots right comes first, and what begins something
/// before what ends it.
pub static HOOKS: &[HookRow] = &[
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
        gives: "room for new cgroups after old ones end",
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
            needs: &[],
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
            needs: &[],
            group: "minor fault latency",
            covers: &[],
        },
        family: FullFault,
        feeds: MINOR_LATENCY,
        gives: "minor_latency_ns",
    },
    HookRow {
        hook: Hook {
            program: "sock_send_length",
            point: Tracepoint("sock_send_length", MESSAGE_LENGTH),
            needs: MESSAGE_NEEDS,
            group: SENT_GROUPS[0],
            covers: SENT_GROUPS,
        },
        family: Net,
        feeds: SENT,
        gives: "what is sent through sockets",
    },
    of_return("inet_sendmsg", SENDING, SENT_GROUPS[0], SENT, "what is sent by IPv4"),
    of_return("inet6_sendmsg", SENDING, SENT_GROUPS[1], SENT, "what is sent by IPv6"),
    of_return("unix_stream_sendmsg", SENDING, SENT_GROUPS[2], SENT, "what is sent by unix streams"),
    of_return(
        "unix_dgram_sendmsg",
        SENDING,
        SENT_GROUPS[3],
        SENT,
        "what is sent by unix datagrams",
    ),
    of_return(
        "inet_sendpage",
        PAGE_LENGTH,
        SENT_GROUPS[4],
        &[],
        "what sendfile and splice send by TCP",
    ),
    of_return(
        "unix_stream_sendpage",
        PAGE_LENGTH,
        SENT_GROUPS[5],
        &[],
        "what sendfile and splice send by unix streams",
    ),
    HookRow {
        hook: Hook {
            program: "sock_recv_length",
            point: Tracepoint("sock_recv_length", MESSAGE_LENGTH),
            needs: MESSAGE_NEEDS,
            group: RECEIVED_GROUPS[0],
            covers: RECEIVED_GROUPS,
        },
        family: Net,
        feeds: RECEIVED,
        gives: "what is received through sockets",
    },
    of_return("inet_recvmsg", RECEIVING, RECEIVED_GROUPS[0], RECEIVED, "what is received by IPv4"),
    of_return("inet6_recvmsg", RECEIVING, RECEIVED_GROUPS[1], RECEIVED, "what is received by IPv6"),
    of_return(
        "unix_stream_recvmsg",
        RECEIVING,
        RECEIVED_GROUPS[2],
        RECEIVED,
        "what is received by unix streams",
    ),
    of_return(
        "unix_dgram_recvmsg",
        RECEIVING,
        RECEIVED_GROUPS[3],
        RECEIVED,
        "what is received by unix datagrams",
    ),
    of_return(
        "sock_splice_read",
        SPLICE_LENGTH,
        "pages received",
        &[],
        "bytes spliced from TCP and unix sockets",
    ),
    HookRow {
        hook: Hook {
            program: "tcp_retransmit_skb",
            point: Tracepoint("tcp_retransmit_skb", &["*sock", "*sk_buff", "scalar"]),
            needs: RETRANSMIT_NEEDS,
            group: "segments sent again",
            covers: &[],
        },
        family: Net,
        feeds: &["retransmits"],
        gives: "retransmits",
    },
    HookRow {
        hook: Hook {
            program: "tcp_retransmit_sent",
            point: Tracepoint("tcp_retransmit_skb", &["*sock", "*sk_buff"]),
            needs: RETRANSMIT_NEEDS,
            group: "segments sent again",
            covers: &[],
        },
        family: Net,
        feeds: &["retransmits"],
        gives: "retransmits",
    },
    HookRow {
        hook: Hook {
            program: "inet_sock_set_state",
            point: Tracepoint("inet_sock_set_state", MESSAGE_LENGTH),
            needs: CONNECTION_NEEDS,
            group: "connections",
            covers: &[],
        },
        family: Net,
        feeds: &["connections"],
        gives: "connections",
    },
];
