//! What a cell of block I/O comes to.

use tracer_ebpf::tables::block::OPS;

use super::decode::{Unwrapper, cell_place, derive};
use crate::{
    base::devices::Device,
    bpf::lookup::bytes_of_words,
    model::{
        group::Group,
        hist::Hist,
        tables::{BLOCK, Block},
    },
};

/// What is remembered of a cell between two readings.
pub struct CellReader {
    unwrapper: Unwrapper,
    /// Requests that were not queued at all, as last reported.
    never_queued: u64,
    /// The cell at the last reading, and what it came to.
    last: Option<(Vec<u64>, Group)>,
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
    pub fn read(&mut self, cell: Vec<u64>, device: &Device, op: u16) -> &Group {
        let last = match self.last.take() {
            Some(same) if same.0 == cell => same,
            _ => {
                let group = self.decode(&cell, device, op);
                (cell, group)
            }
        };
        &self.last.insert(last).1
    }

    fn decode(&mut self, cell: &[u64], device: &Device, op: u16) -> Group {
        let op = OPS[usize::from(op) % OPS.len()];
        let mut group = Group::unknown(&BLOCK, vec![device.name.clone(), op.into()]);
        self.unwrapper.read(&mut group, &[bytes_of_words(cell)], cell_place);
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
