//! The agent's side of a table of cells: reads those in use, frees those of a slot that ended.

use std::{
    marker::PhantomData,
    sync::atomic::{Ordering, fence},
};

use anyhow::{Context, Result};
use aya::maps::{HashMap, MapData};
use tracer_ebpf::cells::{CELLS, Cell};

use crate::{
    bpf::{maps::TakeMap, words::Words},
    model::lease::Slot,
};

/// The cells.
pub struct Cells<C> {
    words: Words,
    claims: HashMap<MapData, u32, u64>,
    cell: PhantomData<C>,
}

impl<C: Cell> Cells<C> {
    /// Words of a cell as the kernel lays it out; the first is the key.
    const WORDS: usize = size_of::<C>() / 8;

    /// The cells in map `cells`, claimed in map `claims`.
    ///
    /// # Errors
    /// When a map is missing, of another kind or cannot be mapped.
    pub fn new(take: &mut TakeMap<'_>, cells: &str, claims: &str) -> Result<Self> {
        Ok(Self {
            words: Words::map(take(cells)?, cells)?,
            claims: take(claims)?.try_into().with_context(|| format!("map {claims}"))?,
            cell: PhantomData,
        })
    }

    /// The cells in use: number, slot and key of each. A claim that meets the freeing of a slot may give
    /// one key two cells: both count.
    pub fn used(&self) -> impl Iterator<Item = (usize, Slot, u64)> + '_ {
        (0..CELLS as usize).filter_map(|cell| {
            let key = self.words.get(cell * Self::WORDS);
            Some((cell, C::slot(key)?, key))
        })
    }

    /// The words of cell `number`, read in the order in which they lie.
    pub fn read(&self, number: usize) -> Vec<u64> {
        let word = |word| {
            let value = self.words.get(number * Self::WORDS + word);
            // In their order on every architecture: see `BlockCell`.
            fence(Ordering::Acquire);
            value
        };
        (0..Self::WORDS).map(word).collect()
    }

    /// Frees the cells of `slot`, to which nothing may be charged any more.
    pub fn free(&mut self, slot: Slot) {
        for cell in 0..CELLS as usize {
            let first = cell * Self::WORDS;
            if C::slot(self.words.get(first)) != Some(slot) {
                continue;
            }
            for word in (first..first + Self::WORDS).rev() {
                self.words.set(word, 0);
            }
            // Last: from here on the kernel may claim the cell anew.
            let _ = self.claims.remove(&(cell as u32));
        }
    }
}
