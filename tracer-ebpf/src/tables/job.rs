//! What the kernel keeps per job slot and CPU: scheduling, page faults and the network,
//! whose rows stand in `fault.rs` and `net.rs`.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use super::net::{FAMILIES, NetCounts};
use crate::{loglinear::KernelHist, measurement, table::Place::Job};

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
    pub minor: u64,
    pub major: u64,
    pub oom_kills: u64,
    pub run_queue_wait_ns: KernelHist,
    pub on_cpu_slice_ns: KernelHist,
    pub sleep_ns: KernelHist,
    pub blocked_ns: KernelHist,
    pub major_wait_ns: KernelHist,
    /// By [`family`](super::net::family).
    pub net: [NetCounts; FAMILIES.len()],
    pub retransmits: u64,
    pub connections: u64,
}

measurement! {
    /// `job_sched`: where the job's tasks spent their time.
    SCHED, Sched = "job_sched", key "sched", tags [],
        "Scheduling: time on CPU, waiting for one, asleep and blocked, over all tasks of the job.";

    counter on_cpu_ns: Nanoseconds in Job(offset_of!(JobBank, on_cpu_ns)),
        "Time on CPU, from the kernel's own sum_exec_runtime; includes tasks that are running at the moment of reading.";
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
    histogram run_queue_wait_ns: Nanoseconds in Job(offset_of!(JobBank, run_queue_wait_ns)),
        "Runnable but waiting for a CPU, per wait; the sum equals the kernel's run_delay.";
    histogram on_cpu_slice_ns: Nanoseconds in Job(offset_of!(JobBank, on_cpu_slice_ns)),
        "Wall time on CPU from switch-in to switch-out, interrupts included.";
    histogram sleep_ns: Nanoseconds in Job(offset_of!(JobBank, sleep_ns)),
        "Asleep by choice (interruptible: timers, locks, pipes, sockets; also stopped), per sleep.";
    histogram blocked_ns: Nanoseconds in Job(offset_of!(JobBank, blocked_ns)),
        "Blocked in the kernel (uninterruptible, or in_iowait): disk, network file systems, page locks; per wait.";
}
