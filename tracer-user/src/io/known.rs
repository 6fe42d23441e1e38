//! What is known of the files that a job used, added up over its threads: pure, and bounded.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use tracer_ebpf::tables::io_file::{FileCell, FileId, FileKey, FileName, Pattern};

use super::files::path_of;
use crate::model::files::{FileCounts, FileUse, Files, largest};

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
    /// Takes the cells of a reading; `name` finds what a file is called.
    pub fn take(
        &mut self,
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
            let Some(folder) = file.folder() else { continue };
            let place = (id.device, folder.to_owned());
            if self.folders.len() < MOST_FOLDERS || self.folders.contains_key(&place) {
                self.folders.entry(place).or_default().add(&file.counts, 1);
            }
        }
    }

    /// The largest of all; `place` tells of a file system its type and mount, as they are written, and of a path in it
    /// where that is now.
    pub fn largest(&self, mut place: impl FnMut(u32, &str) -> [String; 3]) -> Files {
        let mut folders = self.folders.clone();
        let mut files: BTreeMap<Place, Sum> = BTreeMap::new();
        for (id, file) in &self.files {
            if let Some(folder) = file.folder() {
                let place = (id.device, folder.to_owned());
                folders.entry(place).or_default().add(&file.counts, 1);
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
        Files::largest(all(files), all(folders))
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
mod tests {
    use super::*;

    fn key(inode: u64, thread: u64) -> FileKey {
        FileKey { file: FileId { device: 7, generation: 1, inode }, thread }
    }

    fn cell(made_ns: u64, ops: u64) -> FileCell {
        FileCell { made_ns, ops, time_ns: 10 * ops, size_bytes: 100, ..FileCell::default() }
    }

    fn name(text: &[u8]) -> FileName {
        let mut name = FileName { length: text.len() as u32, bytes: [0; 252] };
        name.bytes[..text.len()].copy_from_slice(text);
        name
    }

    fn listed(known: &Known) -> Vec<(String, u64, u64, u64)> {
        let files =
            known.largest(|_, path| ["ext4".into(), "/m".into(), format!("/m{path}")]).files;
        let mut all: Vec<_> = files
            .into_iter()
            .map(|file| (file.path, file.counts.ops, file.files, file.counts.size_bytes))
            .collect();
        all.sort();
        all
    }

    #[test]
    fn threads_add_up_and_cells_made_anew_count_from_zero() {
        let mut known = Known::default();
        let names = |file: &FileId| (file.inode < 3).then(|| name(b"a\0d\0/\0"));
        known.take(
            vec![(key(1, 1), cell(5, 10)), (key(1, 2), cell(6, 1)), (key(3, 1), cell(7, 2))],
            names,
        );
        let unnamed = ("/m…/inode 3".to_owned(), 2, 1, 100);
        assert_eq!(listed(&known), [("/m/d/a".into(), 11, 1, 100), unnamed.clone()]);
        // One goes on, and is met in both maps; the other was driven out and came again.
        known.take(
            vec![(key(1, 1), cell(5, 12)), (key(1, 1), cell(5, 14)), (key(1, 2), cell(9, 3))],
            names,
        );
        assert_eq!(listed(&known), [("/m/d/a".into(), 18, 1, 100), unnamed.clone()]);
        // Another file of the same name, as one that is replaced again and again.
        known.take(vec![(key(2, 1), cell(11, 1))], names);
        assert_eq!(listed(&known), [("/m/d/a".into(), 19, 2, 200), unnamed]);
    }

    #[test]
    fn writes_are_shared_where_several_threads_write_between_two_readings() {
        let writer = |inode, thread, made_ns, writes| {
            let cell = FileCell {
                made_ns,
                ops: writes,
                writes,
                written_bytes: 100 * writes,
                write_ns: 7 * writes,
                ..FileCell::default()
            };
            (key(inode, thread), cell)
        };
        let mut known = Known::default();
        let shared = |known: &Known, inode| {
            let counts = known.files[&key(inode, 0).file].counts;
            (
                counts.writes,
                counts.shared_writes,
                counts.shared_written_bytes,
                counts.shared_write_ns,
            )
        };
        // Alone each, also where one reads what the other wrote.
        known.take(vec![writer(1, 1, 1, 5), (key(1, 2), cell(1, 9)), writer(2, 2, 1, 3)], |_| None);
        assert_eq!((shared(&known, 1), shared(&known, 2)), ((5, 0, 0, 0), (3, 0, 0, 0)));
        // The second one joins; of the other file the writer is another, but alone.
        known.take(vec![writer(1, 1, 1, 7), writer(1, 2, 5, 4), writer(2, 1, 5, 1)], |_| None);
        assert_eq!((shared(&known, 1), shared(&known, 2)), ((11, 6, 600, 42), (4, 0, 0, 0)));
        // Nothing was done; then a cell is driven out and made anew, which makes no second thread.
        known.take(vec![writer(1, 1, 1, 7), writer(1, 2, 5, 4)], |_| None);
        known.take(vec![writer(1, 1, 1, 8), writer(1, 1, 9, 2)], |_| None);
        assert_eq!(shared(&known, 1), (14, 6, 600, 42));
    }

    #[test]
    fn beyond_the_bound_the_least_are_kept_by_their_folders() {
        let mut known = Known::default();
        let all = MOST_FILES as u64 + 1;
        let cells = (1..=all).map(|inode| (key(inode, 1), cell(1, inode))).collect();
        known.take(cells, |file| Some(name(format!("{}\0d\0/\0", file.inode).as_bytes())));
        assert_eq!(known.files.len(), KEPT_BY_EACH, "time and operations agree");
        let told = known.largest(|_, path| [String::new(), String::new(), path.to_owned()]);
        let [folder] = &told.folders[..] else { panic!("{:?}", told.folders) };
        assert_eq!(
            (&*folder.path, folder.files, folder.counts.ops),
            ("/d", all, all * (all + 1) / 2)
        );
        assert_eq!(told.files[0].counts.ops, all, "the largest first");
        assert_eq!(told.files.len(), 64);
    }

    #[test]
    fn folders_of_paths() {
        for (path, of) in [("/a/b", "/a"), ("/a", "/"), ("/", "/"), ("…/a/b", "…/a")] {
            assert_eq!(folder(path), Some(of), "{path}");
        }
        for path in ["memfd:x", "memfd:/a/b", "SYSV00000000", "…/a…"] {
            assert_eq!(folder(path), None, "{path}");
        }
    }

    #[test]
    fn what_lies_in_memory_alone_is_a_file_in_no_folder() {
        let mut known = Known::default();
        known.take(vec![(key(1, 1), cell(5, 3))], |_| Some(name(b"memfd:a/b\0")));
        let told = known.largest(|_, path| [String::new(), String::new(), path.to_owned()]);
        assert_eq!((told.files.len(), told.folders.len()), (1, 0));
    }
}
