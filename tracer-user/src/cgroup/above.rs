//! Memory limits of the cgroups above jobs. Many jobs have the same above them: each is read once for all of them, and
//! again after [`FRESH_NS`].

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{
    formats::parse_limit,
    held::{V1_LIMIT, V2_LIMIT, read_file},
    place::Places,
};

/// So long what was read is told: as long as what memory is of is told of a job at short intervals.
const FRESH_NS: u64 = 4_500_000_000;
/// From so many on, those that nobody asked for lately are given up: users come and go.
const MOST: usize = 256;

/// What was read of a directory.
struct Known {
    limit: Option<u64>,
    /// CLOCK_MONOTONIC.
    read_ns: u64,
}

static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());

/// The smallest memory limit over the parent of a job's cgroup at `now_ns` (CLOCK_MONOTONIC), in bytes; `None` without any.
/// Without a time it is read anew.
pub(super) fn memory_limit(places: &Places, now_ns: Option<u64>) -> Option<u64> {
    let v2 = places.v2().into_iter().flat_map(|place| place.upwards().skip(1));
    let v1 = places.v1("memory").into_iter().flat_map(|place| place.upwards().skip(1));
    let v2 = v2.filter_map(|directory| limit(directory, V2_LIMIT, now_ns));
    v1.filter_map(|directory| limit(directory, V1_LIMIT, now_ns)).chain(v2).min()
}

fn limit(directory: &Path, name: &str, now_ns: Option<u64>) -> Option<u64> {
    let read = || parse_limit(&read_file(directory, name)?);
    let Some(now_ns) = now_ns else { return read() };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = |known: &Known| now_ns.saturating_sub(known.read_ns) < FRESH_NS;
    if let Some(known) = known.get(directory).filter(|known| is_fresh(known)) {
        return known.limit;
    }
    if known.len() >= MOST {
        known.retain(|_, known| is_fresh(known));
    }
    let limit = read();
    known.insert(directory.to_owned(), Known { limit, read_ns: now_ns });
    limit
}
