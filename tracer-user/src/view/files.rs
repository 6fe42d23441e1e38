//! The files and folders that a job used most, where a run was asked for them, and what is left for all others.

use serde::Serialize;
use tracer_ebpf::tables::io_file::{HEAVY_FILES, HEAVY_OPS, LIGHT_FILES};

use super::{
    Style,
    facts::Facts,
    file_ops::{added_up, ops, storage, time_ns},
    heading,
    line::{Line, Tone},
    table::table,
};
use crate::{
    base::{
        text::{clean, wrap},
        units::{bytes, count, duration, percent},
    },
    model::{
        files::{FileCounts, FileUse, is_storage, largest},
        lost_files::LostFiles,
        tables::Io,
    },
};

/// Files by each measure, and folders, that a text and a page have room for.
const MOST: usize = 3;
const MOST_OF_PAGE: usize = 10;

/// A file, a folder, or all that is neither.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileRow {
    /// Its path, made harmless; of all others what they are.
    pub path: String,
    /// How many files are directly in it, of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// How often it was opened.
    pub opens: u64,
    /// Operations on it, by descriptor.
    pub ops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Time of all operations, added up.
    pub time_ns: u64,
    /// The part of `time_ns` in those during which the task gave its CPU away.
    pub waited_ns: u64,
    /// The part of its reads and writes that began where the one before ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive: Option<f64>,
}

/// All that is said of files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AllFiles {
    /// The largest by time, bytes, operations and opens, those that took longest first.
    pub files: Vec<FileRow>,
    /// What is in no row of `files`: other files, and calls that name a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<FileRow>,
    /// Folders, with what was done to files directly in them: chosen and in order as files are.
    pub folders: Vec<FileRow>,
    /// What is in no row of `folders`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_folders: Option<FileRow>,
    /// What the tables of files had no room for.
    #[serde(skip_serializing_if = "LostFiles::is_empty")]
    pub lost: LostFiles,
    /// The same in words; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
}

impl AllFiles {
    /// Those of a run; nothing where it was not asked for them.
    pub fn of(facts: &Facts) -> Self {
        Self::with(facts, MOST_OF_PAGE)
    }

    /// Those of which there are `most` by each measure.
    fn with(facts: &Facts, most: usize) -> Self {
        let all = &facts.totals.files;
        let on_storage = |files: &[FileUse]| -> Vec<FileUse> {
            let files = files.iter().filter(|file| is_storage(&file.fs) && was_used(&file.counts));
            let files = files.cloned().collect();
            largest(files, most, |file: &FileUse| &file.counts)
        };
        let (files, folders) = (on_storage(&all.files), on_storage(&all.folders));
        if files.is_empty() {
            return Self::default();
        }
        let rest = |listed: &[FileUse]| {
            let mut counts = FileCounts::default();
            listed.iter().for_each(|file| counts.add(&file.counts));
            Some(others(facts, &counts)).filter(|others| others.ops > 0)
        };
        let row = |file: &FileUse| row(clean(&file.path, facts.unicode), &file.counts);
        let folder_row = |folder: &FileUse| FileRow { files: Some(folder.files), ..row(folder) };
        Self {
            others: rest(&files),
            other_folders: rest(&folders).filter(|_| !folders.is_empty()),
            files: files.iter().map(row).collect(),
            folders: folders.iter().map(folder_row).collect(),
            lost: all.lost,
            says: in_words(all.lost),
        }
    }

    /// The rows of files and of all others, as in [`HEAD`].
    pub fn cells(&self) -> Vec<Vec<String>> {
        self.files.iter().chain(&self.others).map(FileRow::cells).collect()
    }

    /// The rows of folders and of all others, as in [`FOLDER_HEAD`].
    pub fn folder_cells(&self) -> Vec<Vec<String>> {
        let cells = |row: &FileRow| {
            let mut cells = row.cells();
            cells.insert(1, row.files.map_or(String::new(), count));
            cells
        };
        self.folders.iter().chain(&self.other_folders).map(cells).collect()
    }
}

/// Heads of the columns.
pub const HEAD: [&str; 7] = ["", "opened", "number", "moved", "time", "waiting", "in order"];
/// The same of folders.
pub const FOLDER_HEAD: [&str; 8] =
    ["", "files", "opened", "number", "moved", "time", "waiting", "in order"];
/// What is said of both tables.
pub const OF_FILES: &str = "the largest by time, bytes, operations and opens";
pub const OF_FOLDERS: &str = "with what is known of the files in them";

