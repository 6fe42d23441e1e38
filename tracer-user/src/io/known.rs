//! What is known of the files that a job used, added up over its threads: pure, and bounded.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use tracer_ebpf::tables::io_file::{FileCell, FileId, FileKey, FileName, Pattern};

use super::files::path_of;
use crate::model::{
    files::{FileCounts, FileUse, Files, largest},
    lost_files::LostFiles,
};

/// Files that are kept apart; of those beyond, the least by all measures are kept by their folders alone.
const MOST_FILES: usize = 1 << 15;
/// How many by each measure stay then.
const KEPT_BY_EACH: usize = MOST_FILES / 8;
/// Folders of those.
const MOST_FOLDERS: usize = 1 << 12;

/// A cell of a thread, in the making of it: one made anew counts from zero.
type Made = (FileKey, u64);
/// A file system, and a path in it.
type Place = (u32, String);

/// All that was read so far.
#[derive(Default)]
pub struct Known {
    /// The cells of the last reading.
    seen: HashMap<Made, FileCell>,
    files: HashMap<FileId, File>,
    /// What was done to files that are not kept apart any more, by folder.
    folders: BTreeMap<Place, Sum>,
    /// Operations of all cells that were read.
    ops: u64,
    /// What there was no room for, in the kernel and here.
    lost: LostFiles,
    /// The part of its operations that was lost here.
    ops_put_away: u64,
}

struct File {
    counts: FileCounts,
    /// Within its file system; `None`: no name was found yet.
    path: Option<String>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    files: u64,
    counts: FileCounts,
}

/// What was written to a file between two readings.
#[derive(Default)]
struct Writes {
    /// The first thread that did.
    thread: Option<u64>,
    /// Whether there is a second one.
    is_shared: bool,
    /// What counts if there is.
    counts: FileCounts,
}

impl Writes {
    fn add(&mut self, thread: u64, more: &FileCounts) {
        self.is_shared |= *self.thread.get_or_insert(thread) != thread;
        self.counts.add(&FileCounts {
            shared_writes: more.writes,
            shared_written_bytes: more.written_bytes,
            shared_write_ns: more.write_ns,
            ..FileCounts::default()
        });
    }
}

impl Known {
    /// Takes the cells of a reading, before which `filed` operations had been counted in cells since the begin; `name`
    /// finds what a file is called.
    pub fn take(
        &mut self,
        filed: u64,
        cells: Vec<(FileKey, FileCell)>,
        mut name: impl FnMut(&FileId) -> Option<FileName>,
    ) {
        let mut now: HashMap<Made, FileCell> = HashMap::with_capacity(cells.len());
        for (key, cell) in cells {
            // One that went from map to map is there twice: the later state counts.
            let known = now.entry((key, cell.made_ns)).or_insert(cell);
            if (cell.ops, cell.fetched_bytes) > (known.ops, known.fetched_bytes) {
                *known = cell;
            }
        }
        let mut writes: HashMap<FileId, Writes> = HashMap::new();
        for (made, cell) in &now {
            let before = self.seen.get(made).copied().unwrap_or_default();
            if before == *cell {
                continue;
            }
            let file = self.files.entry(made.0.file);
            let file = file.or_insert_with(|| File { counts: FileCounts::default(), path: None });
            let size_bytes = file.counts.size_bytes.max(cell.size_bytes);
            let more = counts(cell).since(&counts(&before));
            file.counts.add(&more);
            self.ops += more.ops;
            if more.writes > 0 {
                writes.entry(made.0.file).or_default().add(made.0.thread, &more);
            }
            file.counts.size_bytes = size_bytes;
            if file.path.is_none() {
                file.path = name(&made.0.file).map(|name| path_of(made.0.file, Some(&name)));
            }
        }
        for (id, of_file) in writes.iter().filter(|(_, of_file)| of_file.is_shared) {
            if let Some(file) = self.files.get_mut(id) {
                file.counts.add(&of_file.counts);
            }
        }
        self.seen = now;
        if self.files.len() > MOST_FILES {
            self.fold();
        }
        // What ends while the cells are read is in them, and not yet in the number.
        self.lost.ops = filed.saturating_sub(self.ops) + self.ops_put_away;
    }

