//! A job's course over time: at most [`MOST_COLUMNS`] columns, whose width doubles as the job grows. Their sums are
//! exact, and no peak is understated; each single column is rounded (`rounded.rs`).
//!
//! Columns begin at multiples of their width since the Unix epoch, and widths are powers of two of seconds: so
//! those of two nodes, or of two halves of a run, fall onto each other.

use serde::{Deserialize, Serialize};
use tracer_ebpf::table::Kind;

use super::{
    rounded::Rounded,
    series::{SERIES, WIDTH},
};
use crate::model::group::Group;

pub use super::rounded::FINENESS;

/// Columns of a timeline at most.
pub const MOST_COLUMNS: u64 = 240;
/// Width of the first columns.
pub const FIRST_WIDTH_NS: u64 = 1_000_000_000;
/// Later than any clock that is right (the year 2116): a recording may name any time, and sums of these fit.
const LATEST_NS: u64 = 1 << 62;

/// The values of one column, in the order of [`SERIES`].
pub type Column = [Option<u64>; WIDTH];

/// Adds `more` to `column`: counters add, of peaks the largest stands, what one of them knows is known.
fn add(column: &mut Column, more: &Column) {
    for ((value, more), series) in column.iter_mut().zip(more).zip(&SERIES) {
        *value = match (*value, *more, series.kind) {
            (Some(a), Some(b), Kind::Peak) => Some(a.max(b)),
            (Some(a), Some(b), _) => Some(a.saturating_add(b)),
            (a, b, _) => a.or(b),
        };
    }
}

/// The course of one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Kept", into = "Kept")]
pub struct Timeline {
    /// From here on values were added, wall time.
    begin_ns: u64,
    /// Wall time of the first column's begin, a multiple of the width.
    start_ns: u64,
    width_ns: u64,
    /// Up to here values were added.
    end_ns: u64,
    /// All columns but the last.
    closed: Rounded,
    /// The last one.
    open: Column,
}

/// What they tell is the same, however it is held.
impl PartialEq for Timeline {
    fn eq(&self, other: &Self) -> bool {
        let times = |one: &Self| (one.begin_ns, one.end_ns, one.width_ns);
        times(self) == times(other) && self.columns().eq(other.columns())
    }
}

impl Timeline {
    /// One that begins at `wall_ns` and knows nothing so far.
    pub fn new(wall_ns: u64) -> Self {
        let (width_ns, end_ns) = (FIRST_WIDTH_NS, wall_ns.min(LATEST_NS));
        let (begin_ns, start_ns) = (end_ns, end_ns - end_ns % width_ns);
        Self {
            begin_ns,
            start_ns,
            width_ns,
            end_ns,
            closed: Rounded::default(),
            open: [None; WIDTH],
        }
    }

    /// One of `columns`, each `width_ns` wide, with values from `begin_ns` to `end_ns`; `None` where no program wrote
    /// such a one.
    pub fn of(begin_ns: u64, end_ns: u64, width_ns: u64, columns: &[Column]) -> Option<Self> {
        let (open, closed) = columns.split_last()?;
        Self::held(begin_ns, end_ns, width_ns, Rounded::exactly(closed), *open)
    }

    /// The same of columns as they are held.
    fn held(
        begin_ns: u64,
        end_ns: u64,
        width_ns: u64,
        closed: Rounded,
        open: Column,
    ) -> Option<Self> {
        let start_ns = begin_ns - begin_ns.checked_rem(width_ns)?;
        let is_width = width_ns.is_multiple_of(FIRST_WIDTH_NS)
            && (width_ns / FIRST_WIDTH_NS).is_power_of_two();
        let last_ns = (closed.len() as u64).checked_mul(width_ns)?.checked_add(start_ns)?;
        let is_one = is_width
            && begin_ns <= end_ns
            && (closed.len() as u64) < MOST_COLUMNS
            && end_ns <= LATEST_NS
            && (last_ns..=last_ns.checked_add(width_ns)?).contains(&end_ns)
            && closed.is_sound();
        is_one.then_some(Self { begin_ns, start_ns, width_ns, end_ns, closed, open })
    }

    /// Wall time from which on values were added.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Wall time of the first column's begin: [`Self::begin_ns`], rounded down to a multiple of the width.
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Width of each column.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Wall time up to which values were added.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Wall time of the last column's begin.
    fn open_ns(&self) -> u64 {
        self.start_ns + self.closed.len() as u64 * self.width_ns
    }

