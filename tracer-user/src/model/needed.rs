//! How much memory a job needed, of what was charged to it: the file cache that it filled is given back to whoever needs
//! it, all else is not.
//!
//! Readings tell both apart, every few seconds. The kernel's peak misses no moment, and tells nothing apart.

use super::{group::Group, tables::Memory};

/// The readings saw most of it: what else is charged is the kernel's own, for the job.
const SEEN: f64 = 0.85;
/// Memory nearer to its limit than this is worth a word.
pub const MEMORY_IS_SHORT: f64 = 0.95;
/// What was charged is more than this times the limit where that was lowered since: the kernel lets it go a little beyond.
pub const LOWERED: f64 = 1.1;

/// Memory needed at the peak, without file cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needed {
    /// At least this, in bytes: the most of any reading.
    pub least_bytes: u64,
    /// At most this: more where memory came and went between two readings, and nobody knows what it was. The cache of
    /// a file goes with the file.
    pub most_bytes: u64,
}

impl Needed {
    /// What a group of `job_memory` tells; `None` where no reading told file cache apart. Of a job that `was_killed` for
    /// lack of memory: at its limit it had no file cache left to give back. Where the readings saw what was charged, cache
    /// included, that was another limit.
    pub fn of(memory: &Group, was_killed: bool) -> Option<Self> {
        let read = Self::read(memory)?;
        let is_full = memory.number(Memory::limit_bytes).is_some_and(|limit| {
            let share = read.most_bytes as f64 / limit as f64;
            (MEMORY_IS_SHORT..=LOWERED).contains(&share)
        });
        let least_bytes = if was_killed && is_full { read.most_bytes } else { read.least_bytes };
        Some(Self { least_bytes, ..read })
    }

    fn read(memory: &Group) -> Option<Self> {
        let used = memory.number(Memory::used_peak_bytes)?;
        let seen = Self { least_bytes: used, most_bytes: used };
        let both = memory.number(Memory::cache_peak_bytes).zip(memory.number(Memory::peak_bytes));
        let Some((cached, charged)) = both else { return Some(seen) };
        if used.saturating_add(cached) as f64 >= charged as f64 * SEEN {
            return Some(seen);
        }
        Some(Self { least_bytes: used, most_bytes: charged })
    }

    /// Enough for either.
    pub fn most(self, other: Self) -> Self {
        Self {
            least_bytes: self.least_bytes.max(other.least_bytes),
            most_bytes: self.most_bytes.max(other.most_bytes),
        }
    }

    /// Whether the readings saw what was charged.
    pub fn is_seen(self) -> bool {
        self.least_bytes == self.most_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tables::MEMORY, *};

    #[test]
    fn who_was_killed_at_its_limit_needed_all_of_it() {
        for (used, charged, limit, expected) in [
            (0, 100, Some(100), (100, 100)),
            (10, 96, Some(100), (96, 96)),
            (10, 100, Some(200), (10, 100)),
            (10, 100, Some(50), (10, 100)),
            (10, 100, None, (10, 100)),
            (90, 100, Some(100), (90, 90)),
        ] {
            let mut group = Group::unknown(&MEMORY, vec![]);
            group.set(Memory::used_peak_bytes, used);
            group.set(Memory::cache_peak_bytes, 0);
            group.set(Memory::peak_bytes, charged);
            group.set(Memory::limit_bytes, limit);
            let found =
                Needed::of(&group, true).map(|needed| (needed.least_bytes, needed.most_bytes));
            assert_eq!(found, Some(expected), "{used} of {charged}, {limit:?} allowed");
        }
    }

    #[test]
    fn what_came_and_went_between_two_readings_may_have_been_needed() {
        for (used, cached, charged, expected) in [
            (Some(10), Some(80), Some(100), Some((10, 10))),
            (Some(10), Some(30), Some(100), Some((10, 100))),
            (Some(10), Some(0), Some(100), Some((10, 100))),
            (Some(100), Some(0), Some(100), Some((100, 100))),
            (Some(10), None, Some(100), Some((10, 10))),
            (Some(10), Some(30), None, Some((10, 10))),
            (None, Some(30), Some(100), None),
        ] {
            let mut group = Group::unknown(&MEMORY, vec![]);
            group.set(Memory::used_peak_bytes, used);
            group.set(Memory::cache_peak_bytes, cached);
            group.set(Memory::peak_bytes, charged);
            let found =
                Needed::of(&group, false).map(|needed| (needed.least_bytes, needed.most_bytes));
            assert_eq!(found, expected, "{used:?} {cached:?} {charged:?}");
        }
    }
}
