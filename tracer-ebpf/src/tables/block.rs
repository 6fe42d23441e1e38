//! What the kernel keeps per job slot, block device and operation.
#![allow(missing_docs, reason = "each field is explained by its row of the table below")]

use core::mem::offset_of;

use crate::{
    cells::{self, CellHist},
    loglinear::{Buckets, Ends},
    measurement,
    table::{Place, described_bytes, fn_place::Of},
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
}

/// One slot's totals for one device and operation. Shared by all CPUs, updated atomically (`max` by
/// plain store: two completions in the same nanoseconds may lose the smaller of two new maxima).
///
/// An atomic addition costs as much as ten plain ones, so nothing is kept twice: `ops` and `bytes` are
/// the count and the sum of `size_bytes`. On a disk a completion often finds its CPU woken from idle and
/// each cache line cold: all but the buckets lie in the first, and the buckets begin lines of their own.
///
/// `queue_latency_ns` holds no zeros: kernels that stamp a request's making and its issue with one cached
/// time would have us add nothing but zeros. They are the requests of `device_latency_ns` that are not in
/// it. For the reader to find no more zeros than there were, a request is filed in `queue_latency_ns`
/// first and in `device_latency_ns` then, whose buckets are read first: they come first here.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub struct BlockCell {
    /// [`BlockKey::word`], 0 for a free cell.
    pub key: u64,
    pub errors: u64,
    pub queue_ends: Ends,
    pub device_ends: Ends,
    pub size_ends: Ends,
    pub device_buckets: Buckets,
    pub queue_buckets: Buckets,
    pub size_buckets: Buckets,
}

impl cells::Cell for BlockCell {
    fn slot(word: u64) -> Option<u16> {
        BlockKey::of_word(word).map(|key| key.slot)
    }
}

const _: () = {
    assert!(offset_of!(BlockCell, device_buckets) == 64, "what is no bucket is one cache line");
    assert!(offset_of!(BlockCell, device_buckets) < offset_of!(BlockCell, queue_buckets));
};

const QUEUE: Place = Place::CellHist(CellHist {
    ends: offset_of!(BlockCell, queue_ends),
    buckets: offset_of!(BlockCell, queue_buckets),
});
const DEVICE: Place = Place::CellHist(CellHist {
    ends: offset_of!(BlockCell, device_ends),
    buckets: offset_of!(BlockCell, device_buckets),
});
const SIZE: Place = Place::CellHist(CellHist {
    ends: offset_of!(BlockCell, size_ends),
    buckets: offset_of!(BlockCell, size_buckets),
});

measurement! {
    /// `job_block`: requests completed by local block devices.
    BLOCK, Block = "job_block", key "block", tags ["device", "op"],
        "Block I/O by device and operation, as completed by the device. Network file systems are not included: they bypass the block layer.";

    counter ops: Count in Place::CountOf(&SIZE),
        "Requests completed; merged requests count once, split ones once per part.";
    counter bytes: Bytes in Place::SumOf(&SIZE),
        "Bytes of the completed requests, not counting failed ones.";
    counter errors: Count in Place::Cell(offset_of!(BlockCell, errors)),
        "Completions with an error.";
    histogram queue_latency_ns: Nanoseconds in QUEUE,
        "From the creation of the request to its issue to the device; unknown if the device's queue/iostats is 0, and 0 on kernels (6.12 to 6.18 seen) that stamp both with one cached time. Zeros are the requests of device_latency_ns that did not wait.";
    histogram device_latency_ns: Nanoseconds in DEVICE,
        "From issue to the device to completion.";
    histogram size_bytes: Bytes in SIZE,
        "Size of each completed request; failed requests and flushes count as 0 bytes.";
}

const _: () = assert!(
    described_bytes(&[&BLOCK], Of::Cell) + size_of::<u64>() == size_of::<BlockCell>(),
    "every field of BlockCell but the key needs its row in BLOCK"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::{CELL_STEPS, CELLS, cell_after, first_cell};

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

    /// Cells taken, and steps to them, where `slots` slots read and write `devices`.
    fn fill(slots: u16, devices: &[u32]) -> (u32, u32) {
        let mut used = [false; CELLS as usize];
        let (mut taken, mut steps) = (0, 0);
        for slot in 0..slots {
            for op in [op::READ, op::WRITE] {
                for &device in devices {
                    let first = first_cell(BlockKey { slot, op, device }.word());
                    let free = |&step: &u32| !used[cell_after(first, step) as usize];
                    if let Some(step) = (0..CELL_STEPS).find(free) {
                        used[cell_after(first, step) as usize] = true;
                        taken += 1;
                        steps += step;
                    }
                }
            }
        }
        (taken, steps)
    }

    #[test]
    fn sixty_four_slots_on_two_disks_find_room_near_their_first_cells() {
        let disks =
            [7 << 20, 8 << 20, 8 << 20 | 16, 8 << 20 | 32, 254 << 20, 259 << 20, 259 << 20 | 1];
        for pair in disks.windows(2) {
            let (taken, steps) = fill(64, pair);
            assert_eq!(taken, 256, "{pair:?}");
            assert!(steps <= 80, "{pair:?}: {steps} steps");
        }
    }
}
