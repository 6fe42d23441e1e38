//! Block I/O of the leases: from the cells in use to groups.

use std::collections::BTreeMap;

use anyhow::Result;
use tracer_ebpf::tables::block::{BlockCell, BlockKey, OPS};

use super::{block_cells::CellReader, cells::Cells, leases::Leases};
use crate::{
    base::devices::Devices,
    bpf::maps::TakeMap,
    model::{
        group::{Group, merge_all},
        lease::{Lease, Slot},
    },
};

/// The cells, and what is remembered of each between two readings.
pub struct Blocks {
    cells: Cells<BlockCell>,
    readers: BTreeMap<usize, (Slot, CellReader)>,
    devices: Devices,
    /// Last values that the agent before this one reported.
    seeds: Vec<(Lease, Group)>,
}

impl Blocks {
    /// Those of loaded or pinned programs.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            cells: Cells::new(take, "BLOCKS", "CELL_CLAIMS")?,
            readers: BTreeMap::new(),
            devices: Devices::default(),
            seeds: Vec::new(),
        })
    }

    /// Goes on where another agent ended, whose values of `lease` were `last`.
    pub fn go_on(&mut self, lease: Lease, last: &[Group]) {
        let blocks = last.iter().filter(|group| group.measurement.key == "block");
        self.seeds.extend(blocks.map(|group| (lease, group.clone())));
    }

    /// Adds to `slots` what the slots among `of` have done, by who holds them.
    pub fn read(
        &mut self,
        slots: &mut BTreeMap<Lease, Vec<Group>>,
        leases: &Leases,
        of: impl Fn(Slot) -> bool,
    ) {
        for (number, slot, key) in self.cells.used() {
            // A spare slot, taken a moment ago: next time it is known whose it is.
            let Some(lease) = leases.holder(slot).filter(|_| of(slot)) else { continue };
            let Some(key) = BlockKey::of_word(key) else { continue };
            let device = self.devices.get(key.device);
            let seeds = &self.seeds;
            let (_, reader) = self.readers.entry(number).or_insert_with(|| {
                let op = OPS[usize::from(key.op) % OPS.len()];
                let same = |(of, group): &&(Lease, Group)| {
                    *of == lease && group.tags == [device.name.as_str(), op]
                };
                (slot, CellReader::after(seeds.iter().find(same).map(|(_, group)| group)))
            });
            let group = reader.read(self.cells.read(number), device, key.op);
            merge_all(slots.entry(lease).or_default(), std::slice::from_ref(group));
        }
    }

    /// Frees the cells of `slot`, to which nothing may be charged any more.
    pub fn free(&mut self, slot: Slot) {
        self.cells.free(slot);
        self.readers.retain(|_, (of, _)| *of != slot);
    }
}
