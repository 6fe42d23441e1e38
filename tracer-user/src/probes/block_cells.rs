//! The agent's side of the cells of block I/O: reads those in use, frees those of a slot that ended.

use std::sync::atomic::{Ordering, fence};

use anyhow::{Context, Result};
use aya::maps::{HashMap, Map, MapData};
use tracer_ebpf::{
    table::Place,
    tables::block::{BlockCell, BlockKey, CELLS, OPS},
};

use super::decode::{Unwrapper, bytes_of, derive};
use crate::{
    base::devices::Device,
    bpf::words::Words,
    model::{
        group::Group,
        hist::Hist,
        lease::Slot,
        tables::{BLOCK, Block},
    },
};

/// Words of a cell as the kernel lays it out; the first is the key.
const CELL_WORDS: usize = size_of::<BlockCell>() / 8;

/// A cell as the kernel lays it out.
pub type RawCell = [u64; CELL_WORDS];

/// The cells.
pub struct BlockCells {
    words: Words,
    claims: HashMap<MapData, u32, u64>,
}

impl BlockCells {
    /// The cells in map `BLOCKS`, claimed in map `CELL_CLAIMS`.
    ///
    /// # Errors
    /// When a map is of another kind or cannot be mapped.
    pub fn new(blocks: Map, claims: Map) -> Result<Self> {
        Ok(Self {
            words: Words::map(blocks, "BLOCKS")?,
            claims: claims.try_into().context("map CELL_CLAIMS")?,
        })
    }

    /// The cells in use: number and key of each. A claim that meets the freeing of a slot may give one
    /// key two cells: both count.
    pub fn used(&self) -> impl Iterator<Item = (usize, BlockKey)> + '_ {
        let key = |cell| Some((cell, BlockKey::of_word(self.words.get(cell * CELL_WORDS))?));
        (0..CELLS as usize).filter_map(key)
    }

    /// The words of cell `number`, read in the order in which they lie.
    pub fn read(&self, number: usize) -> RawCell {
        std::array::from_fn(|word| {
            let value = self.words.get(number * CELL_WORDS + word);
            // In their order on every architecture: see `BlockCell`.
            fence(Ordering::Acquire);
            value
        })
    }

    /// Frees the cells of `slot`, to which nothing may be charged any more.
    pub fn free(&mut self, slot: Slot) {
        for cell in 0..CELLS as usize {
            let first = cell * CELL_WORDS;
            let key = BlockKey::of_word(self.words.get(first));
            if key.is_none_or(|key| key.slot != slot) {
                continue;
            }
            for word in (first..first + CELL_WORDS).rev() {
                self.words.set(word, 0);
            }
            // Last: from here on the kernel may claim the cell anew.
            let _ = self.claims.remove(&(cell as u32));
        }
    }
}

/// What is remembered of a cell between two readings.
pub struct CellReader {
    unwrapper: Unwrapper,
    /// Requests that were not queued at all, as last reported.
    never_queued: u64,
    /// The cell at the last reading, and what it came to.
    last: Option<(Box<RawCell>, Group)>,
}

impl CellReader {
    /// For a cell whose values were `last` when it was read last; zeros where there is none.
    pub fn after(last: Option<&Group>) -> Self {
        let last = last.map(|group| {
            let mut group = group.clone();
            // The zeros that the kernel does not keep are in it: it begins anew.
            group.set_hist(Block::queue_latency_ns, None);
            group
        });
        let unwrapper = Unwrapper::after(&BLOCK, last.as_slice());
        Self { unwrapper, never_queued: 0, last: None }
    }

    /// The values of `cell`, whose key names `device` and operation `op`: the same at each reading.
    pub fn read(&mut self, cell: &RawCell, device: &Device, op: u16) -> &Group {
        let last = match self.last.take() {
            Some(same) if *same.0 == *cell => same,
            _ => (Box::new(*cell), self.decode(cell, device, op)),
        };
        &self.last.insert(last).1
    }

    fn decode(&mut self, cell: &RawCell, device: &Device, op: u16) -> Group {
        let op = OPS[usize::from(op) % OPS.len()];
        let mut group = Group::unknown(&BLOCK, vec![device.name.clone(), op.into()]);
        let place = |place| match place {
            Place::Block(at) | Place::BlockHist { ends: at, .. } => Some(at),
            _ => None,
        };
        self.unwrapper.read(&mut group, &[bytes_of(cell)], place);
        derive(&mut group);
        if device.counts_queue_time {
            self.add_never_queued(&mut group);
        } else {
            group.set_hist(Block::queue_latency_ns, None);
        }
        group
    }

    /// Adds to `queue_latency_ns` the zeros that the kernel does not keep: requests of
    /// `device_latency_ns` that are not in it.
    ///
    /// A request that completes during the reading may be in the first and not yet in the second, never
    /// the other way round (`BlockCell` says why). So the difference is at most the true number, and the
    /// largest one so far is right too: what has been reported does not shrink. Once nothing
    /// completes, both counts are the same.
    fn add_never_queued(&mut self, group: &mut Group) {
        let requests = group.hist(Block::device_latency_ns).map_or(0, Hist::count);
        let Some(queued) = group.hist(Block::queue_latency_ns) else { return };
        let mut queued = queued.clone();
        self.never_queued = self.never_queued.max(requests.saturating_sub(queued.count()));
        queued.add(0, self.never_queued);
        group.set_hist(Block::queue_latency_ns, queued);
    }
}

#[cfg(test)]
mod tests;
