//! What a job did by file and by folder, where it was asked for. Names are for the record and its reports alone: they
//! are in no line.

use std::{cmp::Reverse, collections::BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    io_latency::IoLatency,
    io_threads::IoThreads,
    lost_files::LostFiles,
    slow_ops::{SlowOp, longest},
};

/// Types of what is no storage: a task that reads from it waits for another task.
const NO_STORAGE: [&str; 6] = ["pipefs", "sockfs", "anon_inode", "chardev", "devpts", "mqueue"];

/// Whether files of type `fs` are storage.
pub fn is_storage(fs: &str) -> bool {
    !NO_STORAGE.contains(&fs)
}

/// Files, and folders, that a record lists by each of [`MEASURES`].
pub const MOST_BY_EACH: usize = 64;

macro_rules! counts {
    ($($(#[$help:meta])* $name:ident),* $(,)?) => {
        /// Numbers of operations by descriptor, bytes and times. They only grow, but the size.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct FileCounts {
            $($(#[$help])* pub $name: u64,)*
        }

        impl FileCounts {
            /// Names of all of them, in the order of the record.
            pub const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// Adds `more`.
            pub fn add(&mut self, more: &Self) {
                $(self.$name = self.$name.saturating_add(more.$name);)*
            }

            /// What came since `older`.
            #[must_use]
            pub fn since(&self, older: &Self) -> Self {
                Self { $($name: self.$name.saturating_sub(older.$name)),* }
            }
        }
    };
}

counts! {
    /// Operations, failed ones included.
    ops,
    /// Times opened.
    opens,
    /// Reads, copies out of it included.
    reads,
    /// Writes.
    writes,
    /// fsync and its kin.
    syncs,
    /// Bytes read.
    read_bytes,
    /// Bytes written.
    written_bytes,
    /// Duration of all operations, nanoseconds as all times.
    time_ns,
    /// Of those during which the task gave its CPU away.
    waited_ns,
    /// Of open and close.
    open_ns,
    /// Of the reads.
    read_ns,
    /// Of the writes.
    write_ns,
    /// Of fsync and its kin.
    sync_ns,
    /// Reads and writes that began where the one before ended, of the same thread and kind.
    consecutive,
    /// Those that began further on.
    sequential,
    /// Those that began before.
    random,
    /// Bytes of the pages that its reads and page faults brought into the page cache, read-ahead included.
    fetched_bytes,
    /// Page faults that brought some.
    faults,
    /// Of the writes, those between two readings in which several threads of a node wrote to the file.
    shared_writes,
    /// Their bytes.
    shared_written_bytes,
    /// Their duration.
    shared_write_ns,
    /// Size when it was used last; of several files, one after the other of one name or in one folder, their sum.
    size_bytes,
}

impl FileCounts {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read_bytes.saturating_add(self.written_bytes)
    }

    /// The same; of files that are mapped, what was brought into the page cache.
    fn used_bytes(&self) -> u64 {
        self.bytes().max(self.fetched_bytes)
    }
}

/// What files are put in order by: the largest by each are listed.
pub const MEASURES: [fn(&FileCounts) -> u64; 4] =
    [|counts| counts.time_ns, FileCounts::used_bytes, |counts| counts.ops, |counts| counts.opens];

/// A file, or a folder with what is directly in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileUse {
    /// Where it was when it was used first, `…/` before it where that is too long to be known.
    pub path: String,
    /// Type of its file system, as that of `job_io`.
    pub fs: String,
    /// Where that is mounted, as that of `job_io`; empty: not where jobtrace ran.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// How many files these were.
    pub files: u64,
    /// What was done.
    #[serde(flatten)]
    pub counts: FileCounts,
}

impl FileUse {
    fn is_same(&self, other: &Self) -> bool {
        (&self.path, &self.fs, &self.mount) == (&other.path, &other.fs, &other.mount)
    }
}

/// What is told of a job's operations beside their totals: the largest by each measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Files, those that took longest first.
    pub files: Vec<FileUse>,
    /// Folders with what is known of the files directly in them, in the same order.
    pub folders: Vec<FileUse>,
    /// What there was no room for in either.
    #[serde(skip_serializing_if = "LostFiles::is_empty")]
    pub lost: LostFiles,
    /// The operations that took longest, the longest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowOp>,
    /// What was done by thread and by program.
    #[serde(skip_serializing_if = "IoThreads::is_empty")]
    pub threads: IoThreads,
    /// How long operations took over time.
    #[serde(skip_serializing_if = "IoLatency::is_empty")]
    pub latency: IoLatency,
}

