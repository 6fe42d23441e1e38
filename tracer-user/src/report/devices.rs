//! Disks and file systems: how much, in which sizes, how long each took.

use serde::Serialize;

use crate::{
    model::hist::Hist,
    view::{disk::Disk, facts::Facts, file_wait::FileWait},
};

/// Rows of disks, and of file systems, at most: those with the longest times.
const MOST_EACH: usize = 6;

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

/// The rows, the largest first; and how many there are more.
pub(super) fn devices(facts: &Facts) -> (Vec<Device>, usize) {
    let files = facts.files.iter().filter(|wait| wait.is_remote().is_some()).map(of_files);
    let (mut disks, mut files): (Vec<_>, Vec<_>) =
        (facts.disks.iter().map(of_disk).collect(), files.collect());
    let all = disks.len() + files.len();
    for rows in [&mut disks, &mut files] {
        rows.sort_by_key(largest);
    }
    // Neither crowds the other out, and takes what the other leaves.
    let of_disks = disks.len().min(MOST_EACH.max((2 * MOST_EACH).saturating_sub(files.len())));
    files.truncate(2 * MOST_EACH - of_disks);
    disks.truncate(of_disks);
    let mut rows = disks;
    rows.append(&mut files);
    rows.sort_by_key(largest);
    let more = all - rows.len();
    (rows, more)
}

fn largest(row: &Device) -> std::cmp::Reverse<(u64, Option<u64>)> {
    std::cmp::Reverse((row.sum_ns, row.bytes))
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
