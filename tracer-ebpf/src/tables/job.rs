//! What the kernel keeps per job slot and CPU: scheduling, page faults and the network,
//! whose rows stand in `fault.rs` and `net.rs`.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use super::{
    net::{FAMILIES, NetCounts},
    wait::{Waits, blocked, sleep},
};
use crate::{
    loglinear::KernelHist,
    measurement,
    table::Place::{self, Job},
};

/// One slot's totals on one CPU. Written by the probes of that CPU alone, so without locks.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct JobBank {
    pub on_cpu_ns: u64,
    pub switches_voluntary: u64,
    pub switches_involuntary: u64,
    pub migrations: u64,
    pub forks: u64,
    pub execs: u64,
    pub exits: u64,
    pub exits_failed: u64,
    pub exits_killed: u64,
    pub minor: u64,
    pub major: u64,
    pub oom_kills: u64,
    /// By cause: together what is in `sleep_ns`. Not last: a cause has four bits, and the verifier wants so
    /// many to lie within the bank.
    pub sleeps: [Waits; sleep::CAUSES],
    /// By cause: together what is in `blocked_ns`.
    pub blocks: [Waits; blocked::CAUSES],
    pub run_queue_wait_ns: KernelHist,
    pub on_cpu_slice_ns: KernelHist,
    pub sleep_ns: KernelHist,
    pub blocked_ns: KernelHist,
    pub major_wait_ns: KernelHist,
    /// By [`family`](super::net::family).
    pub net: [NetCounts; FAMILIES.len()],
    pub retransmits: u64,
    pub connections: u64,
    pub thread_exits: u64,
}

const fn sleeps(cause: u32, field: usize) -> Place {
    Job(offset_of!(JobBank, sleeps) + cause as usize * size_of::<Waits>() + field)
}

const fn blocks(cause: u32, field: usize) -> Place {
    Job(offset_of!(JobBank, blocks) + cause as usize * size_of::<Waits>() + field)
}

const NS: usize = offset_of!(Waits, ns);
const COUNT: usize = offset_of!(Waits, count);

