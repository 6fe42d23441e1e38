//! Disks as the summary speaks of them: which there are, and which explains a time.

use tracer_ebpf::tables::block::OPS;

use crate::{
    base::{
        text,
        units::{bytes, duration},
    },
    model::{
        group::Group,
        hist::Hist,
        tables::{BLOCK, Block},
        totals::RunTotals,
    },
};

/// Disks that were busy for less than this part of a time do not explain it.
const EXPLAINS: f64 = 0.25;
/// Columns of a device's name.
const MAX_DEVICE: usize = 12;

/// One block device and operation.
pub struct Disk<'a> {
    /// Its name, made harmless.
    pub device: String,
    /// One of [`OPS`].
    pub op: String,
    /// Bytes moved.
    pub bytes: Option<u64>,
    /// Requests completed.
    pub ops: Option<u64>,
    /// Requests failed.
    pub errors: Option<u64>,
    /// Time in the queue.
    pub queue: Option<&'a Hist>,
    /// Time in the device.
    pub latency: Option<&'a Hist>,
}

impl<'a> Disk<'a> {
    /// Devices and operations with any request, by device.
    pub fn all(totals: &'a RunTotals, unicode: bool) -> Vec<Self> {
        let disk = |group: &'a Group| Self {
            device: text::truncate(&text::clean(&group.tags[0], unicode), MAX_DEVICE),
            op: text::clean(&group.tags[1], unicode),
            bytes: group.number(Block::bytes),
            ops: group.number(Block::ops),
            errors: group.number(Block::errors),
            queue: group.hist(Block::queue_latency_ns),
            latency: group.hist(Block::device_latency_ns),
        };
        let blocks = totals.stats.groups(&BLOCK);
        let mut disks: Vec<_> = blocks.map(disk).filter(|disk| disk.ops != Some(0)).collect();
        let order = |disk: &Self| OPS.iter().position(|op| *op == disk.op);
        disks.sort_by_key(|disk| (disk.device.clone(), order(disk)));
        disks
    }

    /// The one that explains `ns` of waiting, where one does: requests take as long in it.
    pub fn behind(disks: &[Self], ns: u64) -> Option<&Self> {
        let explains = |disk: &&Self| disk.busy_ns() as f64 >= ns as f64 * EXPLAINS;
        disks.iter().max_by_key(|disk| disk.busy_ns()).filter(explains)
    }

    /// Time that its requests spent in the device, added up.
    pub fn busy_ns(&self) -> u64 {
        self.latency.map_or(0, |hist| hist.sum)
    }

    /// Bytes of a request on the mean; `None` where that is unknown, or nothing was moved.
    pub fn mean_bytes(&self) -> Option<u64> {
        self.bytes.filter(|bytes| *bytes > 0)?.checked_div(self.ops?)
    }

    /// `mostly vda: reads of 4 KiB each usually take 655 µs, one in a hundred 10.5 ms or more`.
    pub fn in_words(&self) -> String {
        let op = match &*self.op {
            "read" => "reads",
            "write" => "writes",
            "flush" => "flushes (fsync)",
            other => other,
        };
        let size =
            self.mean_bytes().map_or(String::new(), |mean| format!(" of {} each", bytes(mean)));
        format!("mostly {}: {op}{size}{}", self.device, usually(self.latency))
    }
}

/// ` usually take 655 µs, one in a hundred 10.5 ms or more`; nothing where that is not known.
pub fn usually(took: Option<&Hist>) -> String {
    let took = took.and_then(Hist::quantiles);
    took.map_or(String::new(), |[p50, _, p99, _]| {
        format!(" usually take {}, one in a hundred {} or more", duration(p50), duration(p99))
    })
}
