//! What a job did to files by program and by thread, where a run was asked for it, and which one others wait for.

use serde::Serialize;
use tracer_ebpf::tables::{io::OPS, io_task::METADATA};

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
        units::{bytes, count, duration, long_duration, percent},
    },
    model::{
        io_threads::{IoCounts, ProgramUse, ThreadUse},
        tables::Io,
    },
};

/// Rows of each table.
const MOST: usize = 10;
/// One that took longer than the others by this part of its time is told of (Drishti).
pub const UNEVEN: f64 = 0.15;
/// It matters where that is this part of the run.
pub const UNEVEN_COST: f64 = 0.05;
/// Who does fewer operations than this part of the slowest one's, or takes less time for them, does other work: a parent
/// that reads modules and starts the others. So does who moves less and mostly asks for names, unlike the slowest one.
const SAME_WORK: f64 = 0.05;
/// Who moves as much but for this part of it has the same to do. It takes longer for another reason then, which is one of
/// files where it waits longer in its operations: what keeps it from a CPU there is not.
const ALIKE: f64 = 0.10;
/// From this part of its time on, names and attributes are what it does.
const OF_NAMES: f64 = 0.50;

/// A program, a thread, or all that is neither.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRow {
    /// `python3`, `python3 4711`, of several nodes `python3 4711 on n1`; made harmless.
    pub name: String,
    /// How many threads these were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// What they did.
    #[serde(flatten)]
    pub counts: IoCounts,
}

/// All that is said of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AllThreads {
    /// Programs, those that took longest first.
    pub programs: Vec<ThreadRow>,
    /// What is in no row of `programs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<ThreadRow>,
    /// Threads, in the same order.
    pub threads: Vec<ThreadRow>,
    /// Which one took longer than others that do the same, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uneven: Option<String>,
}

/// Heads of the columns.
pub const HEAD: [&str; 8] =
    ["", "threads", "number", "read", "written", "time", "waiting", "metadata"];
/// What is said of both tables.
pub const OF_PROGRAMS: &str = "by what their threads are called";
pub const OF_THREADS: &str = "those that took longest";

impl AllThreads {
    /// Those of a run; nothing where it was not asked for them.
    pub fn of(facts: &Facts) -> Self {
        let all = &facts.totals.files.threads;
        if all.is_empty() {
            return Self::default();
        }
        let program = |of: &ProgramUse| ThreadRow {
            name: clean(&of.program, facts.unicode),
            threads: Some(of.threads),
            counts: of.counts,
        };
        let thread = |of: &ThreadUse| ThreadRow {
            name: format!("{} {}", clean(&of.program, facts.unicode), place(of, of.thread, facts)),
            threads: None,
            counts: of.counts,
        };
        let programs: Vec<_> = all.programs.iter().take(MOST).map(program).collect();
        Self {
            others: Some(others(facts, &programs)).filter(|others| others.counts.ops > 0),
            programs,
            threads: all.threads.iter().take(MOST).map(thread).collect(),
            uneven: uneven(facts),
        }
    }

    /// The rows of programs and of all others, as in [`HEAD`].
    pub fn program_cells(&self) -> Vec<Vec<String>> {
        self.programs.iter().chain(&self.others).map(ThreadRow::cells).collect()
    }

    /// The rows of threads, as in [`HEAD`] without their number.
    pub fn thread_cells(&self) -> Vec<Vec<String>> {
        let cells = |row: &ThreadRow| {
            let mut cells = row.cells();
            cells.remove(1);
            cells
        };
        self.threads.iter().map(cells).collect()
    }
}

/// Heads of the columns of threads.
pub fn thread_head() -> Vec<&'static str> {
    HEAD.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, head)| *head).collect()
}

