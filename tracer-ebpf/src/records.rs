//! What the probes remember between two events, and what they tell the agent about cgroups.

use crate::ids::SLOTS;

/// Values of a pid's low bits, by which tasks are told apart. Live tasks whose pids share them take
/// turns: at each turn what the one did since it was last charged is lost. Counted in
/// [`CpuRecord::task_evictions`].
pub const PID_VALUES: u32 = 65_536;
/// Entries of the task table: the last two values share one. One more, and with its alignment it would
/// be past the 4 MiB that kernel 5.10 allows for one map value.
pub const TASKS: u32 = PID_VALUES - 1;
/// Bytes before the first of them. They lie in .bss, whose data the kernel begins 16 bytes past a cache line: so each
/// record is one line.
pub const BEFORE_TASKS: usize = 48;

/// Where the record of task `pid`, or of the one that shares its place, lies among [`TASKS`].
pub const fn task_index(pid: u32) -> u32 {
    let index = pid % PID_VALUES;
    if index < TASKS { index } else { TASKS - 1 }
}

/// Values of a pid's low bits, by which tasks chosen by the out-of-memory killer are told apart until they
/// exit. Two at once are counted in [`CpuRecord::task_evictions`], and the first is lost.
pub const VICTIM_VALUES: u32 = 1024;

/// A task as it last left a CPU. One cache line, found by the low bits of the pid.
///
/// Whose it is, its address tells: an executing thread takes over the pid of its process's first thread.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct TaskRecord {
    /// Whose record this is: [`CpuRecord::task`]'s low half with its lowest bit set; 0 for none.
    pub task: u32,
    /// How it left ([`left`]), and where that was for a cause, which and in which cell.
    pub left: u32,
    /// The kernel's counters as last charged; deltas wrap.
    pub nvcsw: u32,
    /// Involuntary switches.
    pub nivcsw: u32,
    /// Minor faults.
    pub min_flt: u32,
    /// Major faults.
    pub maj_flt: u32,
    /// `se.nr_migrations`.
    pub migrations: u32,
    /// Sum of the three above: the same as long as none has moved.
    pub rare_events: u32,
    /// `se.sum_exec_runtime` as last charged.
    pub sum_exec_ns: u64,
    /// Run-queue clock when it left.
    pub left_at_ns: u64,
    /// `sched_info.run_delay` when it left.
    pub run_delay_ns: u64,
    /// Blocked in a page fault not finished yet.
    pub fault_blocked_ns: u64,
}

const _: () = assert!(size_of::<TaskRecord>() == 64, "a task record is one cache line");

/// The kernel's own counters of a task that are charged by difference when it leaves a CPU: its field, where
/// its record keeps it as last charged, and the total of [`JobBank`](crate::tables::job::JobBank) that gets
/// the difference. Most switches move the `usual` ones; the `rare` ones are looked at only where their sum
/// ([`TaskRecord::rare_events`]) has moved. One more counter is one more line here: charging, adopting and
/// beginning of records, the switch hooks' needs and the fields that they feed follow.
#[macro_export]
macro_rules! task_counters {
    (usual: $then:ident) => {
        $then! {
            TASK_SUM_EXEC, sum_exec_ns: u64 => on_cpu_ns;
            TASK_NVCSW, nvcsw: u32 => switches_voluntary;
            TASK_NIVCSW, nivcsw: u32 => switches_involuntary;
        }
    };
    (rare: $then:ident) => {
        $then! {
            TASK_MIN_FLT, min_flt: u32 => minor;
            TASK_MAJ_FLT, maj_flt: u32 => major;
            TASK_MIGRATIONS, migrations: u32 => migrations;
        }
    };
}

/// How a task left its CPU.
pub mod left {
    /// Preempted or yielding: still runnable.
    pub const RUNNABLE: u32 = 0;
    /// Asleep, interruptibly.
    pub const ASLEEP: u32 = 1;
    /// Uninterruptible or in_iowait.
    pub const BLOCKED: u32 = 2;
    /// Flag: it was inside a page fault.
    pub const IN_FAULT: u32 = 4;
    /// It has not left: it was seen to enter a CPU last.
    pub const ON_CPU: u32 = 8;

    /// Where the cause of a sleep or a block begins, four bits.
    pub const CAUSE_SHIFT: u32 = 4;
    /// Where the number of its cell begins, one more than it is; 0 for none.
    pub const CELL_SHIFT: u32 = 8;
    /// Flag: the last sleep in a plain read or write whose file was asked for was not of a regular file. Kept
    /// as the cause of the last sleep is.
    pub const NO_FILE: u32 = 1 << 27;
    /// Where the cause of the last sleep in a call begins, four bits, one more than it is; 0 for none. Kept
    /// while the task is on a CPU, blocked or stopped: after a stop the call goes on under another number.
    pub const LAST_SHIFT: u32 = 28;
    /// That cause's bits.
    pub const LAST: u32 = 0xf << LAST_SHIFT;
    /// All that is kept while the task does something else.
    pub const KEPT: u32 = NO_FILE | LAST;

