//! What the kernel keeps per job slot and CPU: scheduling and page faults.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use crate::{
    loglinear::KernelHist,
    table::{Field, Measurement, Place::Job, Unit, described_bytes, fn_place::Of},
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
    pub minor: u64,
    pub major: u64,
    pub oom_kills: u64,
    pub run_queue_wait_ns: KernelHist,
    pub on_cpu_slice_ns: KernelHist,
    pub sleep_ns: KernelHist,
    pub blocked_ns: KernelHist,
    pub major_wait_ns: KernelHist,
}

use Unit::{Count, Nanoseconds};

/// `job_sched`: where the job's tasks spent their time.
pub static SCHED: Measurement = Measurement {
    name: "job_sched",
    key: "sched",
    tags: &[],
    help: "Scheduling: time on CPU, waiting for one, asleep and blocked, over all tasks of the job.",
    fields: &[
        Field::counter(
            "on_cpu_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, on_cpu_ns)),
            "Time on CPU, from the kernel's own sum_exec_runtime; includes tasks that are running at the moment of reading.",
        ),
        Field::counter(
            "switches_voluntary",
            Count,
            Job(offset_of!(JobBank, switches_voluntary)),
            "Context switches because the task slept or blocked (nvcsw).",
        ),
        Field::counter(
            "switches_involuntary",
            Count,
            Job(offset_of!(JobBank, switches_involuntary)),
            "Context switches because the task was preempted or yielded (nivcsw).",
        ),
        Field::counter(
            "migrations",
            Count,
            Job(offset_of!(JobBank, migrations)),
            "Moves of a task to another CPU (se.nr_migrations).",
        ),
        Field::counter(
            "forks",
            Count,
            Job(offset_of!(JobBank, forks)),
            "Processes and threads created by tasks of the job.",
        ),
        Field::counter(
            "execs",
            Count,
            Job(offset_of!(JobBank, execs)),
            "Programs executed by tasks of the job.",
        ),
        Field::histogram(
            "run_queue_wait_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, run_queue_wait_ns)),
            "Runnable but waiting for a CPU, per wait; the sum equals the kernel's run_delay.",
        ),
        Field::histogram(
            "on_cpu_slice_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, on_cpu_slice_ns)),
            "Wall time on CPU from switch-in to switch-out, interrupts included.",
        ),
        Field::histogram(
            "sleep_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, sleep_ns)),
            "Asleep by choice (interruptible: timers, locks, pipes, sockets; also stopped), per sleep.",
        ),
        Field::histogram(
            "blocked_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, blocked_ns)),
            "Blocked in the kernel (uninterruptible, or in_iowait): disk, network file systems, page locks; per wait.",
        ),
    ],
};

/// `job_fault`: page faults and out-of-memory kills.
pub static FAULT: Measurement = Measurement {
    name: "job_fault",
    key: "fault",
    tags: &[],
    help: "Page faults and out-of-memory kills.",
    fields: &[
        Field::counter(
            "minor",
            Count,
            Job(offset_of!(JobBank, minor)),
            "Minor page faults (the tasks' own min_flt, read when they leave a CPU).",
        ),
        Field::counter(
            "major",
            Count,
            Job(offset_of!(JobBank, major)),
            "Major page faults: the page came from disk (maj_flt, read when the task leaves a CPU).",
        ),
        Field::counter(
            "oom_kills",
            Count,
            Job(offset_of!(JobBank, oom_kills)),
            "Tasks of the job chosen by the out-of-memory killer. Where no hook reports which task, the number is from memory.events (v1: memory.oom_control), and unknown in the interval in which the cgroup is removed.",
        ),
        Field::histogram(
            "major_wait_ns",
            Nanoseconds,
            Job(offset_of!(JobBank, major_wait_ns)),
            "Time the task was blocked by a major fault; faults served without blocking are not included. Faults taken inside a system call are included in full mode only (page_fault_kernel or handle_mm_fault reports their entry). Pages that the kernel fetches itself (direct I/O, vmsplice, process_vm_readv, MADV_POPULATE_READ) never are, although they count in major.",
        ),
        Field::histogram(
            "minor_latency_ns",
            Nanoseconds,
            crate::latency::MINOR,
            "From entry to end of a minor fault; one in latency_sample_every is timed (full mode).",
        ),
        Field::counter(
            "minor_sampled",
            Count,
            crate::latency::SAMPLED,
            "Minor faults that minor_latency_ns stands for: latency_sample_every for each one timed. It differs from minor by chance, and by what the kernel withheld (full mode).",
        ),
        Field::histogram(
            "major_latency_ns",
            Nanoseconds,
            crate::latency::MAJOR,
            "From entry to end of a major fault; every one is timed (full mode).",
        ),
        Field::agent(
            "latency_sample_every",
            crate::table::Kind::Constant,
            Count,
            "One minor fault in this many is timed for minor_latency_ns (full mode).",
        ),
    ],
};

const _: () = assert!(
    described_bytes(&[&SCHED, &FAULT], Of::Job) == size_of::<JobBank>(),
    "every field of JobBank needs its row in SCHED or FAULT"
);