impl Files {
    /// The largest of all.
    pub fn largest(files: Vec<FileUse>, folders: Vec<FileUse>) -> Self {
        let largest = |all| largest(all, MOST_BY_EACH, |file: &FileUse| &file.counts);
        Self { files: largest(files), folders: largest(folders), ..Self::default() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.folders.is_empty()
            && self.lost.is_empty()
            && self.slowest.is_empty()
            && self.threads.is_empty()
            && self.latency.is_empty()
    }

    /// Says of what names no node that it was on `host`.
    pub fn name_host(&mut self, host: &str) {
        let slowest = self.slowest.iter_mut().map(|op| &mut op.host);
        let threads = self.threads.threads.iter_mut().map(|thread| &mut thread.host);
        slowest.chain(threads).filter(|of| of.is_empty()).for_each(|of| *of = host.to_owned());
    }

    /// Adds another node's, or a later time's: what has the same name on both is one.
    pub fn merge(&mut self, other: &Self) {
        for (own, others) in [(&mut self.files, &other.files), (&mut self.folders, &other.folders)]
        {
            for more in others {
                match own.iter_mut().find(|known| known.is_same(more)) {
                    Some(known) => {
                        known.counts.add(&more.counts);
                        known.files = known.files.saturating_add(more.files);
                    }
                    None => own.push(more.clone()),
                }
            }
            own.sort_by(|one, other| order(one).cmp(&order(other)));
        }
        self.lost.add(&other.lost);
        let both = [std::mem::take(&mut self.slowest), other.slowest.clone()];
        self.slowest = longest(both.concat());
        self.threads.merge(&other.threads);
        self.latency.merge(&other.latency);
    }
}

/// Those that took longest first.
fn order(file: &FileUse) -> (Reverse<u64>, &str, &str, &str) {
    (Reverse(file.counts.time_ns), &file.path, &file.mount, &file.fs)
}

/// Of `all` the `most` that are largest by each measure, those that took longest first. What did nothing by a measure
/// is not large by it.
pub fn largest<T>(mut all: Vec<T>, most: usize, counts: impl Fn(&T) -> &FileCounts) -> Vec<T> {
    let mut kept = BTreeSet::new();
    for measure in MEASURES {
        let mut order: Vec<usize> =
            (0..all.len()).filter(|at| measure(counts(&all[*at])) > 0).collect();
        let key = |at: &usize| (Reverse(measure(counts(&all[*at]))), *at);
        if order.len() > most {
            order.select_nth_unstable_by_key(most, key);
            order.truncate(most);
        }
        kept.extend(order);
    }
    let mut at = 0;
    all.retain(|_| {
        at += 1;
        kept.contains(&(at - 1))
    });
    all.sort_by_key(|one| Reverse(counts(one).time_ns));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, counts: FileCounts) -> FileUse {
        FileUse { path: path.into(), fs: "ext4".into(), files: 1, counts, ..FileUse::default() }
    }

    #[test]
    fn the_largest_by_each_measure_are_kept() {
        let of = |at: u64, counts: FileCounts| file(&at.to_string(), counts);
        let mut all: Vec<_> = (1..=200)
            .map(|at| of(at, FileCounts { time_ns: at, ops: 1000 - at, ..FileCounts::default() }))
            .collect();
        all.push(of(500, FileCounts { opens: 1, ..FileCounts::default() }));
        all.push(of(501, FileCounts { written_bytes: 1, ..FileCounts::default() }));
        all.push(of(502, FileCounts { syncs: 1, ..FileCounts::default() }));
        let kept = Files::largest(all, Vec::new()).files;
        let names: Vec<u64> = kept.iter().map(|file| file.path.parse().unwrap()).collect();
        let expected: Vec<u64> =
            (137..=200).rev().chain((1..=64).rev()).chain([500, 501]).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn what_was_left_out_is_added_up() {
        let of = |ops, files| Files { lost: LostFiles { ops, files }, ..Files::default() };
        assert!(Files::default().is_empty() && !of(0, 1).is_empty());
        let mut both = of(3, 0);
        both.merge(&of(4, 5));
        assert_eq!(both, of(7, 5));
    }

    #[test]
    fn files_of_one_name_are_one_and_the_order_of_merging_is_none() {
        let one = |path: &str, ops, time_ns| {
            file(path, FileCounts { ops, time_ns, ..FileCounts::default() })
        };
        let first = Files::largest(vec![one("/a", 1, 5), one("/b", 2, 3)], vec![one("/", 3, 8)]);
        let second = Files::largest(vec![one("/b", 4, 9)], Vec::new());
        let (mut both, mut reverse) = (first.clone(), second.clone());
        both.merge(&second);
        reverse.merge(&first);
        assert_eq!(both, reverse);
        let told: Vec<_> = both
            .files
            .iter()
            .map(|f| (&*f.path, f.counts.ops, f.counts.time_ns, f.files))
            .collect();
        assert_eq!(told, [("/b", 6, 12, 2), ("/a", 1, 5, 1)]);
        assert_eq!(both.folders, first.folders);
    }
}