    const _: () = assert!(
        crate::cells::CELLS << CELL_SHIFT < NO_FILE,
        "one more than a cell's number fits below what is kept"
    );

    /// How, without [`IN_FAULT`] and what caused it.
    #[inline(always)]
    pub const fn how(left: u32) -> u32 {
        left & (ASLEEP | BLOCKED | ON_CPU)
    }

    /// The number of its cell, one more than it is; 0 for none.
    #[inline(always)]
    pub const fn cell(left: u32) -> u32 {
        (left & !KEPT) >> CELL_SHIFT
    }
}

/// What runs on a CPU now, and what this CPU could not account for.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CpuRecord {
    /// Run-queue clock at the last switch, 0 before the first.
    pub since_ns: u64,
    /// Slot of the running task. In one word with the pid: another CPU that moves the task to another
    /// cgroup writes both at once, and what runs here by then is not taken for the one that was moved.
    pub slot: u32,
    /// The running task's pid when it entered; 0 when idle.
    pub pid: u32,
    /// The running task: the address of its `task_struct`.
    pub task: u64,
    /// Blocked in the page fault that the running task is in.
    pub fault_blocked_ns: u64,
    /// What the running task had been charged of its `se.sum_exec_runtime` when it entered.
    pub sum_exec_ns: u64,
    /// Events whose slot had no bank.
    pub no_bank: u64,
    /// Task records taken over from another live task.
    pub task_evictions: u64,
    /// Cgroups made that found no free way in their set.
    pub ids_full: u64,
    /// Cgroups made that found no slot to spare.
    pub no_spare: u64,
    /// Completions that found no room for a new device and operation.
    pub block_full: u64,
    /// Waits that found no room for a new file system and call, or whose task changed its slot.
    pub wait_full: u64,
    /// Life-cycle events that found the ring buffer full.
    pub ring_full: u64,
}

/// All that a CPU keeps for itself.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cpu {
    /// First: programs know it by the address of the whole.
    pub record: CpuRecord,
    /// How often a task of each slot has left this CPU, or its bank here has changed while none of its tasks ran; wraps.
    /// A slot that has moved on no CPU since, and runs on none, has the same banks: they need not be read.
    pub moves: [u32; SLOTS],
}

/// A page fault in progress, by the low bits of the pid (`--faults full`).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FaultEntry {
    /// CLOCK_MONOTONIC at entry.
    pub at_ns: u64,
    /// Whose fault this is.
    pub pid: u32,
    #[doc(hidden)]
    pub _pad: u32,
}

/// What happened, by [`LifeEvent::kind`].
pub mod life {
    /// A cgroup was made, and given `slot` (0: there was none to spare).
    pub const MADE: u32 = 0;
    /// A cgroup was removed; without the agent, one with a slot.
    pub const REMOVED: u32 = 1;
    /// A task in a slot with [`crate::ids::TELL_EXECS`] executed a program.
    pub const EXECUTED: u32 = 2;
    /// A cgroup was renamed, which cgroup v1 allows: its path, and those of all below it, are others now.
    pub const RENAMED: u32 = 3;
    /// A cgroup was removed of a hierarchy by which no jobs are told apart, but memory is counted. Its path
    /// tells whose it was.
    pub const DISCHARGED: u32 = 4;
}

/// Most bytes of a cgroup's path that an event carries: as many as the kernel's tracepoint.
pub const PATH_BYTES: usize = 1024;

/// A fact about a cgroup or a task's program, for the agent. Cut off behind the path.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LifeEvent {
    /// [`life`].
    pub kind: u32,
    /// 0 for the tasks' hierarchy, 1 for block I/O's.
    pub hierarchy: u32,
    /// The cgroup's id: the inode of its directory. Of a program executed: 0.
    pub id: u64,
    /// When, CLOCK_MONOTONIC. Of a program executed: 0.
    pub at_ns: u64,
    /// Of a cgroup removed: the most memory that was ever charged to it, in pages; 0 where nobody counted it.
    pub peak_pages: u64,
    /// Slot it is mapped to.
    pub slot: u32,
    /// Of a program executed: the process.
    pub pid: u32,
    /// Of a program executed: its real user id. Of a cgroup: of who did it.
    pub uid: u32,
    /// Bytes of [`Self::path`] that are there, the last one 0.
    pub path_bytes: u32,
    /// Of a cgroup: its path below the root of its hierarchy.
    pub path: [u8; PATH_BYTES],
}

/// Bytes of an event without its path.
pub const LIFE_HEADER_BYTES: usize = core::mem::offset_of!(LifeEvent, path);
