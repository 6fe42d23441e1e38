//! Lists that several hooks share: kernel fields that their programs cannot do without, arguments of their
//! tracepoints, fields that they feed.

use tracer_ebpf::{
    tables::{
        job::SCHED,
        wait::{blocked, sleep},
    },
    task_counters,
};

/// All of these lists, one after the other.
macro_rules! all_of {
    ($($list:expr),+ $(,)?) => {
        &joined::<&str, { 0 $(+ $list.len())+ }>("", &[$(&$list),+])
    };
}
pub(super) use all_of;

/// `lists` one after the other, `N` in all; `blank` fills what is not yet there.
pub(super) const fn joined<T: Copy, const N: usize>(blank: T, lists: &[&[T]]) -> [T; N] {
    let mut all = [blank; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut of_list = 0;
        while of_list < lists[list].len() {
            all[at] = lists[list][of_list];
            at += 1;
            of_list += 1;
        }
        list += 1;
    }
    all
}

/// The kernel's fields that [`task_counters`] lists.
macro_rules! kernel_fields {
    ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => { [$(stringify!($field)),*] };
}
/// The totals that they are charged to.
macro_rules! totals {
    ($($field:ident, $last:ident: $word:ident => $total:ident;)*) => { [$(stringify!($total)),*] };
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
/// What the causes of waits are told by, on any kernel from which they can be.
pub const CALLS_NEED: [&str; 3] = ["TASK_COMPAT", "TASK_STACK", "CALL_NUMBER"];
/// What the file systems that are waited for are told by.
pub const FILES_NEED: [&str; 12] = [
    "CALL_FIRST",
    "CALL_SECOND",
    "CALL_THIRD",
    "TASK_FILES",
    "FILES_TABLE",
    "FILES_MOST",
    "FILES_FILES",
    "FILE_INODE",
    "INODE_MODE",
    "INODE_SUPER",
    "SUPER_DEVICE",
    "SUPER_MAGIC",
];
/// Of a program that looks up the cgroup of a task.
pub const TASK_NEEDS: &[&str] = &["TASK_CGROUPS", "CGROUP_KN", "KERNFS_ID"];
pub const TASK_AND_PID_NEED: &[&str] = all_of!(TASK_NEEDS, ["TASK_PID"]);

const COUNTERS_NEED: &[&str] =
    all_of!(task_counters!(usual: kernel_fields), task_counters!(rare: kernel_fields));
pub const UNTIMED_NEEDS: &[&str] = all_of!(
    ["TASK_PID", "TASK_TGID", "TASK_EXIT_CODE"],
    TASK_NEEDS,
    COUNTERS_NEED,
    ["TASK_IN_IOWAIT", "TASK_FLAGS"]
);
pub const UNTIMED_3_NEEDS: &[&str] = all_of!(UNTIMED_NEEDS, ["TASK_STATE"]);
pub const SWITCH_NEEDS: &[&str] = all_of!(UNTIMED_NEEDS, TIMES_NEED);
pub const SWITCH_3_NEEDS: &[&str] = all_of!(UNTIMED_3_NEEDS, TIMES_NEED);

/// Of a program that is told of a cgroup.
pub const CGROUP_NEEDS: &[&str] = &["CGROUP_ROOT", "ROOT_HIERARCHY", "CGROUP_KN", "KERNFS_ID"];
pub const MADE_NEEDS: &[&str] = all_of!(CGROUP_NEEDS, ["CGROUP_PARENT_CSS", "CSS_CGROUP"]);
/// A task that moves is charged first.
pub const ATTACH_SELF_NEEDS: &[&str] = all_of!(CGROUP_NEEDS, ["TASK_PID"], COUNTERS_NEED);
pub const ATTACH_NEEDS: &[&str] = all_of!(ATTACH_SELF_NEEDS, ["TASK_ON_CPU", "TASK_CPU"]);

pub const BLOCK_NEEDS: &[&str] = &[
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
];

const SOCKET_NEEDS: &[&str] = &["SOCK_FAMILY", "SOCK_TYPE", "SOCK_PROTOCOL"];
/// Of a program that is told of a socket's inner half.
pub const MESSAGE_NEEDS: &[&str] = all_of!(TASK_NEEDS, SOCKET_NEEDS);
/// Of one that is told of its outer one.
pub const OUTER_MESSAGE_NEEDS: &[&str] = all_of!(MESSAGE_NEEDS, ["SOCKET_SK"]);
pub const CONNECTION_NEEDS: &[&str] = all_of!(TASK_NEEDS, ["SOCK_PROTOCOL"]);
/// Field by which a socket's job is known; cgroup v2 alone has it.
pub const SOCKET_CGROUP: &str = "SOCK_CGROUP";
pub const RETRANSMIT_NEEDS: &[&str] = &[SOCKET_CGROUP, "CGROUP_KN", "KERNFS_ID"];

pub const ATTACH_ARGUMENTS: &[&str] = &["*cgroup", "*", "*task_struct", "scalar"];
pub const SWITCH_WITH_STATE: &[&str] = &["scalar", "*task_struct", "*task_struct", "scalar"];
pub const SWITCH_WITHOUT_STATE: &[&str] = &["scalar", "*task_struct", "*task_struct"];

pub const MESSAGE_LENGTH: &[&str] = &["*sock", "scalar", "scalar"];
pub const SENDING: &[&str] = &["*socket", "*msghdr", "scalar"];
pub const RECEIVING: &[&str] = &["*socket", "*msghdr", "scalar", "scalar"];
pub const PAGE_LENGTH: &[&str] = &["*socket", "*page", "scalar", "scalar", "scalar"];
pub const SPLICE_LENGTH: &[&str] = &["*file", "*", "*pipe_inode_info", "scalar", "scalar"];

/// What a tracepoint of messages tells, of which other kernels have each by a hook of its own: the first by
/// IPv4's. Pages are told of as messages.
pub const SENT_GROUPS: &[&str] = &[
    "messages sent",
    "messages sent, IPv6",
    "messages sent, unix streams",
    "messages sent, unix datagrams",
    "pages sent",
    "pages sent, unix streams",
];
pub const RECEIVED_GROUPS: &[&str] = &[
    "messages received",
    "messages received, IPv6",
    "messages received, unix streams",
    "messages received, unix datagrams",
];

/// Fed by every hook of messages sent, and of messages received.
pub const SENT: &[&str] = &["sent_bytes", "sent_calls"];
pub const RECEIVED: &[&str] = &["received_bytes", "received_calls"];
/// Fed by every switch hook.
pub const COUNTERS: &[&str] = all_of!(
    task_counters!(usual: totals),
    task_counters!(rare: totals),
    ["cpus_used", "busiest_cpu_ns", "exits", "exits_failed", "exits_killed", "thread_exits"]
);
/// Fed by those that know the times. A major fault's wait is a part of the time blocked.
pub const COUNTERS_AND_TIMES: &[&str] = all_of!(
    COUNTERS,
    ["run_queue_wait_ns", "on_cpu_slice_ns", "sleep_ns", "blocked_ns", "major_wait_ns"],
    CAUSES,
    ["job_wait"],
);

/// The fields of `job_sched` that are causes of waits.
pub const CAUSES: [&str; 2 * (sleep::CAUSES + blocked::CAUSES)] = {
    let mut causes = [""; 2 * (sleep::CAUSES + blocked::CAUSES)];
    let first = SCHED.fields.len() - causes.len();
    let mut at = 0;
    while at < causes.len() {
        causes[at] = SCHED.fields[first + at].name;
        at += 1;
    }
    causes
};
