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

/// Which slot, device and operation a [`BlockCell`] is for, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockKey {
    /// Job slot.
    pub slot: u16,
    /// Index into [`OPS`].
    pub op: u16,
    /// The whole disk as `major << 20 | minor`.
    pub device: u32,
}

impl BlockKey {
    /// The key as a word; never 0, which marks a free cell.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        (self.slot as u64) << 48 | (self.op as u64 + 1) << 32 | self.device as u64
    }

    /// The key of a cell in use; `None` for a free one.
    pub const fn of_word(word: u64) -> Option<Self> {
        match (word >> 32) as u16 {
            0 => None,
            op => Some(Self { slot: (word >> 48) as u16, op: op - 1, device: word as u32 }),
        }
    }

    /// Where the key's set of cells lies among all sets, before the mask.
    #[inline(always)]
    pub const fn set(self) -> u32 {
        let spread = (self.device as u64 * 0x9e37_79b1) >> 20;
        self.slot as u32 * OPS.len() as u32 + self.op as u32 + spread as u32
    }
}

/// Cells of a set.
pub const CELL_WAYS: usize = 8;
/// Sets of cells; a power of two.
pub const CELL_SETS: u32 = 64;
/// Most combinations of slot, device and operation.
pub const CELLS: u32 = CELL_SETS * CELL_WAYS as u32;

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

/// A set of cells: a completion finds its own by the set and eight compares, and keys and cells side
/// by side spare it a page more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CellSet {
    /// [`BlockKey::word`] of each cell, 0 for a free one: one cache line.
    pub keys: [u64; CELL_WAYS],
    /// The cells.
    pub cells: [BlockCell; CELL_WAYS],
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
            "Request made to issued to the device; unknown where the device's queue/iostats is 0, and 0 on kernels (6.12 to 6.18 seen) that stamp both with one cached time.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_its_word_and_no_word_is_zero() {
        for key in [
            BlockKey { slot: 0, op: op::READ, device: 0 },
            BlockKey { slot: u16::MAX, op: op::FLUSH, device: u32::MAX },
        ] {
            assert_ne!(key.word(), 0);
            assert_eq!(BlockKey::of_word(key.word()), Some(key));
        }
        assert_eq!(BlockKey::of_word(0), None);
    }

    #[test]
    fn sixty_four_slots_on_two_disks_find_room() {
        let mut used = [0; CELL_SETS as usize];
        for slot in 0..64 {
            for op in [op::READ, op::WRITE] {
                for device in [8 << 20, 8 << 20 | 16] {
                    used[(BlockKey { slot, op, device }.set() & (CELL_SETS - 1)) as usize] += 1;
                }
            }
        }
        assert!(used.iter().all(|&used| used <= CELL_WAYS), "{used:?}");
    }
}
