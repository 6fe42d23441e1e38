//! Waits of the leases for file systems: from the cells in use to groups.

use std::collections::BTreeMap;

use anyhow::Result;
use tracer_ebpf::tables::wait::{FILE_CALLS, WaitCell, WaitKey};

use super::{
    cells::Cells,
    decode::{Unwrapper, bytes_of_words, cell_place},
    leases::Leases,
};
use crate::{
    base::mounts::Mounts,
    bpf::maps::TakeMap,
    model::{
        group::{Group, merge_all},
        lease::{Lease, Slot},
        tables::WAIT,
    },
};

/// Where the file system's magic number is among a cell's words.
const MAGIC: usize = std::mem::offset_of!(WaitCell, magic) / 8;

/// The cells, and what is remembered of each between two readings.
pub struct Waits {
    cells: Cells<WaitCell>,
    readers: BTreeMap<usize, Reader>,
    mounts: Mounts,
    /// Last values that the agent before this one reported.
    seeds: Vec<(Lease, Group)>,
}

/// What is remembered of a cell.
struct Reader {
    slot: Slot,
    /// What it counts: the same at each reading, though what was mounted there may be gone.
    tags: Vec<String>,
    unwrapper: Unwrapper,
    /// The cell at the last reading, and what it came to.
    last: Option<(Vec<u64>, Group)>,
}

impl Waits {
    /// Those of loaded or pinned programs.
    ///
    /// # Errors
    /// When a map is missing or of another kind: the object and the agent do not fit.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            cells: Cells::new(take, "WAIT_CELLS", "WAIT_CLAIMS")?,
            readers: BTreeMap::new(),
            mounts: Mounts::default(),
            seeds: Vec::new(),
        })
    }

    /// Goes on where another agent ended, whose values of `lease` were `last`.
    pub fn go_on(&mut self, lease: Lease, last: &[Group]) {
        let waits = last.iter().filter(|group| group.is(&WAIT));
        self.seeds.extend(waits.map(|group| (lease, group.clone())));
    }

    /// Adds to `slots` what the slots among `of` have waited for, by who holds them.
    pub fn read(
        &mut self,
        slots: &mut BTreeMap<Lease, Vec<Group>>,
        leases: &Leases,
        of: impl Fn(Slot) -> bool,
    ) {
        for (number, slot, key) in self.cells.used() {
            // A spare slot, taken a moment ago: next time it is known whose it is.
            let Some(lease) = leases.holder(slot).filter(|_| of(slot)) else { continue };
            let cell = self.cells.read(number);
            let (mounts, seeds) = (&mut self.mounts, &self.seeds);
            let reader = self.readers.entry(number).or_insert_with(|| {
                let tags = tags(key, cell[MAGIC], mounts);
                let seed = seeds.iter().find(|(of, group)| *of == lease && group.tags == tags);
                let last = seed.map(|(_, group)| group.clone());
                Reader {
                    slot,
                    tags,
                    unwrapper: Unwrapper::after(&WAIT, last.as_slice()),
                    last: None,
                }
            });
            merge_all(slots.entry(lease).or_default(), std::slice::from_ref(reader.read(cell)));
        }
    }

    /// Frees the cells of `slot`, to which nothing may be charged any more.
    pub fn free(&mut self, slot: Slot) {
        self.cells.free(slot);
        self.readers.retain(|_, reader| reader.slot != slot);
    }
}

impl Reader {
    fn read(&mut self, cell: Vec<u64>) -> &Group {
        let last = match self.last.take() {
            Some(same) if same.0 == cell => same,
            _ => {
                let mut group = Group::unknown(&WAIT, self.tags.clone());
                self.unwrapper.read(&mut group, &[bytes_of_words(&cell)], cell_place);
                (cell, group)
            }
        };
        &self.last.insert(last).1
    }
}

/// The tags of the cell that `key` names and whose file system has the number `magic`.
fn tags(key: u64, magic: u64, mounts: &mut Mounts) -> Vec<String> {
    let key = WaitKey::of_word(key);
    let (call, device) = key.map_or((0, 0), |key| (key.call, key.device));
    let call = FILE_CALLS[usize::from(call) % FILE_CALLS.len()];
    let mount = mounts.get(device, magic);
    vec![call.into(), mount.fs.clone(), mount.path.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_a_descriptor_is_for_an_unknown_file_system() {
        let key = WaitKey { slot: 3, call: 3, device: 0 }.word();
        assert_eq!(tags(key, 0, &mut Mounts::default()), ["metadata", "unknown", ""]);
    }
}
