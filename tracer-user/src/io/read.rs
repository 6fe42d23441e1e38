//! From the cells to groups.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::offset_of,
    time::Duration,
};

use anyhow::{Context, Result};
use aya::maps::{MapData, PerCpuArray, PerCpuHashMap};
use tracer_ebpf::tables::{
    io::{IoCpu, IoKey, OPS},
    io_file::stream,
};

use super::{
    cells::{Cells, magic_of},
    errors,
    files::Files,
    lacking::Lacking,
    missing,
    mounts::Mounted,
    servers::Servers,
    slowest::Slowest,
    threads::Threads,
    under_way::UnderWay,
};
use crate::{
    base::{
        mountinfo,
        mounts::{Mount, Mounts},
        tag,
    },
    bpf::{
        lookup::bytes_of_words,
        maps::TakeMap,
        preemption::{Ahead, ByEvents},
        set::Set,
    },
    model::{
        files,
        group::{Group, merge_all},
        slow_ops::SlowOp,
        tables::{IO, IO_ERROR, IoError},
    },
    probes::decode::{Unwrapper, cell_place, derive},
};

/// How often to see whether files must be read early: 8,192 pairs of a file and a thread have room, and small programs
/// that are started one after the other meet up to 40,000 in a second.
pub const EARLY: Duration = Duration::from_millis(50);
/// Words of what is known of a CPU.
const CPU_WORDS: usize = size_of::<IoCpu>() / 8;
/// Most processes that are tried for their mounts: they may end at any time.
const MOST_TRIED: usize = 8;
/// File systems that were mounted with the number of another, of which a note tells.
const MOST_ANEW: usize = 8;

/// The attached programs and their maps. Dropping it detaches everything.
pub struct Io {
    /// Dropping it detaches.
    pub(super) set: Set,
    pub(super) maps: Maps,
    pub(super) names: Mounts,
    /// Whether the mounts are those of this process, which are read at each reading.
    pub(super) is_own: bool,
    /// Whether there were more mounts than there is room for.
    pub(super) lacks_mounts: bool,
    /// What a number is told of, and what else had it later: types and mounts.
    pub(super) mounted_anew: BTreeSet<([String; 2], [String; 2])>,
    /// What this kernel does not tell.
    pub(super) lacking: Lacking,
    /// What is remembered of each cell between two readings.
    pub(super) readers: BTreeMap<u64, Unwrapper>,
    /// Each file system, as it was when it was met first with a mount.
    pub(super) systems: BTreeMap<u32, Mount>,
    /// What the whole node asked of file servers.
    pub(super) servers: Servers,
    /// Who reads maps meanwhile is ahead of the job.
    pub(super) _by_events: Option<ByEvents>,
}

/// The maps of the object.
pub(super) struct Maps {
    cells: Cells,
    errors: PerCpuHashMap<MapData, u64, u64>,
    cpus: PerCpuArray<MapData, [u64; CPU_WORDS]>,
    mounted: Mounted,
    files: Files,
    slowest: Slowest,
    threads: Threads,
    under_way: UnderWay,
}

impl Maps {
    /// Those of loaded programs, with what the programs must find in them.
    ///
    /// # Errors
    /// When one is missing or of another kind.
    pub fn new(take: &mut TakeMap<'_>) -> Result<Self> {
        Ok(Self {
            cells: Cells::new(take)?,
            errors: take("ERRORS")?.try_into().context("map ERRORS")?,
            cpus: take("IO_CPUS")?.try_into().context("map IO_CPUS")?,
            mounted: Mounted::new(take)?,
            files: Files::new(take)?,
            slowest: Slowest::new(take)?,
            threads: Threads::new(take)?,
            under_way: UnderWay::new(take)?,
        })
    }
}

impl Maps {
    /// Takes what was done to files since the last reading.
    fn read_files(&mut self) -> Result<()> {
        let [filed, cells_made] =
            self.sums([offset_of!(IoCpu, filed), offset_of!(IoCpu, cells_made)])?;
        self.files.read(filed, cells_made)
    }

    /// What all CPUs have at the offsets `of`.
    fn sums<const N: usize>(&self, of: [usize; N]) -> Result<[u64; N]> {
        let cpus = self.cpus.get(&0, 0).context("cannot read what is known of the CPUs")?;
        Ok(of.map(|at| cpus.iter().map(|cpu| cpu[at / 8]).sum::<u64>()))
    }
}

/// File system `device`, or what stands for streams.
fn system(names: &mut Mounts, device: u32, magic: u64) -> Mount {
    let fs = match device {
        stream::PIPES => "pipefs",
        stream::DEVICES => "chardev",
        _ => return names.get(device, magic),
    };
    Mount { fs: fs.into(), ..Mount::default() }
}

