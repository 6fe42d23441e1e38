//! The read-only globals that are no offsets: how this host's cgroups lie, and what is switched on.

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident = $default:expr),* $(,)?) => {
        $($(#[$doc])* pub const $name: &str = stringify!($name);)*

        /// The globals themselves, as the programs read them.
        #[cfg(target_arch = "bpf")]
        #[allow(missing_docs, reason = "explained by the constants of the same names")]
        pub mod globals {
            $(#[unsafe(no_mangle)] pub static $name: u64 = $default;)*
        }
    };
}

/// What is recorded about waits, by the setting `WAITS`.
pub mod waits {
    /// How long they are.
    pub const OFF: u64 = 0;
    /// Also their causes.
    pub const CALLS: u64 = 1;
    /// Also the file systems that they are for.
    pub const FILES: u64 = 2;
}

settings! {
    /// 1 where the tasks' hierarchy is a cgroup v1 controller's, 0 where it is v2's.
    TASKS_IN_V1 = 0,
    /// Number of the tasks' hierarchy (`/proc/cgroups`; 0 is v2's).
    TASKS_HIERARCHY = 0,
    /// Number of the hierarchy that block I/O is charged in.
    BLOCK_HIERARCHY = 0,
    /// Table of the block hierarchy's ids: 0 where it is the tasks', 1 where it has its own.
    BLOCK_TABLE = 0,
    /// 1 where the kernel keeps `sched_info` and shows the run queue's clock: without them no time but
    /// `on_cpu_ns` is known.
    TIMES_KNOWN = 0,
    /// 1 where a bit tells that a task is inside a page fault (`in_user_fault`).
    FAULT_BIT_KNOWN = 0,
    /// 1 where a cgroup that is made outside all jobs gets a slot of its own until the agent knows whose
    /// it is, 0 where such a cgroup is the rest of the node's.
    NEW_CGROUPS_GET_SLOTS = 0,
    /// What is recorded about waits: [`waits`].
    WAITS = 0,
    /// Where a task's registers lie in its stack, on kernels without a helper that tells (before 5.15); 0 on
    /// others.
    REGISTERS_AT = 0,
    /// The bits of `TASK_COMPAT` by which a task is in a call of another machine's numbers.
    COMPAT_BITS = 0,
    /// 1 where a helper gives the current task with its type (5.11 on); 0 where its fields are read by
    /// address.
    CURRENT_TASK_TYPED = 0,
    /// Id of the cgroup of the job whose file operations are counted, in the tasks' hierarchy.
    JOB_CGROUP = 0,
    /// 1 where that job runs already, and is counted from now on; 0 where its first program begins it.
    JOB_RUNS = 0,
    /// 1 where another task may interrupt a program of a typed tracepoint (7.0 on), which keeps its own on the CPU.
    HOLDS_CPU = 0,
    /// Number of the type `list_head`, which any place that holds a pointer is given; 0 where this kernel gives an
    /// address no type (before 6.2), as the four below.
    CAST_TO_LIST = 0,
    /// That of `file`.
    CAST_TO_FILE = 0,
    /// That of `inode`.
    CAST_TO_INODE = 0,
    /// That of `super_block`.
    CAST_TO_SUPER = 0,
    /// That of `cpumask`, which any place that holds a word is given.
    CAST_TO_WORDS = 0,
    /// Bytes of a page.
    PAGE_BYTES = 4096,
    /// What the kernel's clock takes for a tick, in nanoseconds.
    TICK_NS = 0,
    /// The bit of a page's flags that it is the first of several by.
    PAGE_HEAD = 0,
    /// Bytes of a `struct inode`; 0 where they are unknown.
    INODE_BYTES = 0,
    /// Number of the call by which requests are submitted to io_uring.
    CALL_URING_ENTER = 0,
    /// One minor fault in this many is timed in full mode: the period of the event that times them. A
    /// prime: loops that fault in a pattern of a power of two are sampled at every phase.
    MINOR_LATENCY_EVERY = 61,
}