impl ThreadRow {
    /// As in [`HEAD`].
    fn cells(&self) -> Vec<String> {
        let counts = &self.counts;
        let some = |number: u64| if number == 0 { String::new() } else { bytes(number) };
        let part = |ns: u64| percent(ns as f64 / counts.time_ns.max(1) as f64);
        vec![
            self.name.clone(),
            self.threads.map_or(String::new(), count),
            count(counts.ops),
            some(counts.read_bytes),
            some(counts.written_bytes),
            duration(counts.time_ns),
            part(counts.waited_ns),
            part(counts.metadata_ns),
        ]
    }
}

/// `4711`, of several nodes `4711 on n1`.
fn place(of: &ThreadUse, number: u32, facts: &Facts) -> String {
    match &*of.host {
        "" => number.to_string(),
        host => format!("{number} on {}", clean(host, facts.unicode)),
    }
}

/// What all operations on storage are beyond those of `programs`.
fn others(facts: &Facts, programs: &[ThreadRow]) -> ThreadRow {
    let mut all = IoCounts::default();
    let metadata = metadata();
    for group in storage(facts) {
        let number = |field| group.number(field).unwrap_or(0);
        let moved = number(Io::bytes);
        let is_write = group.tags[2] == "write";
        all.add(&IoCounts {
            ops: ops(group),
            time_ns: time_ns(group),
            waited_ns: number(Io::waited_ns),
            metadata_ns: if metadata.contains(&&*group.tags[2]) { time_ns(group) } else { 0 },
            read_bytes: if is_write { 0 } else { moved },
            written_bytes: if is_write { moved } else { 0 },
        });
    }
    let mut told = IoCounts::default();
    programs.iter().for_each(|program| told.add(&program.counts));
    ThreadRow { name: "the rest".into(), threads: None, counts: all.since(&told) }
}

/// Operations on names and attributes, as `job_io` calls them.
pub fn metadata() -> [&'static str; METADATA.len()] {
    METADATA.map(|op| OPS[op as usize])
}

/// Whether it does little but names and attributes: what starts a program.
fn does_names(counts: &IoCounts) -> bool {
    counts.metadata_ns as f64 >= counts.time_ns as f64 * OF_NAMES
}

/// One that others of the same program wait for: a process, or a thread where the program has one process alone.
pub struct Uneven {
    /// `process 4711 of sol`, made harmless.
    name: String,
    /// What it did.
    pub most: IoCounts,
    /// How many do the same.
    others: u64,
    /// What they did on average.
    pub mean: IoCounts,
}

