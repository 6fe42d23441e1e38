//! Disks and file systems: how much, in which sizes, how long each took.

use serde::Serialize;

use crate::{
    model::hist::Hist,
    view::{disk::Disk, facts::Facts, file_wait::FileWait},
};

/// Rows at most, those with the longest times.
const MOST: usize = 12;

/// A disk and operation, or a file system and kind of call.
#[derive(Debug, Serialize)]
pub struct Device {
    /// `vda read`; `metadata on nfs (/home)`.
    pub name: String,
    /// Bytes moved; unknown of calls.
    pub bytes: Option<u64>,
    /// Requests, or waits.
    pub count: u64,
    /// Mean size of a request.
    pub mean_bytes: Option<u64>,
    /// Time of all of them, added up.
    pub sum_ns: u64,
    /// Times below which half, nine in ten and 99 in a hundred of them were, and the longest.
    pub latency_ns: Option<[u64; 4]>,
    /// Requests that failed.
    pub errors: Option<u64>,
}

/// The rows, the largest first.
pub(super) fn devices(facts: &Facts) -> Vec<Device> {
    let files = facts.files.iter().filter(|wait| wait.is_remote().is_some()).map(of_files);
    let mut rows: Vec<_> = facts.disks.iter().map(of_disk).chain(files).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.sum_ns, row.bytes)));
    rows.truncate(MOST);
    rows
}

fn latency(hist: &Hist) -> Option<[u64; 4]> {
    let [p50, p90, p99, _] = hist.quantiles()?;
    Some([p50, p90, p99, hist.max])
}

fn of_disk(disk: &Disk) -> Device {
    let mean = disk.bytes.zip(disk.ops).and_then(|(bytes, ops)| bytes.checked_div(ops));
    Device {
        name: format!("{} {}", disk.device, disk.op),
        bytes: disk.bytes,
        count: disk.ops.unwrap_or(0),
        mean_bytes: mean.filter(|mean| *mean > 0),
        sum_ns: disk.busy_ns(),
        latency_ns: disk.latency.and_then(latency),
        errors: disk.errors.filter(|errors| *errors > 0),
    }
}

fn of_files(wait: &FileWait) -> Device {
    Device {
        name: format!("{}{}", wait.call, wait.place()),
        bytes: None,
        count: wait.took.count(),
        mean_bytes: None,
        sum_ns: wait.took.sum,
        latency_ns: latency(wait.took),
        errors: None,
    }
}
