//! Waits of the leases for file systems: from the cells in use to groups.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tracer_ebpf::tables::wait::{FILE_CALLS, WaitCell, WaitKey};

use super::{
    cells::Cells,
    decode::{Unwrapper, cell_place},
    leases::Leases,
};
use crate::{
    base::{mounts::Mounts, tag},
    bpf::{lookup::bytes_of_words, maps::TakeMap},
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
    before: CarriedWaits,
}

/// What the agent before this one read last from each cell, by its number. Which cell a value is of does not
/// follow from its tags: two file systems may have the same, and one may have been unmounted since.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CarriedWaits(BTreeMap<usize, CarriedCell>);

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CarriedCell {
    lease: Lease,
    key: u64,
    last: Group,
}

/// What is remembered of a cell.
struct Reader {
    slot: Slot,
    lease: Lease,
    key: u64,
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
            before: CarriedWaits::default(),
        })
    }

    /// Goes on where another agent ended.
    pub fn go_on(&mut self, before: CarriedWaits) {
        self.before = before;
    }

    /// What the next agent has to know.
    pub fn carried(&self) -> CarriedWaits {
        let cell = |(number, reader): (&usize, &Reader)| {
            let (_, last) = reader.last.clone()?;
            Some((*number, CarriedCell { lease: reader.lease, key: reader.key, last }))
        };
        CarriedWaits(self.readers.iter().filter_map(cell).collect())
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
            let (mounts, before) = (&mut self.mounts, &self.before);
            let reader = self.readers.entry(number).or_insert_with(|| {
                let last = before.last(number, lease, key);
                let tags = last.map(|last| last.tags.clone());
                let tags = tags.unwrap_or_else(|| tags_of(key, cell[MAGIC], mounts));
                Reader::after(last, slot, lease, key, tags)
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

impl CarriedWaits {
    /// What was read last from cell `number`, where it still counts what it did.
    fn last(&self, number: usize, lease: Lease, key: u64) -> Option<&Group> {
        let known = self.0.get(&number)?;
        let is_same = known.lease == lease && known.key == key && known.last.is(&WAIT);
        is_same.then_some(&known.last)
    }
}

impl Reader {
    /// Of a cell that was read last as `last`; of a new one where there is none.
    fn after(last: Option<&Group>, slot: Slot, lease: Lease, key: u64, tags: Vec<String>) -> Self {
        let unwrapper = Unwrapper::after(&WAIT, last.cloned().as_slice());
        Self { slot, lease, key, tags, unwrapper, last: None }
    }

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
fn tags_of(key: u64, magic: u64, mounts: &mut Mounts) -> Vec<String> {
    let key = WaitKey::of_word(key);
    let (call, device) = key.map_or((0, 0), |key| (key.call, key.device));
    let call = FILE_CALLS[usize::from(call) % FILE_CALLS.len()];
    let mount = mounts.get(device, magic);
    // As it will be written: two that are written alike are one.
    let path = tag::clean(&mount.path, tag::MAX_TAG_BYTES).unwrap_or_default().into_owned();
    vec![call.into(), mount.fs, path]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::tables::Wait, probes::decode::bytes_of};

    #[test]
    fn a_call_without_a_descriptor_is_for_an_unknown_file_system() {
        let key = WaitKey { slot: 3, call: 3, device: 0 }.word();
        assert_eq!(tags_of(key, 0, &mut Mounts::default()), ["metadata", "unknown", ""]);
    }

    #[test]
    fn mounts_that_are_written_alike_are_one() {
        let mut mounts = Mounts::of(
            "40 22 0:60 / /a\\011b rw - nfs s:/ rw\n41 22 0:61 / /a_b rw - nfs s:/ rw\n",
        );
        let key = |device| WaitKey { slot: 3, call: 0, device }.word();
        let [one, other] = [60, 61].map(|device| tags_of(key(device), 0, &mut mounts));
        assert_eq!(one, ["read", "nfs", "/a_b"]);
        assert_eq!(one, other);
    }

    /// The words of a cell that counted `waits` of one length.
    fn cell(waits: u32) -> Vec<u64> {
        // SAFETY: integers.
        let mut cell: WaitCell = unsafe { std::mem::zeroed() };
        cell.blocked_buckets[3] = waits;
        cell.blocked_ends.sum = u64::from(waits) * 200;
        bytes_of(&cell).chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap())).collect()
    }

    /// Two file systems of containers have the same tags; each cell goes on with its own count, also past 2^32.
    #[test]
    fn cells_of_the_same_tags_go_on_each_by_itself() {
        let tags = || vec!["read".to_owned(), "overlay".to_owned(), String::new()];
        let mut carried = CarriedWaits::default();
        for (number, waits) in [(1, 5), (2, u32::MAX)] {
            let mut reader = Reader::after(None, 3, 70, number as u64, tags());
            let last = reader.read(cell(waits)).clone();
            carried.0.insert(number, CarriedCell { lease: 70, key: number as u64, last });
        }
        let text = serde_json::to_string(&carried).unwrap();
        let carried: CarriedWaits = serde_json::from_str(&text).unwrap();
        for (number, waits, count) in [(1, 7, 7), (2, 1, 1 + u64::from(u32::MAX) + 1)] {
            let last = carried.last(number, 70, number as u64);
            assert_eq!(last.unwrap().tags, tags());
            let mut reader = Reader::after(last, 3, 70, number as u64, tags());
            assert_eq!(reader.read(cell(waits)).hist(Wait::blocked_ns).unwrap().count(), count);
        }
        // Used again meanwhile.
        assert!(carried.last(1, 71, 1).is_none() && carried.last(1, 70, 2).is_none());
        assert!(carried.last(3, 70, 1).is_none());
    }
}
