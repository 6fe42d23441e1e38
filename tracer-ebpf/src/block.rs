//! What the kernel keeps per job slot, block device and operation.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use crate::{
    loglinear::KernelHist,
    table::{Field, Measurement, Place, Place::Block, Unit, described_bytes, fn_place::Of},
};

/// Operations, in the order of [`BlockKey::op`]; the names are the values of the tag `op`.
pub const OPS: [&str; 4] = ["read", "write", "discard", "flush"];

/// Index of each operation in [`OPS`].
pub mod op {
    /// Data from the device.
    pub const READ: u16 = 0;
    /// Data to the device, zeroing and zone appends included.
    pub const WRITE: u16 = 1;
    /// Discard and secure erase.
    pub const DISCARD: u16 = 2;
    /// Cache flush.
    pub const FLUSH: u16 = 3;
}

/// Key of a [`BlockCell`].
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockKey {
    /// Job slot.
    pub slot: u16,
    /// Index into [`OPS`].
    pub op: u16,
    /// The whole disk as `major << 20 | minor`.
    pub device: u32,
}

/// One slot's totals for one device and operation. Shared by all CPUs, updated atomically (`max` by
/// plain store: two completions in the same nanoseconds may lose the smaller of two new maxima).
///
/// An atomic addition costs as much as ten plain ones, so nothing is kept twice: `ops` and `bytes` are
/// the count and the sum of `size_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct BlockCell {
    pub errors: u64,
    pub queue_latency_ns: KernelHist,
    pub device_latency_ns: KernelHist,
    pub size_bytes: KernelHist,
}

use Unit::{Bytes, Count, Nanoseconds};

/// `job_block`: requests completed by local block devices.
pub static BLOCK: Measurement = Measurement {
    name: "job_block",
    key: "block",
    tags: &["device", "op"],
    help: "Block I/O by device and operation, as the device completed it. Network file systems do not pass here.",
    fields: &[
        Field::counter(
            "ops",
            Count,
            Place::CountOf("size_bytes"),
            "Requests completed; merged requests count once, split ones once each.",
        ),
        Field::counter(
            "bytes",
            Bytes,
            Place::SumOf("size_bytes"),
            "Bytes of the completed requests, those of failed ones left out.",
        ),
        Field::counter(
            "errors",
            Count,
            Block(offset_of!(BlockCell, errors)),
            "Completions with an error.",
        ),
        Field::histogram(
            "queue_latency_ns",
            Nanoseconds,
            Block(offset_of!(BlockCell, queue_latency_ns)),
            "Request made to issued to the device; unknown where the device's queue/iostats is 0.",
        ),
        Field::histogram(
            "device_latency_ns",
            Nanoseconds,
            Block(offset_of!(BlockCell, device_latency_ns)),
            "Issued to the device to completed.",
        ),
        Field::histogram(
            "size_bytes",
            Bytes,
            Block(offset_of!(BlockCell, size_bytes)),
            "Size of each completed request; a failed one counts as 0 bytes, and so does a flush.",
        ),
    ],
};

const _: () = assert!(
    described_bytes(&[&BLOCK], Of::Block) == size_of::<BlockCell>(),
    "every field of BlockCell needs its row in BLOCK"
);
