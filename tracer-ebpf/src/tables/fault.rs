//! The table of page faults: what each slot's bank counts of them, and what `--faults full` adds.

use core::mem::offset_of;

use super::{job::JobBank, latency::LatencyBank};
use crate::{
    measurement,
    table::{
        Place::{Job, Latency},
        described_bytes,
        fn_place::Of,
    },
};

measurement! {
    /// `job_fault`: page faults and out-of-memory kills.
    FAULT, Fault = "job_fault", key "fault", tags [],
        "Page faults and out-of-memory kills.";

    counter minor: Count in Job(offset_of!(JobBank, minor)),
        "Minor page faults (the tasks' own min_flt, read when they leave a CPU).";
    counter major: Count in Job(offset_of!(JobBank, major)),
        "Major page faults: the page came from disk (maj_flt, read when the task leaves a CPU).";
    counter oom_kills: Count in Job(offset_of!(JobBank, oom_kills)),
        "Tasks of the job chosen by the out-of-memory killer. Where no hook reports which task, the number is from memory.events (v1: memory.oom_control), and unknown in the interval in which the cgroup is removed.";
    histogram major_wait_ns: Nanoseconds in Job(offset_of!(JobBank, major_wait_ns)),
        "Time the task was blocked by a major fault; faults served without blocking are not included. Faults taken inside a system call are included in full mode only (page_fault_kernel or handle_mm_fault reports their entry). Pages that the kernel fetches itself (direct I/O, vmsplice, process_vm_readv, MADV_POPULATE_READ) never are, although they count in major.";
    histogram minor_latency_ns: Nanoseconds in Latency(offset_of!(LatencyBank, minor_latency_ns)),
        "From entry to end of a minor fault; one in latency_sample_every is timed (full mode).";
    counter minor_sampled: Count in Latency(offset_of!(LatencyBank, minor_sampled)),
        "Minor faults that minor_latency_ns stands for: latency_sample_every for each one timed. It differs from minor by chance, and by what the kernel withheld (full mode).";
    histogram major_latency_ns: Nanoseconds in Latency(offset_of!(LatencyBank, major_latency_ns)),
        "From entry to end of a major fault; each is timed whose end the kernel reports: all but a few in a hundred (full mode).";
    constant latency_sample_every: Count,
        "One minor fault in this many is timed for minor_latency_ns (full mode).";
}

const _: () = assert!(
    described_bytes(&[&FAULT], Of::Latency) == size_of::<LatencyBank>(),
    "every field of LatencyBank needs its row in FAULT"
);