    /// The columns from the first on; there is always one.
    pub fn columns(&self) -> impl Iterator<Item = Column> + use<> {
        let mut columns: Vec<Column> = self.closed.iter().chain([self.open]).collect();
        for (at, rest) in self.closed.rest().iter().enumerate().filter(|(_, rest)| **rest > 0) {
            let mut known = columns.iter_mut().rev().filter_map(|column| column[at].as_mut());
            known.next().into_iter().for_each(|value| *value = value.saturating_add(*rest));
        }
        columns.into_iter()
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.closed.memory_bytes()
    }

    /// Adds the next `span_ns`, in which the job did `groups`: sums are spread evenly over it. What comes without
    /// a span, late, is the last column's.
    pub fn add(&mut self, span_ns: u64, groups: &[Group]) {
        self.add_after(&[], span_ns, groups);
    }

    /// The same of a job of which all that it did `before` is known.
    pub fn add_after(&mut self, before: &[Group], span_ns: u64, groups: &[Group]) {
        let values = std::array::from_fn(|at| SERIES[at].value(groups, before));
        let until_ns = self.end_ns.saturating_add(span_ns).min(LATEST_NS);
        while until_ns > self.start_ns + MOST_COLUMNS * self.width_ns {
            self.double();
        }
        if until_ns == self.end_ns {
            return add(&mut self.open, &values);
        }
        let (from_ns, span_ns) = (self.end_ns, until_ns - self.end_ns);
        let mut before = values.map(|value| value.map(|_| 0));
        while self.end_ns < until_ns {
            let open_ns = self.open_ns();
            if self.end_ns == open_ns + self.width_ns {
                self.closed.push(&self.open);
                self.open = [None; WIDTH];
                continue;
            }
            self.end_ns = until_ns.min(open_ns + self.width_ns);
            let so_far = |value: u64| {
                let of_it = u128::from(value) * u128::from(self.end_ns - from_ns);
                (of_it / u128::from(span_ns)) as u64
            };
            // Each part is what is due by its end less what was given: together they are the whole.
            let due = |at: usize| match SERIES[at].kind {
                Kind::Peak => (values[at], values[at]),
                _ => (
                    values[at].map(so_far),
                    values[at].map(so_far).zip(before[at]).map(|(a, b)| a - b),
                ),
            };
            let parts: [_; WIDTH] = std::array::from_fn(due);
            before = parts.map(|(due, _)| due);
            add(&mut self.open, &parts.map(|(_, part)| part));
        }
    }

    /// Twice as wide columns, of which each holds what two held.
    fn double(&mut self) {
        *self = merged(&[self], self.width_ns * 2);
        self.closed.round();
    }

    /// All of `timelines` in one, whatever their order; `None` without any.
    pub fn merge(timelines: &[&Self]) -> Option<Self> {
        let width_ns = timelines.iter().map(|one| one.width_ns).max()?;
        Some(merged(timelines, width_ns))
    }
}

/// All of `timelines` with columns of `width_ns` or, where they would be too many, more. None of them is wider.
fn merged(timelines: &[&Timeline], mut width_ns: u64) -> Timeline {
    let begin_ns = timelines.iter().map(|one| one.begin_ns).min().unwrap_or_default();
    let end_ns = timelines.iter().map(|one| one.end_ns).max().unwrap_or_default();
    let last = timelines.iter().map(|one| one.open_ns()).max().unwrap_or_default();
    while last / width_ns - begin_ns / width_ns >= MOST_COLUMNS {
        width_ns *= 2;
    }
    let mut columns: Vec<Column> = Vec::new();
    for one in timelines {
        for (at, column) in (0u64..).zip(one.columns()) {
            let from_ns = one.start_ns + at * one.width_ns;
            let index = (from_ns / width_ns - begin_ns / width_ns) as usize;
            if index >= columns.len() {
                columns.resize(index + 1, [None; WIDTH]);
            }
            add(&mut columns[index], &column);
        }
    }
    let open = columns.pop().unwrap_or([None; WIDTH]);
    let start_ns = begin_ns - begin_ns % width_ns;
    let closed = Rounded::exactly(&columns);
    Timeline { begin_ns, start_ns, width_ns, end_ns, closed, open }
}

/// The form in which an agent keeps it for the next one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    begin_ns: u64,
    end_ns: u64,
    width_ns: u64,
    closed: Rounded,
    open: Column,
}

impl From<Timeline> for Kept {
    fn from(timeline: Timeline) -> Self {
        let Timeline { begin_ns, end_ns, width_ns, closed, open, .. } = timeline;
        Self { begin_ns, end_ns, width_ns, closed, open }
    }
}

impl TryFrom<Kept> for Timeline {
    type Error = &'static str;

    fn try_from(kept: Kept) -> Result<Self, Self::Error> {
        let Kept { begin_ns, end_ns, width_ns, closed, open } = kept;
        Self::held(begin_ns, end_ns, width_ns, closed, open)
            .ok_or("a timeline's columns do not fit its times")
    }
}
