//! The jobs that run, by where their time goes now: what `top` shows.
//!
//! Pure: lists of jobs in, rows out. What a job does now is the difference of two lists, or what it did on average
//! where there is one only.

use std::collections::BTreeMap;

use clap::ValueEnum;

use super::jobs::Row;
use crate::{
    base::{
        text::{self, clean},
        units::{UNKNOWN, byte_rate, cores, duration, percent},
    },
    record::select::Run,
    view::{
        Style,
        line::{Line, Tone},
    },
};

/// By what jobs are sorted: the most comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Cores in use.
    #[default]
    Cpu,
    /// Tasks waiting for a CPU.
    Waiting,
    /// Tasks blocked.
    Blocked,
    /// Memory needed at the peak.
    Memory,
    /// Read from and written to local disks.
    Disk,
    /// Sent and received.
    Net,
    /// GPUs busy.
    Gpu,
    /// Time for which it has been running.
    Time,
}

/// What a job did in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Activity {
    /// That time.
    span_ns: u64,
    on_cpu_ns: Option<u64>,
    waiting_ns: Option<u64>,
    blocked_ns: Option<u64>,
    disk_bytes: Option<u64>,
    net_bytes: Option<u64>,
    gpu_busy_ns: Option<u64>,
    gpu_held_ns: Option<u64>,
}

impl Activity {
    /// From `before` on, or from its begin.
    fn of(row: &Row, before: Option<&Row>) -> Self {
        let since = |of: fn(&Row) -> Option<u64>| {
            Some(of(row)?.saturating_sub(before.and_then(of).unwrap_or(0)))
        };
        Self {
            span_ns: row.elapsed_ns - before.map_or(0, |before| before.elapsed_ns),
            on_cpu_ns: since(|row| row.on_cpu_ns),
            waiting_ns: since(|row| row.run_queue_wait_ns),
            blocked_ns: since(|row| row.blocked_ns),
            disk_bytes: since(|row| row.disk_bytes),
            net_bytes: since(|row| row.net_bytes),
            gpu_busy_ns: since(|row| row.gpu_busy_ns),
            gpu_held_ns: since(|row| row.gpu_held_ns),
        }
    }

    /// A part of its time as a share of it, or of all tasks' busy time where that is more: as a report has it.
    fn share(&self, ns: Option<u64>) -> String {
        let parts = [self.on_cpu_ns, self.waiting_ns, self.blocked_ns];
        let busy_ns = parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part));
        let whole_ns = busy_ns.max(self.span_ns).max(1);
        ns.map_or(UNKNOWN.to_owned(), |ns| percent(ns as f64 / whole_ns as f64))
    }

    /// Thousandths of what one would be all the time.
    fn thousandths(&self, ns: Option<u64>) -> Option<u64> {
        let thousandths = (u128::from(ns?) * 1000).checked_div(u128::from(self.span_ns))?;
        u64::try_from(thousandths).ok()
    }

    /// Nothing where there was none, or none that is known of.
    fn rate(&self, amount: Option<u64>) -> String {
        let amount = amount.filter(|amount| *amount > 0);
        amount.map_or(String::new(), |amount| byte_rate(amount, self.span_ns))
    }
}

/// A job that runs.
#[derive(Clone, Debug)]
pub struct Now {
    /// What is known of it.
    pub row: Row,
    /// What it does.
    pub does: Activity,
}

/// The jobs that run.
#[derive(Debug, Default)]
pub struct Jobs {
    jobs: BTreeMap<Key, Now>,
}

/// What tells a job from all others.
pub type Key = (String, String, u64);

/// That of `row`.
pub fn key(row: &Row) -> Key {
    (row.manager.clone(), row.job.clone(), row.start)
}

impl Jobs {
    /// Takes the next list, of which those that run are kept.
    pub fn take(&mut self, runs: &[Run]) {
        let rows = runs.iter().map(Row::from).filter(|row| row.state == "running");
        let now = |row: Row| {
            let known = self.jobs.get(&key(&row));
            // A list of the same reading tells nothing new; one that begins anew is of another agent.
            let does = match known {
                Some(known) if known.row.elapsed_ns == row.elapsed_ns => known.does,
                Some(known) if known.row.elapsed_ns < row.elapsed_ns => {
                    Activity::of(&row, Some(&known.row))
                }
                _ => Activity::of(&row, None),
            };
            (key(&row), Now { row, does })
        };
        self.jobs = rows.map(now).collect();
    }