measurement! {
    /// `job_sched`: where the job's tasks spent their time.
    SCHED, Sched = "job_sched", key "sched", tags [],
        "Scheduling: time on CPU, waiting for one, asleep and blocked, over all tasks of the job. The fields sleep_…_ns and blocked_…_ns divide sleep_ns and blocked_ns by what the task waited for, and add up to them exactly; with `waits = \"off\"` they are absent.";

    counter on_cpu_ns: Nanoseconds in Job(offset_of!(JobBank, on_cpu_ns)),
        "Time on CPU, from the kernel's own sum_exec_runtime; includes tasks that are running at the moment of reading.";
    constant cpus_used: Count,
        "Number of CPUs on which the job's tasks have run since it has been counted, as charged at context switches; without those that have had less than a hundredth of the busiest one's time.";
    counter busiest_cpu_ns: Nanoseconds,
        "Time on that CPU on which they have run longest since then: by how much the longest time grew. With the mean, on_cpu_ns by cpus_used, it tells how evenly the CPUs are used.";
    counter switches_voluntary: Count in Job(offset_of!(JobBank, switches_voluntary)),
        "Context switches because the task slept or blocked (nvcsw).";
    counter switches_involuntary: Count in Job(offset_of!(JobBank, switches_involuntary)),
        "Context switches because the task was preempted or yielded (nivcsw).";
    counter migrations: Count in Job(offset_of!(JobBank, migrations)),
        "Moves of a task to another CPU (se.nr_migrations).";
    counter forks: Count in Job(offset_of!(JobBank, forks)),
        "Processes and threads created by tasks of the job.";
    counter execs: Count in Job(offset_of!(JobBank, execs)),
        "Programs executed by tasks of the job.";
    counter exits: Count in Job(offset_of!(JobBank, exits)),
        "Processes of the job that ended, counted when their first thread leaves its CPU for good.";
    counter exits_failed: Count in Job(offset_of!(JobBank, exits_failed)),
        "Part of exits: those with a status other than 0. Where the first thread ended before the others, its own counts.";
    counter exits_killed: Count in Job(offset_of!(JobBank, exits_killed)),
        "Part of exits: those that a signal ended. Where a thread that is not its process's first executes a program, the kernel ends the first one so.";
    counter thread_exits: Count in Job(offset_of!(JobBank, thread_exits)),
        "Threads of the job that ended, besides the first of each process; workers of io_uring too, which are not among forks. With exits: all tasks that ended.";
    histogram run_queue_wait_ns: Nanoseconds in Job(offset_of!(JobBank, run_queue_wait_ns)),
        "Runnable but waiting for a CPU, per wait; the sum equals the kernel's run_delay.";
    histogram on_cpu_slice_ns: Nanoseconds in Job(offset_of!(JobBank, on_cpu_slice_ns)),
        "Wall time on CPU from switch-in to switch-out, interrupts included.";
    histogram sleep_ns: Nanoseconds in Job(offset_of!(JobBank, sleep_ns)),
        "Asleep by choice (interruptible: timers, locks, pipes, sockets; also stopped), per sleep.";
    histogram blocked_ns: Nanoseconds in Job(offset_of!(JobBank, blocked_ns)),
        "Blocked in the kernel (uninterruptible, or in_iowait): disk, network file systems, page locks; per wait.";
    counter sleep_timer_ns: Nanoseconds in sleeps(sleep::TIMER, NS),
        "Asleep for a given time (nanosleep, clock_nanosleep).";
    counter sleep_timer_waits: Count in sleeps(sleep::TIMER, COUNT),
        "Number of waits in sleep_timer_ns.";
    counter sleep_lock_ns: Nanoseconds in sleeps(sleep::LOCK, NS),
        "Asleep until another task releases a lock or wakes it (futex: mutexes, condition variables, joins, OpenMP barriers; flock, fcntl).";
    counter sleep_lock_waits: Count in sleeps(sleep::LOCK, COUNT),
        "Number of waits in sleep_lock_ns.";
    counter sleep_poll_ns: Nanoseconds in sleeps(sleep::POLL, NS),
        "Asleep until one of several files is ready (poll, select, epoll).";
    counter sleep_poll_waits: Count in sleeps(sleep::POLL, COUNT),
        "Number of waits in sleep_poll_ns.";
    counter sleep_socket_ns: Nanoseconds in sleeps(sleep::SOCKET, NS),
        "Asleep in a socket call (recv, send, accept, connect).";
    counter sleep_socket_waits: Count in sleeps(sleep::SOCKET, COUNT),
        "Number of waits in sleep_socket_ns.";
    counter sleep_pipe_ns: Nanoseconds in sleeps(sleep::PIPE, NS),
        "Asleep in a plain read or write: of pipes, terminals and sockets. One of a regular file (FUSE) is in sleep_other_ns, but for some below 1 ms, for which the file is not asked.";
    counter sleep_pipe_waits: Count in sleeps(sleep::PIPE, COUNT),
        "Number of waits in sleep_pipe_ns.";
    counter sleep_child_ns: Nanoseconds in sleeps(sleep::CHILD, NS),
        "Asleep until a child ends or stops (wait4, waitid).";
    counter sleep_child_waits: Count in sleeps(sleep::CHILD, COUNT),
        "Number of waits in sleep_child_ns.";
    counter sleep_signal_ns: Nanoseconds in sleeps(sleep::SIGNAL, NS),
        "Asleep until a signal arrives (pause, sigsuspend, sigtimedwait).";
    counter sleep_signal_waits: Count in sleeps(sleep::SIGNAL, COUNT),
        "Number of waits in sleep_signal_ns.";
    counter sleep_message_ns: Nanoseconds in sleeps(sleep::MESSAGE, NS),
        "Asleep until a message or a System V semaphore is available (msgrcv, semop, mq_timedreceive).";
    counter sleep_message_waits: Count in sleeps(sleep::MESSAGE, COUNT),
        "Number of waits in sleep_message_ns.";
    counter sleep_ring_ns: Nanoseconds in sleeps(sleep::RING, NS),
        "Asleep until asynchronous I/O completes (io_uring_enter, io_getevents); idle workers of io_uring count here too.";
    counter sleep_ring_waits: Count in sleeps(sleep::RING, COUNT),
        "Number of waits in sleep_ring_ns.";
    counter sleep_ioctl_ns: Nanoseconds in sleeps(sleep::IOCTL, NS),
        "Asleep in an ioctl: GPU and RDMA drivers.";
    counter sleep_ioctl_waits: Count in sleeps(sleep::IOCTL, COUNT),
        "Number of waits in sleep_ioctl_ns.";
    counter sleep_stopped_ns: Nanoseconds in sleeps(sleep::STOPPED, NS),
        "Stopped (SIGSTOP), held by a debugger, or frozen with its cgroup (by cgroup v1's freezer only if it was not asleep already).";
    counter sleep_stopped_waits: Count in sleeps(sleep::STOPPED, COUNT),
        "Number of waits in sleep_stopped_ns.";
    counter sleep_other_ns: Nanoseconds in sleeps(sleep::OTHER, NS),
        "Asleep in any other call, or in none.";
    counter sleep_other_waits: Count in sleeps(sleep::OTHER, COUNT),
        "Number of waits in sleep_other_ns.";
    counter blocked_read_ns: Nanoseconds in blocks(blocked::READ, NS),
        "Blocked reading a file (read, pread, sendfile).";
    counter blocked_read_waits: Count in blocks(blocked::READ, COUNT),
        "Number of waits in blocked_read_ns.";
    counter blocked_write_ns: Nanoseconds in blocks(blocked::WRITE, NS),
        "Blocked writing a file (write, pwrite, fallocate).";
    counter blocked_write_waits: Count in blocks(blocked::WRITE, COUNT),
        "Number of waits in blocked_write_ns.";
    counter blocked_sync_ns: Nanoseconds in blocks(blocked::SYNC, NS),
        "Blocked until written data is stored (fsync, fdatasync, sync, msync, and close, at which network file systems store it).";
    counter blocked_sync_waits: Count in blocks(blocked::SYNC, COUNT),
        "Number of waits in blocked_sync_ns.";
    counter blocked_metadata_ns: Nanoseconds in blocks(blocked::METADATA, NS),
        "Blocked on names, attributes, directories or file locks (open, stat, getdents, unlink, rename).";
    counter blocked_metadata_waits: Count in blocks(blocked::METADATA, COUNT),
        "Number of waits in blocked_metadata_ns.";
    counter blocked_fault_ns: Nanoseconds in blocks(blocked::FAULT, NS),
        "Blocked in a page fault taken outside a system call: a mapped file, swap, or the lock of the address space.";
    counter blocked_fault_waits: Count in blocks(blocked::FAULT, COUNT),
        "Number of waits in blocked_fault_ns.";
    counter blocked_memory_ns: Nanoseconds in blocks(blocked::MEMORY, NS),
        "Blocked in a call that changes the address space, mostly for its lock (mmap, munmap, brk, mprotect, madvise).";
    counter blocked_memory_waits: Count in blocks(blocked::MEMORY, COUNT),
        "Number of waits in blocked_memory_ns.";
    counter blocked_child_ns: Nanoseconds in blocks(blocked::CHILD, NS),
        "Blocked until a child that borrows the memory executes a program or ends (vfork, posix_spawn).";
    counter blocked_child_waits: Count in blocks(blocked::CHILD, COUNT),
        "Number of waits in blocked_child_ns.";
    counter blocked_exec_ns: Nanoseconds in blocks(blocked::EXEC, NS),
        "Blocked while executing a program (execve).";
    counter blocked_exec_waits: Count in blocks(blocked::EXEC, COUNT),
        "Number of waits in blocked_exec_ns.";
    counter blocked_exit_ns: Nanoseconds in blocks(blocked::EXIT, NS),
        "Blocked while exiting.";
    counter blocked_exit_waits: Count in blocks(blocked::EXIT, COUNT),
        "Number of waits in blocked_exit_ns.";
    counter blocked_ioctl_ns: Nanoseconds in blocks(blocked::IOCTL, NS),
        "Blocked in an ioctl: GPU and RDMA drivers.";
    counter blocked_ioctl_waits: Count in blocks(blocked::IOCTL, COUNT),
        "Number of waits in blocked_ioctl_ns.";
    counter blocked_other_ns: Nanoseconds in blocks(blocked::OTHER, NS),
        "Blocked in any other call; includes io_uring's I/O, because its calls do not show what they wait for.";
    counter blocked_other_waits: Count in blocks(blocked::OTHER, COUNT),
        "Number of waits in blocked_other_ns.";
}
