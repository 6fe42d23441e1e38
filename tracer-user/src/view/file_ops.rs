//! Operations on files, where a run was asked for them: by mount and operation, those that took longest first.

use std::cmp::Reverse;

use serde::Serialize;

use super::{Style, facts::Facts, heading, line::Line, line::Tone, servers, table::table};
use crate::{
    base::{
        text,
        units::{bytes, count, duration, long_duration, percent},
    },
    model::{
        files::is_storage,
        group::Group,
        hist::Hist,
        tables::{IO, IO_ERROR, Io, IoError},
    },
};

/// Rows at most.
const MOST: usize = 10;
/// Kinds of errors at most.
const MOST_ERRORS: usize = 3;
/// Columns of a file system's type and of its mount.
const MAX_FS: usize = 12;
const MAX_MOUNT: usize = 28;

/// Operations of one kind on one mount.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileOps {
    /// `read /scratch (ext4)`, made harmless.
    pub name: String,
    /// How many.
    pub ops: u64,
    /// How many failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Bytes that were not cached: read by a device or server, or brought into the page cache.
    pub uncached_bytes: u64,
    /// Time of all of them, added up.
    pub time_ns: u64,
    /// The part of `time_ns` in those during which the task gave its CPU away.
    pub waited_ns: u64,
    /// The duration that one in a hundred reaches.
    pub p99_ns: Option<u64>,
}

/// All that is said of operations on files.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AllFileOps {
    /// On storage, those that took longest first.
    pub rows: Vec<FileOps>,
    /// What failed how, in words, the most frequent first.
    pub failed: Vec<String>,
    /// What was not cached, and who was made to write more slowly, in words; empty where there is nothing to say.
    pub cache: Vec<String>,
    /// On pipes, sockets and devices, in words; empty where there were none.
    pub elsewhere: String,
    /// What the whole node asked of file servers meanwhile, in words, what took longest first.
    pub servers: Vec<String>,
}

impl AllFileOps {
    /// Those of a run; nothing where it was not asked for them.
    pub fn of(facts: &Facts) -> Self {
        let groups = facts.totals.stats.groups(&IO);
        let elsewhere: Vec<_> = groups.filter(|group| !is_storage(&group.tags[0])).collect();
        let mut rows: Vec<_> = storage(facts).map(|group| row(group, facts.unicode)).collect();
        rows.sort_by_key(|row| (Reverse((row.time_ns, row.ops)), row.name.clone()));
        let sum = |of: fn(&Group) -> u64| added_up(elsewhere.iter().map(|group| of(group)));
        let (ops, time_ns) = (sum(ops), sum(time_ns));
        let elsewhere = match ops {
            0 => String::new(),
            _ => format!(
                "not in the table: {} operation{} on pipes, sockets and devices ({})",
                count(ops),
                if ops == 1 { "" } else { "s" },
                long_duration(time_ns)
            ),
        };
        let cache = uncached(&rows).into_iter().chain(throttled(facts)).collect();
        let servers = servers::in_words(facts);
        Self { rows, failed: failed(facts), cache, elsewhere, servers }
    }

    /// `4.2 s in 12.3k operations`.
    pub fn in_words(&self) -> String {
        let time_ns = added_up(self.rows.iter().map(|row| row.time_ns));
        let ops = added_up(self.rows.iter().map(|row| row.ops));
        format!("{} in {} operations, all tasks added up", long_duration(time_ns), count(ops))
    }

    /// Heads of the columns.
    pub const HEAD: [&str; 7] = ["", "number", "moved", "time", "waiting", "p99", "failed"];

    /// The cells of the rows that there is room for.
    pub fn cells(&self) -> Vec<Vec<String>> {
        let mut cells: Vec<_> = self.rows.iter().take(MOST).map(FileOps::cells).collect();
        if self.rows.len() > MOST {
            let rest = &self.rows[MOST..];
            let sum = |of: fn(&FileOps) -> u64| added_up(rest.iter().map(of));
            let others = FileOps {
                name: format!("{} more", rest.len()),
                ops: sum(|row| row.ops),
                errors: sum(|row| row.errors),
                bytes: sum(|row| row.bytes),
                uncached_bytes: sum(|row| row.uncached_bytes),
                time_ns: sum(|row| row.time_ns),
                waited_ns: sum(|row| row.waited_ns),
                p99_ns: None,
            };
            cells.push(others.cells());
        }
        cells
    }
}

impl FileOps {
    /// As in [`AllFileOps::HEAD`].
    fn cells(&self) -> Vec<String> {
        let some = |number: u64, show: fn(u64) -> String| match number {
            0 => String::new(),
            _ => show(number),
        };
        let waited = self.waited_ns as f64 / self.time_ns.max(1) as f64;
        vec![
            self.name.clone(),
            count(self.ops),
            some(self.bytes, bytes),
            some(self.time_ns, duration),
            if self.time_ns == 0 { String::new() } else { percent(waited) },
            self.p99_ns.map_or(String::new(), duration),
            some(self.errors, count),
        ]
    }
}

/// The block of the summary.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    block(&AllFileOps::of(facts), style)
}

