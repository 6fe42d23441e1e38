//! The memory files of one job's cgroup, v2's or v1's.

use std::path::Path;

use super::{
    formats::{HIERARCHICAL_LIMIT, limited, parse_limit, parse_number, parse_stat, parse_stats},
    held::{V1_LIMIT, V2_LIMIT, read_file},
    place::{Place, Places},
    tree::children,
};
use crate::base::{directory::Directory, kept::KeptFile};

/// The names of one version's memory files.
struct MemoryNames {
    current: &'static str,
    peak: &'static str,
    limit: &'static str,
    /// Where `stat` does not tell.
    swap: Option<&'static str>,
    /// Keys of `memory.stat`.
    anon: &'static str,
    file: &'static str,
    shmem: &'static str,
    /// The file with the key `oom_kill`.
    events: &'static str,
    /// Whether that counts what cgroups below did, those removed included.
    events_of_all: bool,
}

const V2: MemoryNames = MemoryNames {
    current: "memory.current",
    peak: "memory.peak",
    limit: V2_LIMIT,
    swap: Some("memory.swap.current"),
    anon: "anon",
    file: "file",
    shmem: "shmem",
    events: "memory.events",
    events_of_all: true,
};

const V1: MemoryNames = MemoryNames {
    current: "memory.usage_in_bytes",
    peak: "memory.max_usage_in_bytes",
    limit: V1_LIMIT,
    swap: None,
    anon: "total_rss",
    file: "total_cache",
    shmem: "total_shmem",
    events: "memory.oom_control",
    events_of_all: false,
};

/// The files of the directory whose memory is the job's alone.
pub(super) struct MemoryFiles {
    directory: Directory,
    names: &'static MemoryNames,
    current: KeptFile,
    peak: KeptFile,
    limit: KeptFile,
    stat: KeptFile,
    swap: Option<KeptFile>,
}

/// What `memory.stat` tells, bytes.
#[derive(Default)]
pub(super) struct MemoryStat {
    pub anon: Option<u64>,
    pub file: Option<u64>,
    pub shmem: Option<u64>,
    pub swap: Option<u64>,
    pub limit: Option<u64>,
}

impl MemoryFiles {
    /// Those of the job at `places`; `None` where its memory is not its alone.
    pub fn of(places: &Places) -> Option<Self> {
        let own = |place: &&Place| place.own;
        // v1 first: a controller that v1 holds is not in v2, and then v2's directory lacks the files.
        let (place, names) = match places.v1("memory") {
            Some(v1) => (v1, &V1),
            None => (places.v2()?, &V2),
        };
        let directory = &Some(place).filter(own)?.directory;
        let file = |name| KeptFile::new(directory.clone(), name);
        Some(Self {
            directory: directory.clone(),
            names,
            current: file(names.current),
            peak: file(names.peak),
            limit: file(names.limit),
            stat: file("memory.stat"),
            swap: names.swap.map(file),
        })
    }

    /// What is charged now, bytes.
    pub fn read_current(&mut self) -> Option<u64> {
        self.current.read(parse_number)
    }

    /// The most that was charged, bytes; `None` in v2 before Linux 5.19.
    pub fn read_peak(&mut self) -> Option<u64> {
        self.peak.read(parse_number)
    }

    /// Its own limit, bytes; `None` without one.
    pub fn read_limit(&mut self) -> Option<u64> {
        self.limit.read(parse_limit)
    }

    /// Tasks of the cgroup, and below, that the out-of-memory killer chose.
    pub fn oom_kills(&self) -> Option<u64> {
        oom_kills(&self.directory, self.names)
    }

    /// Closes until they are read again the files that tell nothing of a job that does nothing.
    pub fn close_seldom(&mut self) {
        [&mut self.peak, &mut self.stat]
            .into_iter()
            .chain(&mut self.swap)
            .for_each(KeptFile::close);
    }

    /// Closes all until they are read again.
    pub fn close(&mut self) {
        self.close_seldom();
        [&mut self.current, &mut self.limit].into_iter().for_each(KeptFile::close);
    }

    /// What is charged, swap and limits.
    pub fn read_stat(&mut self) -> MemoryStat {
        let names = self.names;
        // v1's `memory.stat` names the smallest of all, its own too. v2's own is read before: where the cgroup goes between
        // the two, the amounts are unknown too, and no one takes the limit for removed.
        let own = |own: &mut KeptFile| own.read(parse_limit);
        let of_v2 = names.swap.and_then(|_| own(&mut self.limit));
        let keys = [names.anon, names.file, names.shmem, "total_swap", HIERARCHICAL_LIMIT];
        let parsed = |text: &str| Some(parse_stats(text, keys));
        let [anon, file, shmem, swap, limit] = self.stat.read(parsed).unwrap_or_default();
        let swap = self.swap.as_mut().map_or(swap, |file| file.read(parse_number));
        let limit = match (limit, names.swap) {
            (Some(smallest), _) => limited(smallest),
            (None, Some(_)) => of_v2,
            (None, None) => own(&mut self.limit),
        };
        MemoryStat { anon, file, shmem, swap, limit }
    }
}

/// Tasks of the cgroup at `directory`, and below, that the out-of-memory killer chose.
fn oom_kills(directory: &Path, files: &MemoryNames) -> Option<u64> {
    let own = parse_stat(&read_file(directory, files.events)?, "oom_kill")?;
    if files.events_of_all {
        return Some(own);
    }
    let below = children(directory).into_iter().filter_map(|child| oom_kills(&child, files));
    Some(own + below.sum::<u64>())
}