impl Io {
    /// Follows the mounts as the first of `processes` that is still there has them now; gives whether one was. Else
    /// what was known stays.
    pub fn follow(&mut self, processes: &[u32]) -> bool {
        let tried = processes.iter().take(MOST_TRIED);
        let mut read = tried.filter_map(|pid| Some((pid, mountinfo::read_of(*pid).ok()?)));
        let Some((pid, (text, is_whole))) = read.next() else { return false };
        self.names.take(&text);
        self.servers.take(&pid.to_string(), &text, &mut self.names);
        self.lacks_mounts |= !self.maps.mounted.follow(&text) || !is_whole;
        true
    }

    /// Follows the mounts of this process.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn follow_own(&mut self) -> Result<()> {
        let text = mountinfo::read().context("cannot read the mounts")?;
        self.lacks_mounts |= !self.maps.mounted.follow(&text);
        self.names.take(&text);
        if self.is_own {
            self.servers.take("self", &text, &mut self.names);
        }
        Ok(())
    }

    /// Names the file systems that are new since the last reading.
    fn meet(&mut self) -> Result<()> {
        let mut met = BTreeMap::new();
        // There may be room for an error alone. Of one that has both a cell knows the magic number.
        let cells = self.maps.cells.used().map(|cell| cell.map(|(word, _)| word));
        for word in self.maps.errors.keys().map(|word| Ok(word?)).chain(cells) {
            let word = word.context("cannot read the operations on files")?;
            let device = IoKey::of_word(word).device;
            if !self.systems.contains_key(&device) {
                met.insert(device, word);
            }
        }
        if !met.is_empty() && self.is_own {
            // Once they were met: what was mounted after the last look would be nameless for good.
            self.names.take(&mountinfo::read().context("cannot read the mounts")?);
        }
        for (device, word) in met {
            let magic = self.maps.cells.get(word).map_or(0, |cpus| magic_of(&cpus));
            let place = system(&mut self.names, device, magic);
            self.systems.insert(device, place);
        }
        Ok(())
    }

    /// Takes what was done to files where so many were met since the last reading that they would drive each other out
    /// of the tables before the next. Call it every [`EARLY`].
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn read_early(&mut self) -> Result<()> {
        let _ahead = Ahead::begin();
        let [cells_made] = self.maps.sums([offset_of!(IoCpu, cells_made)])?;
        if !self.maps.files.is_filling(cells_made) {
            return Ok(());
        }
        self.maps.read_files()
    }

    /// Notes of which systems that are told of the number is another's, or another mount's, by now.
    fn note_mounted_anew(&mut self) {
        // One that shows all of a file system is told by where that was mounted first, as long as it is.
        for (device, known) in self.systems.iter().filter(|(_, known)| known.root == "/") {
            let now = self.names.get(*device, 0);
            let [known, now] = [known, &now].map(place);
            if self.mounted_anew.len() < MOST_ANEW && !now[1].is_empty() && now != known {
                self.mounted_anew.insert((known, now));
            }
        }
    }

    /// Counts nothing from now on: what is read next is the same in all maps.
    pub fn stop(&mut self) {
        for hook in self.set.there().collect::<Vec<_>>() {
            // One that stays is detached with the rest at the end.
            let _ = self.set.detach(hook.program);
        }
    }

    /// What the job has done up to now, cumulative.
    ///
    /// # Errors
    /// When a map or the mounts cannot be read.
    pub fn read(&mut self) -> Result<Vec<Group>> {
        let _ahead = Ahead::begin();
        if self.is_own {
            self.follow_own()?;
        }
        self.note_mounted_anew();
        // First: what comes meanwhile is then in the totals, of which the files are a part.
        self.maps.read_files()?;
        self.maps.slowest.read()?;
        self.maps.threads.read()?;
        self.meet()?;
        let mut groups = Vec::new();
        for cell in self.maps.cells.used() {
            let (word, index) = cell.context("cannot read the operations on files")?;
            let cpus = self.maps.cells.read(index)?;
            let key = IoKey::of_word(word);
            // What was met since is told at the next reading.
            let Some(place) = self.systems.get_mut(&key.device) else { continue };
            // Mounts of a job are read less often than it may use a new one.
            if !self.is_own && place.path.is_empty() {
                *place = system(&mut self.names, key.device, magic_of(&cpus));
            }
            let mut group = Group::unknown(&IO, tags(place, key));
            let cpus: Vec<_> = cpus.iter().map(|cpu| bytes_of_words(&cpu[..])).collect();
            let reader = self.readers.entry(word).or_insert_with(|| Unwrapper::after(&IO, &[]));
            reader.read(&mut group, &cpus, cell_place);
            derive(&mut group);
            self.lacking.take_from(&mut group, key);
            if !group.is_idle() {
                merge_all(&mut groups, &[group]);
            }
        }
        for error in self.maps.errors.iter() {
            let (word, cpus) = error.context("cannot read the errors of operations on files")?;
            let key = IoKey::of_word(word);
            let Some(place) = self.systems.get(&key.device) else { continue };
            let mut all = tags(place, key);
            all.insert(0, errors::name_of(key.error));
            let mut group = Group::unknown(&IO_ERROR, all);
            group.set(IoError::ops, cpus.iter().sum::<u64>());
            merge_all(&mut groups, &[group]);
        }
        groups.extend(self.servers.groups());
        Ok(groups)
    }

    /// What there is beside the totals up to the last reading: the files that the job has used most, its slowest
    /// operations, its threads.
    pub fn files(&mut self) -> files::Files {
        let (systems, names) = (&self.systems, &mut self.names);
        let mut place = |device, path: &str| {
            let mount = systems.get(&device).cloned().unwrap_or_else(|| system(names, device, 0));
            let [fs, point] = place(&mount);
            [fs, point, whole_path(&mount, path)]
        };
        let mut told = self.maps.files.known.largest(&mut place);
        told.slowest = self.maps.slowest.longest(place);
        told.threads = self.maps.threads.known.largest();
        told
    }

    /// Operations of `processes` that have begun long ago, counted since `since_ns` (CLOCK_MONOTONIC), and not returned.
    pub fn under_way(&self, processes: &BTreeSet<u32>, since_ns: u64) -> Vec<SlowOp> {
        let of = |path: &str| place(&self.names.of_path(path));
        self.maps.under_way.long(processes, since_ns, of)
    }

    /// What is not in these numbers as it should be.
    pub fn notes(&self) -> Vec<String> {
        let lacking = self.maps.sums([
            offset_of!(IoCpu, calls_32),
            offset_of!(IoCpu, no_cell),
            offset_of!(IoCpu, no_error),
            offset_of!(IoCpu, untimed),
            offset_of!(IoCpu, no_request),
            offset_of!(IoCpu, no_aio),
        ]);
        let Ok(lacking) = lacking else {
            return vec!["what the I/O figures lack is unknown: its map cannot be read".into()];
        };
        let mut notes = missing::notes(lacking);
        notes.extend(self.lacking.notes());
        let missed = self.set.runs().iter().map(|program| program.missed).sum();
        notes.extend((missed > 0).then(|| missing::runs(missed)));
        notes.extend(self.lacks_mounts.then(missing::mounts));
        notes.extend(self.mounted_anew.iter().map(missing::mounted_anew));
        notes.extend(self.servers.note());
        notes
    }
}

