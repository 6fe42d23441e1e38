//! What `--faults full` adds per job slot and CPU: how long page faults took.
#![allow(missing_docs, reason = "each field is explained by its row of the table in job.rs")]

use core::mem::offset_of;

use crate::{
    job::FAULT,
    loglinear::KernelHist,
    table::{Place, described_bytes, fn_place::Of},
};

/// One slot's fault latencies on one CPU; its rows stand in [`FAULT`].
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LatencyBank {
    /// Minor faults that those in `minor_latency_ns` stand for.
    pub minor_sampled: u64,
    pub minor_latency_ns: KernelHist,
    pub major_latency_ns: KernelHist,
}

pub(crate) const SAMPLED: Place = Place::Latency(offset_of!(LatencyBank, minor_sampled));
pub(crate) const MINOR: Place = Place::Latency(offset_of!(LatencyBank, minor_latency_ns));
pub(crate) const MAJOR: Place = Place::Latency(offset_of!(LatencyBank, major_latency_ns));

const _: () = assert!(
    described_bytes(&[&FAULT], Of::Latency) == size_of::<LatencyBank>(),
    "every field of LatencyBank needs its row in FAULT"
);
