//! The totals by file system and operation, as they lie in the maps.

use std::mem::offset_of;

use anyhow::{Context, Result};
use aya::maps::{HashMap, MapData, PerCpuArray, PerCpuValues, Queue};
use tracer_ebpf::tables::io::{IO_CELLS, IoCell, IoKey, OPS};

use crate::bpf::maps::TakeMap;

/// Words of a cell.
const CELL_WORDS: usize = size_of::<IoCell>() / 8;
/// Where the magic number is among them.
const MAGIC: usize = offset_of!(IoCell, magic) / 8;

/// A cell on each CPU.
pub type Values = PerCpuValues<[u64; CELL_WORDS]>;

/// The maps.
pub struct Cells {
    indices: HashMap<MapData, u64, u32>,
    sums: PerCpuArray<MapData, [u64; CELL_WORDS]>,
    /// Held: the programs are loaded with its descriptor.
    _places: Queue<MapData, u32>,
}

impl Cells {
    /// Of loaded programs, which find a cell of each operation on an unknown file system, and all others to be taken.
    ///
    /// # Errors
    /// When a map is missing, or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        let mut indices: HashMap<_, u64, u32> = take("CELLS")?.try_into().context("map CELLS")?;
        let mut places: Queue<_, u32> =
            take("CELL_PLACES")?.try_into().context("map CELL_PLACES")?;
        // What is counted where there is no room for another file system has its room from the start.
        let ops = OPS.len() as u32;
        for op in 0..ops {
            let key = IoKey { device: 0, op: op as u16, error: 0 };
            indices.insert(key.word(), op + 1, 0).context("map CELLS")?;
        }
        for index in ops + 1..=IO_CELLS {
            places.push(index, 0).context("map CELL_PLACES")?;
        }
        let sums = take("CELL_SUMS")?.try_into().context("map CELL_SUMS")?;
        Ok(Self { indices, sums, _places: places })
    }

    /// The cells in use: the [`IoKey`] of each as a word, and its index.
    ///
    /// # Errors
    /// Each where the map cannot be read.
    pub fn used(&self) -> impl Iterator<Item = Result<(u64, u32)>> + '_ {
        self.indices.iter().map(|cell| cell.context("map CELLS"))
    }

    /// The cell at `index`.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&self, index: u32) -> Result<Values> {
        self.sums.get(&index, 0).context("map CELL_SUMS")
    }

    /// The cell of the [`IoKey`] that `word` is; `None` where it has none.
    pub fn get(&self, word: u64) -> Option<Values> {
        self.read(self.indices.get(&word, 0).ok()?).ok()
    }
}

/// The magic number of a cell's file system.
pub fn magic_of(cpus: &Values) -> u64 {
    cpus.iter().map(|cpu| cpu[MAGIC]).max().unwrap_or(0)
}
