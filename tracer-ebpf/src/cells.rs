//! Tables of cells that a key claims when it first counts something: block I/O by device and operation, waits
//! by file system and call.
//!
//! A cell begins with its key, a word that is never 0. Shared by all CPUs; the kernel turns a free cell
//! into a used one, the agent frees those of a slot that has ended.

use crate::loglinear::{Buckets, Ends};

/// Cells of a table; a power of two.
pub const CELLS: u32 = 512;
/// A key's cell is its first one or one of the next: so many in all.
pub const CELL_STEPS: u32 = 8;

const _: () = assert!(CELLS.is_power_of_two());

/// The first cell that may be the key's: a Fibonacci hash, whose high bits depend on all of the key.
#[inline(always)]
pub const fn first_cell(key: u64) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CELLS.ilog2())) as u32
}

/// The cell that may be the key's after `step` others.
#[inline(always)]
pub const fn cell_after(first: u32, step: u32) -> u32 {
    (first + step) & (CELLS - 1)
}

/// A kind of cell: what its table of claims and its map hold.
pub trait Cell: Copy {
    /// The slot that the key `word` is of; `None` for a free cell.
    fn slot(word: u64) -> Option<u16>;
}

/// A histogram in a cell: what is no bucket lies apart from the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellHist {
    /// Byte offset of its [`Ends`].
    pub ends: usize,
    /// Byte offset of its [`Buckets`].
    pub buckets: usize,
}

/// Bytes of a histogram in a cell.
pub const HIST_BYTES: usize = size_of::<Ends>() + size_of::<Buckets>();