    /// Keeps the largest files apart, and of the others their folders.
    fn fold(&mut self) {
        let all: Vec<_> = self.files.drain().collect();
        let mut all: Vec<_> = all.into_iter().map(|(id, file)| (id, Some(file))).collect();
        let counts: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(at, (_, file))| {
                (at, file.as_ref().map_or(FileCounts::default(), |file| file.counts))
            })
            .collect();
        for (at, _) in largest(counts, KEPT_BY_EACH, |(_, counts)| counts) {
            let (id, file) = &mut all[at];
            self.files.extend(file.take().map(|file| (*id, file)));
        }
        for (id, file) in all {
            let Some(file) = file else { continue };
            let place = file.folder().map(|folder| (id.device, folder.to_owned()));
            let has_room = |place: &Place| {
                self.folders.len() < MOST_FOLDERS || self.folders.contains_key(place)
            };
            match place.filter(has_room) {
                Some(place) => {
                    self.folders.entry(place).or_default().add(&file.counts, 1);
                    self.lost.files += 1;
                }
                None => self.ops_put_away += file.counts.ops,
            }
        }
    }

    /// The largest of all; `place` tells of a file system its type and mount, as they are written, and of a path in it
    /// where that is now.
    pub fn largest(&self, mut place: impl FnMut(u32, &str) -> [String; 3]) -> Files {
        let mut folders = self.folders.clone();
        let mut files: BTreeMap<Place, Sum> = BTreeMap::new();
        let (mut in_no_folder, mut ops_in_none) = (BTreeSet::new(), 0);
        for (id, file) in &self.files {
            if let Some(folder) = file.folder() {
                let place = (id.device, folder.to_owned());
                folders.entry(place).or_default().add(&file.counts, 1);
            } else {
                in_no_folder.insert(place(id.device, &file.path(*id)));
                ops_in_none += file.counts.ops;
            }
            files.entry((id.device, file.path(*id))).or_default().add(&file.counts, 1);
        }
        let mut all = |sums: BTreeMap<Place, Sum>| {
            let mut sums: Vec<_> = sums.into_iter().collect();
            sums.sort_by_key(|(_, sum)| Reverse(sum.counts.time_ns));
            let one = |((device, path), sum): (Place, Sum)| {
                let [fs, mount, path] = place(device, &path);
                FileUse { path, fs, mount, files: sum.files, counts: sum.counts }
            };
            sums.into_iter().map(one).collect::<Vec<_>>()
        };
        let told = Files::largest(all(files), all(folders));
        // Those that are large enough are told by themselves.
        let is_in_none = |file: &&FileUse| {
            in_no_folder.contains(&[&file.fs, &file.mount, &file.path].map(String::clone))
        };
        let ops_told: u64 = told.files.iter().filter(is_in_none).map(|file| file.counts.ops).sum();
        let ops = self.lost.ops + ops_in_none.saturating_sub(ops_told);
        Files { lost: LostFiles { ops, ..self.lost }, ..told }
    }
}

impl File {
    fn path(&self, id: FileId) -> String {
        self.path.clone().unwrap_or_else(|| path_of(id, None))
    }

    /// Its folder, where that is known.
    fn folder(&self) -> Option<&str> {
        self.path.as_deref().and_then(folder)
    }
}

impl Sum {
    fn add(&mut self, counts: &FileCounts, files: u64) {
        self.files += files;
        self.counts.add(counts);
    }
}

/// The folder of a path; of the root itself that. What lies in memory alone (`memfd:x`) has none, whatever its name, and
/// of a file whose name leaves no room for more it is unknown.
fn folder(path: &str) -> Option<&str> {
    let (folder, _) = path.rsplit_once('/').filter(|_| path.starts_with(['/', '…']))?;
    match folder {
        "" => Some("/"),
        "…" => None,
        _ => Some(folder),
    }
}

fn counts(cell: &FileCell) -> FileCounts {
    FileCounts {
        ops: cell.ops,
        opens: cell.opens,
        reads: cell.reads,
        writes: cell.writes,
        syncs: cell.syncs,
        read_bytes: cell.read_bytes,
        written_bytes: cell.written_bytes,
        time_ns: cell.time_ns,
        waited_ns: cell.waited_ns,
        open_ns: cell.open_ns,
        read_ns: cell.read_ns,
        write_ns: cell.write_ns,
        sync_ns: cell.sync_ns,
        consecutive: cell.patterns[Pattern::Consecutive as usize],
        sequential: cell.patterns[Pattern::Sequential as usize],
        random: cell.patterns[Pattern::Random as usize],
        fetched_bytes: cell.fetched_bytes,
        faults: cell.faults,
        // What one thread's cell does not tell.
        ..FileCounts::default()
    }
}

#[cfg(test)]
mod tests;
