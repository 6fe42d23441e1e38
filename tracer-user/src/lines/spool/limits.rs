//! What may stay in the outbox, and what has to go: the oldest first.
//!
//! Pure: it decides by names and sizes, and removes nothing itself.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::name::{Part, SetName};

/// Caps on the outbox. One set of files may stand above them until the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of files.
    pub files: usize,
    /// Age of a file since its writing; of one from an earlier boot, since the wall time in its name.
    pub age_ns: u64,
}

impl Default for Limits {
    /// 512 MiB, 50,000 files (five days of one every 10 s), a week.
    fn default() -> Self {
        Self { bytes: 512 << 20, files: 50_000, age_ns: 7 * 86_400 * 1_000_000_000 }
    }
}

/// Files dropped because nobody took them in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Dropped {
    /// How many.
    pub files: u64,
    /// Their size on the disk.
    pub bytes: u64,
}

/// A file of the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolFile {
    /// The set it belongs to.
    pub set: SetName,
    /// Which of its files.
    pub part: Part,
    /// Its size.
    pub bytes: u64,
}

/// The files last known to be in the outbox, the oldest first: 48 bytes each. It may know files that
/// the collector has taken since, and lacks none that is there.
#[derive(Debug)]
pub struct Index {
    boot: u32,
    entries: VecDeque<SpoolFile>,
    bytes: u64,
}

impl Index {
    /// The index of an agent of the boot `boot`.
    pub fn new(boot: u32) -> Self {
        Self { boot, entries: VecDeque::new(), bytes: 0 }
    }

    /// Takes what was just found in the outbox, in any order. Boots are ordered by the earliest wall
    /// time in their files' names, this boot last; within a boot the sequence tells.
    pub fn replace(&mut self, mut found: Vec<SpoolFile>) {
        let mut begins: BTreeMap<u32, u64> = BTreeMap::new();
        for SpoolFile { set, .. } in &found {
            let begin = begins.entry(set.boot).or_insert(set.start_ns);
            *begin = set.start_ns.min(*begin);
        }
        found.sort_by_key(|SpoolFile { set, part, .. }| {
            (set.boot == self.boot, begins[&set.boot], set.boot, set.sequence, *part)
        });
        self.bytes = found.iter().map(|entry| entry.bytes).sum();
        self.entries = found.into();
    }

    /// Adds a file just written.
    pub fn push(&mut self, entry: SpoolFile) {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
    }

    /// Puts a file back that could not be removed.
    pub fn put_back(&mut self, entry: SpoolFile) {
        self.bytes += entry.bytes;
        self.entries.push_front(entry);
    }

    /// Whether more seems to be there than `limits` allow.
    pub fn is_over(&self, limits: &Limits) -> bool {
        self.entries.len() > limits.files || self.bytes > limits.bytes
    }

    /// Takes out what is older than allowed at the given moment.
    pub fn take_aged(
        &mut self,
        limits: &Limits,
        wall_ns: u64,
        monotonic_ns: u64,
    ) -> Vec<SpoolFile> {
        let is_aged = |set: &SetName| {
            // A wall clock that steps says nothing of what this boot wrote.
            let age = if set.boot == self.boot {
                monotonic_ns.saturating_sub(set.sequence)
            } else {
                wall_ns.saturating_sub(set.start_ns)
            };
            age > limits.age_ns
        };
        let mut aged = Vec::new();
        self.entries.retain(|entry| {
            let is_aged = is_aged(&entry.set);
            if is_aged {
                aged.push(*entry);
            }
            !is_aged
        });
        self.bytes -= aged.iter().map(|entry| entry.bytes).sum::<u64>();
        aged
    }

    /// Takes out the oldest file while there is more than `limits` allow, less a 64th: once over, some
    /// room is made, so that a full outbox is not read anew at each tick.
    pub fn take_oldest(&mut self, limits: &Limits) -> Option<SpoolFile> {
        let (files, bytes) = (limits.files - limits.files / 64, limits.bytes - limits.bytes / 64);
        if self.entries.len() <= files && self.bytes <= bytes {
            return None;
        }
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400 * 1_000_000_000;
    const LIMITS: Limits = Limits { bytes: 1000, files: 3, age_ns: DAY };

    fn entry(boot: u32, sequence: u64, start_ns: u64) -> SpoolFile {
        SpoolFile { set: SetName { boot, sequence, start_ns }, part: Part::Lines(0), bytes: 10 }
    }

    fn order(index: &Index) -> Vec<(u32, u64)> {
        index.entries.iter().map(|entry| (entry.set.boot, entry.set.sequence)).collect()
    }

    #[test]
    fn boots_go_by_their_begin_and_this_one_is_last() {
        let mut index = Index::new(1);
        // Boot 1's clock began in 1970; boot 7's was set back after its first file.
        let found = [entry(1, 5, 0), entry(1, 4, 9 * DAY), entry(7, 2, DAY), entry(7, 1, 3 * DAY)];
        index.replace([&found[..], &[entry(3, 9, 2 * DAY)]].concat());
        assert_eq!(order(&index), [(7, 1), (7, 2), (3, 9), (1, 4), (1, 5)]);
    }

    #[test]
    fn age_within_a_boot_is_by_the_clock_that_never_steps() {
        let mut index = Index::new(1);
        index.replace(vec![entry(1, DAY, 0), entry(1, 2 * DAY, 0), entry(2, 0, 5 * DAY)]);
        // The wall clock stands in 1970.
        assert_eq!(index.take_aged(&LIMITS, 0, DAY), []);
        assert_eq!(index.take_aged(&LIMITS, 0, 2 * DAY + 1), [entry(1, DAY, 0)]);
        assert_eq!(index.take_aged(&LIMITS, 6 * DAY + 1, 0), [entry(2, 0, 5 * DAY)]);
        assert_eq!((order(&index), index.bytes), (vec![(1, 2 * DAY)], 10));
    }

    #[test]
    fn the_oldest_go_until_files_and_bytes_fit() {
        let mut index = Index::new(1);
        (0..5).for_each(|sequence| index.push(entry(1, sequence, 0)));
        assert!(index.is_over(&LIMITS));
        let taken: Vec<_> = std::iter::from_fn(|| index.take_oldest(&LIMITS)).collect();
        assert_eq!(taken, [entry(1, 0, 0), entry(1, 1, 0)]);
        assert!(!index.is_over(&LIMITS));
        index.push(SpoolFile { bytes: 990, ..entry(1, 9, 0) });
        let taken: Vec<_> = std::iter::from_fn(|| index.take_oldest(&LIMITS)).collect();
        assert_eq!(taken.len(), 4, "a file alone above the cap goes as well");
        assert_eq!(index.bytes, 0);
    }
}