impl FileRow {
    /// As in [`HEAD`].
    fn cells(&self) -> Vec<String> {
        let some = |number: u64, show: fn(u64) -> String| match number {
            0 => String::new(),
            _ => show(number),
        };
        vec![
            self.path.clone(),
            some(self.opens, count),
            count(self.ops),
            some(self.bytes, bytes),
            duration(self.time_ns),
            percent(self.waited_ns as f64 / self.time_ns.max(1) as f64),
            self.consecutive.map_or(String::new(), percent),
        ]
    }
}

/// The block of the summary.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    block(&AllFiles::with(facts, MOST), style)
}

/// The block of a terminal's text; nothing where no file is known.
pub fn block(all: &AllFiles, style: &Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let (files, folders) = (all.cells(), all.folder_cells());
    let tables: [(_, _, &[&str], _); 2] =
        [("Files", OF_FILES, &HEAD, files), ("Folders", OF_FOLDERS, &FOLDER_HEAD, folders)];
    for (title, aside, head, cells) in tables {
        if cells.is_empty() {
            continue;
        }
        lines.extend(heading(title, aside, style));
        lines.extend(table(head, &cells, style));
    }
    let says = all.says.iter().flat_map(|says| wrap(says, style.width - 2));
    lines.extend(says.map(|line| Line::new().plain("  ").with(Tone::Warn, line)));
    lines
}

/// Whether anything was done to a file that a row tells: of one that is only executed, page faults alone are known, and
/// no name.
fn was_used(counts: &FileCounts) -> bool {
    counts.ops > 0 || counts.bytes() > 0 || counts.time_ns > 0
}

/// What was lost, in words; nothing where nothing was.
fn in_words(lost: LostFiles) -> Option<String> {
    let number = |number: u64, one: &str, several: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{} {several}", count(number)),
    };
    let ops = (lost.ops > 0).then(|| {
        format!(
            "{} in no row of a file or folder, only in the rest: between two readings threads used more files, each \
             thread's counted anew, than there is room for: {HEAVY_FILES} with {HEAVY_OPS} operations or more, \
             {LIGHT_FILES} with fewer (with `run`, a shorter --interval loses fewer)",
            number(lost.ops, "operation on files is", "operations on files are")
        )
    });
    let files = (lost.files > 0).then(|| {
        format!(
            "{} told by the folder alone: there were more files than are kept apart",
            number(lost.files, "file is", "files are")
        )
    });
    let both: Vec<_> = ops.into_iter().chain(files).collect();
    (!both.is_empty()).then(|| both.join("; "))
}

fn row(path: String, counts: &FileCounts) -> FileRow {
    let accesses = added_up([counts.consecutive, counts.sequential, counts.random].into_iter());
    FileRow {
        path,
        files: None,
        opens: counts.opens,
        ops: counts.ops,
        bytes: counts.bytes(),
        time_ns: counts.time_ns,
        waited_ns: counts.waited_ns,
        consecutive: (accesses > 0).then(|| counts.consecutive as f64 / accesses as f64),
    }
}

/// What all operations on storage are beyond those on `files`.
fn others(facts: &Facts, files: &FileCounts) -> FileRow {
    let mut all = FileCounts::default();
    for group in storage(facts) {
        let number = |field| group.number(field).unwrap_or(0);
        let opens = if group.tags[2] == "open" { ops(group) } else { 0 };
        all.add(&FileCounts {
            ops: ops(group),
            opens: opens.saturating_sub(number(Io::errors)),
            read_bytes: number(Io::bytes),
            time_ns: time_ns(group),
            waited_ns: number(Io::waited_ns),
            consecutive: number(Io::consecutive),
            sequential: number(Io::sequential),
            random: number(Io::random),
            ..FileCounts::default()
        });
    }
    let files = FileCounts { read_bytes: files.bytes(), written_bytes: 0, ..*files };
    row("the rest".into(), &all.since(&files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{info::JobInfo, job::Job, totals::RunTotals};

    #[test]
    fn what_is_only_executed_has_no_row() {
        let file = |path: &str, counts| FileUse {
            path: path.into(),
            fs: "ext4".into(),
            files: 1,
            counts,
            ..FileUse::default()
        };
        let none = FileCounts::default();
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        totals.files.files = vec![
            file("/data", FileCounts { ops: 1, ..none }),
            file("/by_ring", FileCounts { written_bytes: 1, ..none }),
            file("…/inode 247085", FileCounts { fetched_bytes: 1 << 20, faults: 9, ..none }),
        ];
        totals.files.folders = totals.files.files.clone();
        let all = AllFiles::of(&Facts::new(&totals, true));
        for rows in [all.files, all.folders] {
            let paths: Vec<_> = rows.iter().map(|row| &*row.path).collect();
            assert_eq!(paths, ["/data", "/by_ring"]);
        }
    }
}