impl Uneven {
    /// Of a run; `None` where nobody waits.
    pub fn of(facts: &Facts) -> Option<Self> {
        let all = &facts.totals.files.threads.threads;
        let first = all.first()?;
        let same: Vec<_> = all.iter().filter(|thread| thread.program == first.program).collect();
        let mut processes: Vec<(&ThreadUse, IoCounts)> = Vec::new();
        for thread in &same {
            let is_it = |(of, _): &&mut (&ThreadUse, IoCounts)| {
                (&of.host, of.process) == (&thread.host, thread.process)
            };
            match processes.iter_mut().find(is_it) {
                Some((_, counts)) => counts.add(&thread.counts),
                None => processes.push((thread, thread.counts)),
            }
        }
        let (what, mut parts) = match processes.len() {
            1 => ("thread", same.into_iter().map(|thread| (thread, thread.counts)).collect()),
            _ => ("process", processes),
        };
        parts.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.time_ns));
        let (slowest, most) = *parts.first()?;
        let is_part = |own: u64, most: u64| own as f64 >= most as f64 * SAME_WORK;
        let does_same = |counts: &IoCounts| {
            is_part(counts.ops, most.ops)
                && is_part(counts.time_ns, most.time_ns)
                && (is_part(counts.bytes(), most.bytes())
                    || does_names(&most)
                    || !does_names(counts))
        };
        let others = parts[1..].iter().map(|(_, counts)| counts).filter(|counts| does_same(counts));
        let others: Vec<&IoCounts> = others.collect();
        let mean = |of: fn(&IoCounts) -> u64| {
            added_up(others.iter().map(|counts| of(counts))).checked_div(others.len() as u64)
        };
        let mean = IoCounts {
            time_ns: mean(|counts| counts.time_ns)?,
            waited_ns: mean(|counts| counts.waited_ns)?,
            read_bytes: mean(|counts| counts.read_bytes)?,
            written_bytes: mean(|counts| counts.written_bytes)?,
            ..IoCounts::default()
        };
        let number = if what == "thread" { slowest.thread } else { slowest.process };
        let program = clean(&slowest.program, facts.unicode);
        let name = format!("{what} {} of {program}", place(slowest, number, facts));
        let told = Self { name, most, others: others.len() as u64, mean };
        let is_uneven = told.beyond_ns() as f64 >= most.time_ns as f64 * UNEVEN;
        let matters = told.beyond_ns() as f64 >= facts.totals.elapsed_ns as f64 * UNEVEN_COST;
        let has_cause = !told.moves_as_much() || told.waited_beyond_ns() >= told.beyond_ns() / 2;
        (is_uneven && matters && has_cause).then_some(told)
    }

    /// Whether it moved as much as the others did on average, and not nothing.
    pub fn moves_as_much(&self) -> bool {
        let (most, mean) = (self.most.bytes(), self.mean.bytes());
        let larger = most.max(mean);
        larger > 0 && most.abs_diff(mean) as f64 <= larger as f64 * ALIKE
    }

    /// How much longer it waited in its operations, nanoseconds.
    fn waited_beyond_ns(&self) -> u64 {
        self.most.waited_ns.saturating_sub(self.mean.waited_ns)
    }

    /// How much longer it took than the others did on average, nanoseconds.
    pub fn beyond_ns(&self) -> u64 {
        self.most.time_ns.saturating_sub(self.mean.time_ns)
    }

    /// `process 1 of sol spent 20.0 s on files, the 2 others like it 9.00 s on average`.
    pub fn in_words(&self) -> String {
        let others = match self.others {
            1 => "the other".to_owned(),
            others => format!("the {others} others"),
        };
        format!(
            "{} spent {} on files, {others} like it {} on average",
            self.name,
            long_duration(self.most.time_ns),
            long_duration(self.mean.time_ns),
        )
    }
}

/// The line that says so.
fn uneven(facts: &Facts) -> Option<String> {
    Uneven::of(facts).map(|uneven| format!("uneven: {}", uneven.in_words()))
}

/// The line of the summary: where one takes longer than others that do the same.
pub fn lines(facts: &Facts, style: &Style) -> Vec<Line> {
    below(uneven(facts).as_deref(), style)
}

fn below(text: Option<&str>, style: &Style) -> Vec<Line> {
    let wrapped = text.map(|text| wrap(text, style.width - 2)).unwrap_or_default();
    wrapped.iter().map(|line| Line::new().plain("  ").with(Tone::Warn, line)).collect()
}