/// Type and mount of a file system, as they will be written.
fn place(mount: &Mount) -> [String; 2] {
    let path = tag::clean(&mount.path, tag::MAX_TAG_BYTES).unwrap_or_default();
    [mount.fs.clone(), path.into_owned()]
}

/// The path of what the file system itself calls `inner`; after `…` where it is not known where that is mounted: it
/// would be read as another file's.
fn whole_path(mount: &Mount, inner: &str) -> String {
    let is_cut = mount.path.is_empty() && inner.starts_with('/');
    if is_cut { format!("…{inner}") } else { mount.full(inner) }
}

fn tags(mount: &Mount, key: IoKey) -> Vec<String> {
    let op = OPS.get(usize::from(key.op)).copied().unwrap_or("unknown");
    place(mount).into_iter().chain([op.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracer_ebpf::tables::io::op;

    #[test]
    fn what_is_mounted_nobody_knows_where_has_no_whole_path() {
        let mut names = Mounts::of("40 22 0:60 / /data rw - nfs s:/ rw\n");
        assert_eq!(whole_path(&names.get(60, 0), "/root/a"), "/data/root/a");
        assert_eq!(whole_path(&names.get(61, 0), "/root/a"), "…/root/a");
        assert_eq!(whole_path(&names.get(61, 0), "memfd:a"), "memfd:a");
        assert_eq!(whole_path(&names.get(61, 0), "…/a/b"), "…/a/b");
    }

    #[test]
    fn a_cell_is_named_by_its_mount_and_its_call() {
        let mut names = Mounts::of("40 22 0:60 / /a\\011b rw - nfs s:/ rw\n");
        let key = IoKey { device: 60, op: op::RENAME as u16, error: 0 };
        assert_eq!(tags(&names.get(60, 0), key), ["nfs", "/a_b", "rename"]);
        let pipe = names.get(u32::MAX, 0x5049_5045);
        assert_eq!(tags(&pipe, IoKey { op: op::READ as u16, ..key }), ["pipefs", "", "read"]);
        assert_eq!(place(&names.get(0, 0)), ["unknown", ""]);
    }
}
