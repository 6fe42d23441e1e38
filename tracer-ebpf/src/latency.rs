//! What `--faults full` adds per job slot and CPU: how long page faults took.
#![allow(missing_docs, reason = "each field is explained by its row of the table in fault.rs")]

use crate::loglinear::KernelHist;

/// One slot's fault latencies on one CPU; its rows stand in [`FAULT`](crate::fault::FAULT).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LatencyBank {
    /// Minor faults that those in `minor_latency_ns` stand for.
    pub minor_sampled: u64,
    pub minor_latency_ns: KernelHist,
    pub major_latency_ns: KernelHist,
}