    /// Them in order.
    pub fn sorted(&self, sort: Sort) -> Vec<&Now> {
        let mut jobs: Vec<&Now> = self.jobs.values().collect();
        let rate = |now: &Now, amount: Option<u64>| {
            amount.unwrap_or(0) as f64 / now.does.span_ns.max(1) as f64
        };
        let by = |now: &Now| match sort {
            Sort::Cpu => rate(now, now.does.on_cpu_ns),
            Sort::Waiting => rate(now, now.does.waiting_ns),
            Sort::Blocked => rate(now, now.does.blocked_ns),
            Sort::Memory => now.row.memory_used_peak_bytes.unwrap_or(0) as f64,
            Sort::Disk => rate(now, now.does.disk_bytes),
            Sort::Net => rate(now, now.does.net_bytes),
            Sort::Gpu => rate(now, now.does.gpu_busy_ns),
            Sort::Time => now.row.elapsed_ns as f64,
        };
        jobs.sort_by(|a, b| by(b).total_cmp(&by(a)));
        jobs
    }
}

/// A column: its head, how soon it gives way where there is no room (0: never), its cell.
struct Column {
    head: &'static str,
    gives_way: u8,
    is_number: bool,
    cell: fn(&Now, bool) -> String,
}

const fn number(head: &'static str, gives_way: u8, cell: fn(&Now, bool) -> String) -> Column {
    Column { head, gives_way, is_number: true, cell }
}

const fn words(head: &'static str, gives_way: u8, cell: fn(&Now, bool) -> String) -> Column {
    Column { head, gives_way, is_number: false, cell }
}

/// Columns of a text at most.
const LONGEST: usize = 16;
/// Between two columns.
const GAP: usize = 2;

static COLUMNS: [Column; 12] = [
    words("JOB", 0, |now, unicode| named(&now.row.job, unicode)),
    words("USER", 5, |now, unicode| named(&now.row.user, unicode)),
    number("CORES", 1, |now, _| {
        let used = now.does.thousandths(now.does.on_cpu_ns).map_or("?".into(), cores);
        let held = now.row.millicores_held.map_or("?".into(), cores);
        format!("{used}/{held}")
    }),
    number("ON CPU", 0, |now, _| now.does.share(now.does.on_cpu_ns)),
    number("WAITING", 2, |now, _| now.does.share(now.does.waiting_ns)),
    number("BLOCKED", 0, |now, _| now.does.share(now.does.blocked_ns)),
    number("MEMORY", 4, |now, unicode| now.row.memory_shown(unicode)),
    number("DISK", 7, |now, _| now.does.rate(now.does.disk_bytes)),
    number("NET", 8, |now, _| now.does.rate(now.does.net_bytes)),
    number("GPUS", 6, |now, _| match now.does.gpu_held_ns {
        None | Some(0) => String::new(),
        held => {
            let of = |ns| now.does.thousandths(ns).map_or("?".into(), cores);
            format!("{}/{}", of(now.does.gpu_busy_ns), of(held))
        }
    }),
    number("TIME", 3, |now, _| duration(now.row.elapsed_ns)),
    words("NAME", 9, |now, unicode| named(&now.row.name, unicode)),
];

fn named(name: &str, unicode: bool) -> String {
    text::truncate(&clean(name, unicode), LONGEST)
}

/// A line of heads and one for each of `jobs`, with the columns for which there is room; those that are empty all the
/// way down are left out.
pub fn lines(jobs: &[&Now], style: &Style) -> Vec<Line> {
    let mut columns: Vec<(&Column, Vec<String>)> = COLUMNS
        .iter()
        .map(|column| (column, jobs.iter().map(|now| (column.cell)(now, style.unicode)).collect()))
        .filter(|(_, cells): &(_, Vec<String>)| {
            jobs.is_empty() || cells.iter().any(|cell| !cell.is_empty())
        })
        .collect();
    let width = |(column, cells): &(&Column, Vec<String>)| {
        cells.iter().map(|cell| text::width(cell)).chain([column.head.len()]).max().unwrap_or(0)
    };
    let taken =
        |columns: &[Shown]| -> usize { columns.iter().map(|column| width(column) + GAP).sum() };
    while taken(&columns) > style.width.saturating_add(GAP) {
        let first = columns.iter().enumerate().max_by_key(|(_, (column, _))| column.gives_way);
        match first.filter(|(_, (column, _))| column.gives_way > 0).map(|(at, _)| at) {
            Some(at) => drop(columns.remove(at)),
            None => break,
        }
    }
    let line = |tone, cell: Cell| {
        let cells = columns.iter().map(|column| match column.0.is_number {
            true => text::right(&cell(column), width(column)),
            false => text::left(&cell(column), width(column)),
        });
        Line::new().with(tone, cells.collect::<Vec<_>>().join(&" ".repeat(GAP)))
    };
    let rows = (0..jobs.len()).map(|at| line(Tone::Plain, &|column| column.1[at].clone()));
    std::iter::once(line(Tone::Faint, &|column| column.0.head.to_owned())).chain(rows).collect()
}

/// A column that is shown, with its cells.
type Shown<'a> = (&'a Column, Vec<String>);
/// What a line has in a column.
type Cell<'a> = &'a dyn Fn(&Shown) -> String;

#[cfg(test)]
mod tests;