/// The block of a terminal's text; nothing where no thread is known.
pub fn block(all: &AllThreads, style: &Style) -> Vec<Line> {
    if all.threads.is_empty() {
        return Vec::new();
    }
    let mut lines = heading("I/O by program", OF_PROGRAMS, style);
    lines.extend(table(&HEAD, &all.program_cells(), style));
    lines.extend(heading("I/O by thread", OF_THREADS, style));
    lines.extend(table(&thread_head(), &all.thread_cells(), style));
    lines.extend(below(all.uneven.as_deref(), style));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{info::JobInfo, job::Job, totals::RunTotals};

    const S: u64 = 1_000_000_000;

    /// Of threads by their process and number; the run took a minute.
    fn told_of(threads: &[(u32, u32, IoCounts)]) -> Option<String> {
        let mut totals = RunTotals::new(Job::default(), JobInfo::default());
        totals.elapsed_ns = 60 * S;
        let one = |(process, thread, counts): &(u32, u32, IoCounts)| ThreadUse {
            program: "sol\x1bver".into(),
            process: *process,
            thread: *thread,
            counts: *counts,
            ..ThreadUse::default()
        };
        totals.files.threads.threads = threads.iter().map(one).collect();
        uneven(&Facts::new(&totals, false))
    }

    /// The same by their operations and time.
    fn told(threads: &[(u32, u32, u64, u64)]) -> Option<String> {
        let counts = |ops, time_ns| IoCounts { ops, time_ns, ..IoCounts::default() };
        let threads = threads
            .iter()
            .map(|(process, thread, ops, time_ns)| (*process, *thread, counts(*ops, *time_ns)));
        told_of(&threads.collect::<Vec<_>>())
    }

    /// A thread that moved so much, and waited so long of its time.
    fn moved(thread: u32, read_bytes: u64, time_ns: u64, waited_ns: u64) -> (u32, u32, IoCounts) {
        let counts = IoCounts { ops: 500, read_bytes, time_ns, waited_ns, ..IoCounts::default() };
        (1, thread, counts)
    }

    /// As much to do takes one longer because it waits for storage or others; or for a CPU, which is no matter of files.
    #[test]
    fn one_that_moves_as_much_is_told_where_it_waits_longer() {
        let told = |bytes, waited_ns| {
            told_of(&[moved(1, bytes, 20 * S, waited_ns), moved(2, 900, 10 * S, S)]).is_some()
        };
        assert!(
            !told(900, S) && !told(1_000, 6 * S - 1),
            "most of it on a CPU, or waiting for one"
        );
        assert!(told(1_000, 6 * S));
        assert!(told(1_001, S), "more to do");
    }

    /// The main thread of a program that starts threads opened its modules.
    #[test]
    fn one_that_started_the_program_is_not_like_those_that_move_data() {
        let of_names = |metadata_ns, read_bytes| {
            let (process, thread, counts) = moved(9, read_bytes, 4 * S, 0);
            (process, thread, IoCounts { metadata_ns, ..counts })
        };
        let told = |started| {
            let workers = [1, 2, 3].map(|thread| moved(thread, 1_000, 20 * S, 10 * S));
            told_of(&[&workers[..], &[started]].concat())
        };
        assert_eq!(told(of_names(2 * S, 49)), None);
        let like_it = "the 3 others like it";
        assert!(told(of_names(2 * S - 1, 49)).unwrap().contains(like_it), "it moves data");
        assert!(told(of_names(2 * S, 50)).unwrap().contains(like_it), "some of it");
    }

    #[test]
    fn one_that_others_wait_for_is_named() {
        let ranks = |slowest| [(1, 1, 900, slowest), (2, 2, 1_000, 10 * S), (3, 3, 1_000, 8 * S)];
        let line = told(&ranks(20 * S)).unwrap();
        assert!(line.starts_with("uneven: process 1 of sol"), "{line}");
        assert!(
            line.ends_with("spent 20.0 s on files, the 2 others like it 9.00 s on average"),
            "{line}"
        );
        assert!(!line.contains('\x1b'));
        assert_eq!(told(&ranks(105 * S / 10)), None, "less than 15 % of its own time");
        // Helpers that hardly use files do other work.
        assert_eq!(told(&[(1, 1, 900, 20 * S), (1, 2, 44, S)]), None);
        let line = told(&[(1, 1, 900, 20 * S), (1, 2, 45, S)]).unwrap();
        assert!(
            line.contains("thread 1 of") && line.contains("the other like it 1.00 s"),
            "{line}"
        );
        assert_eq!(told(&[(1, 1, 900, 3 * S), (1, 2, 900, S)]), None, "3 % of the run");
        assert_eq!(told(&[(1, 1, 900, 20 * S)]), None);
        // A process is the sum of its threads.
        let both = [(1, 1, 900, 10 * S), (1, 4, 900, 10 * S), (2, 2, 1_800, 5 * S)];
        assert!(told(&both).unwrap().contains("process 1 of"));
    }
}
