//! The agent's side of the cells of block I/O: reads those in use, frees those of a slot that ended.

use anyhow::{Context, Result};
use aya::maps::{HashMap, Map, MapData};
use tracer_ebpf::block::{BlockCell, BlockKey, CELL_SETS, CELL_WAYS, CellSet};

use super::words::Words;
use crate::model::job::Slot;

const SET_WORDS: usize = size_of::<CellSet>() / 8;
/// Words of a cell as the kernel lays it out.
pub const CELL_WORDS: usize = size_of::<BlockCell>() / 8;

/// The cells.
pub struct BlockCells {
    sets: Words,
    claims: HashMap<MapData, u32, u64>,
}

impl BlockCells {
    /// The cells in map `BLOCKS`, claimed in map `CELL_CLAIMS`.
    ///
    /// # Errors
    /// When a map is of another kind or cannot be mapped.
    pub fn new(blocks: Map, claims: Map) -> Result<Self> {
        Ok(Self {
            sets: Words::map(blocks, "BLOCKS", CELL_SETS as usize * SET_WORDS)?,
            claims: claims.try_into().context("map CELL_CLAIMS")?,
        })
    }

    /// The cells in use: number, key and words of each. A claim that meets the freeing of a slot may give
    /// one key two cells: both count.
    pub fn read(&self) -> Vec<(usize, BlockKey, [u64; CELL_WORDS])> {
        let read = |(set, way)| {
            let key = BlockKey::of_word(self.sets.get(key_at(set, way)))?;
            let first = cell_at(set, way);
            Some((
                set * CELL_WAYS + way,
                key,
                std::array::from_fn(|word| self.sets.get(first + word)),
            ))
        };
        ways().filter_map(read).collect()
    }

    /// Frees the cells of `slot`, to which nothing may be charged any more.
    pub fn free(&mut self, slot: Slot) {
        for (set, way) in ways() {
            let key = BlockKey::of_word(self.sets.get(key_at(set, way)));
            if key.is_none_or(|key| key.slot != slot) {
                continue;
            }
            let first = cell_at(set, way);
            for word in first..first + CELL_WORDS {
                self.sets.set(word, 0);
            }
            self.sets.set(key_at(set, way), 0);
            // Last: from here on the kernel may claim the cell anew.
            let _ = self.claims.remove(&((set * CELL_WAYS + way) as u32));
        }
    }
}

fn ways() -> impl Iterator<Item = (usize, usize)> {
    (0..CELL_SETS as usize).flat_map(|set| (0..CELL_WAYS).map(move |way| (set, way)))
}

fn key_at(set: usize, way: usize) -> usize {
    set * SET_WORDS + way
}

fn cell_at(set: usize, way: usize) -> usize {
    set * SET_WORDS + CELL_WAYS + way * CELL_WORDS
}