/// The block of a terminal's text; nothing where there were no such operations.
pub fn block(all: &AllFileOps, style: &Style) -> Vec<Line> {
    if all.rows.is_empty() {
        return Vec::new();
    }
    let mut lines = heading("I/O by mount and operation", &all.in_words(), style);
    lines.extend(table(&AllFileOps::HEAD, &all.cells(), style));
    let below = |text: &str, tone: Tone| {
        let wrapped = text::wrap(text, style.width - 2);
        wrapped.iter().map(|line| Line::new().plain("  ").with(tone, line)).collect::<Vec<_>>()
    };
    lines.extend(all.failed.iter().flat_map(|text| below(text, Tone::Warn)));
    lines.extend(all.cache.iter().flat_map(|text| below(text, Tone::Plain)));
    if !all.elsewhere.is_empty() {
        lines.extend(below(&all.elsewhere, Tone::Faint));
    }
    lines.extend(all.servers.iter().flat_map(|text| below(text, Tone::Plain)));
    lines
}

/// Operations on storage, by file system, mount and kind of call.
pub fn storage<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'a Group> {
    facts.totals.stats.groups(&IO).filter(|group| is_storage(&group.tags[0]))
}

/// The sum, or the largest number there is: records come from outside.
pub fn added_up(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// How many operations.
pub fn ops(group: &Group) -> u64 {
    group.number(Io::ops).unwrap_or(0)
}

/// Bytes that were not cached. What a device read without the page cache was not brought there; of file systems that do
/// not tell what was read, that is all that is known.
pub fn uncached_bytes(group: &Group) -> u64 {
    let number = |field| group.number(field).unwrap_or(0);
    number(Io::device_read_bytes).max(number(Io::fetched_bytes))
}

/// How long a task was in all of them: not at all in requests that it need not wait for.
pub fn time_ns(group: &Group) -> u64 {
    if group.tags[2].starts_with("uring_") {
        return 0;
    }
    group.hist(Io::latency_ns).map_or(0, |took| took.sum)
}

fn row(group: &Group, unicode: bool) -> FileOps {
    let number = |field| group.number(field).unwrap_or(0);
    FileOps {
        name: name(&group.tags[2], &group.tags[0], &group.tags[1], unicode),
        ops: ops(group),
        errors: number(Io::errors),
        bytes: number(Io::bytes),
        uncached_bytes: uncached_bytes(group),
        time_ns: time_ns(group),
        waited_ns: number(Io::waited_ns),
        p99_ns: group.hist(Io::latency_ns).and_then(Hist::quantiles).map(|all| all[2]),
    }
}

/// `read /scratch (ext4)`; without a mount `read (ext4)`.
pub fn name(op: &str, fs: &str, mount: &str, unicode: bool) -> String {
    format!("{} {}", text::clean(op, unicode), place(fs, mount, unicode))
}

/// `/scratch (ext4)`; without a mount `(ext4)`.
pub fn place(fs: &str, mount: &str, unicode: bool) -> String {
    let fs = match fs {
        "unknown" => "unknown mount".to_owned(),
        fs => text::truncate(&text::clean(fs, unicode), MAX_FS),
    };
    match mount {
        "" => format!("({fs})"),
        mount => {
            let mount = text::middle(&text::clean(mount, unicode), MAX_MOUNT);
            format!("{mount} ({fs})")
        }
    }
}

/// `not cached: 300 MiB for read /scratch (ext4), 20 MiB for mmap /scratch (ext4)`.
fn uncached(rows: &[FileOps]) -> Option<String> {
    let mut rows: Vec<_> = rows.iter().filter(|row| row.uncached_bytes > 0).collect();
    rows.sort_by_key(|row| Reverse(row.uncached_bytes));
    let words = |row: &&FileOps| format!("{} for {}", bytes(row.uncached_bytes), row.name);
    let words: Vec<_> = rows.iter().take(MOST_ERRORS).map(words).collect();
    (!words.is_empty()).then(|| format!("not cached: {}", words.join(", ")))
}

/// `49 pauses (584 ms) because it wrote faster than the device, most in write /scratch (ext4)`.
fn throttled(facts: &Facts) -> Option<String> {
    let paused = |group: &&Group| group.number(Io::throttled_ns).unwrap_or(0);
    let most = storage(facts).max_by_key(paused).filter(|group| paused(group) > 0)?;
    let pauses = storage(facts).filter_map(|group| group.number(Io::throttled));
    Some(format!(
        "{} pauses ({}) because it wrote faster than the device, most in {}",
        count(added_up(pauses)),
        duration(added_up(storage(facts).map(|group| paused(&group)))),
        name(&most.tags[2], &most.tags[0], &most.tags[1], facts.unicode)
    ))
}

/// `70 of open /scratch (ext4) failed with ENOENT`.
fn failed(facts: &Facts) -> Vec<String> {
    let groups = facts.totals.stats.groups(&IO_ERROR);
    let mut errors: Vec<_> = groups
        .filter(|group| is_storage(&group.tags[1]))
        .filter_map(|group| {
            let [error, fs, mount, op] = &group.tags[..] else { return None };
            let name = name(op, fs, mount, facts.unicode);
            let error = text::truncate(&text::clean(error, facts.unicode), MAX_FS);
            Some((group.number(IoError::ops)?, name, error))
        })
        .filter(|(ops, ..)| *ops > 0)
        .collect();
    errors.sort_by_key(|(ops, name, error)| (Reverse(*ops), name.clone(), error.clone()));
    errors.truncate(MOST_ERRORS);
    let words = |(ops, name, error)| format!("{} of {name} failed with {error}", count(ops));
    errors.into_iter().map(words).collect()
}
