//! A job's course over time: at most [`MOST_COLUMNS`] columns, whose width doubles as the job grows. Sums stay
//! sums and peaks stay peaks, to the unit.
//!
//! Columns begin at multiples of their width since the Unix epoch, and widths are powers of two of seconds: so
//! those of two nodes, or of two halves of a run, fall onto each other.

use tracer_ebpf::{
    handle::{Handle, Number},
    table::{Kind, Unit},
};

use super::packed::Packed;
use crate::model::{
    group::Group,
    tables::{BLOCK, Block, GPU, Gpu, MEMORY, Memory, NET, Net, SCHED, Sched},
};

/// Columns of a timeline at most.
pub const MOST_COLUMNS: u64 = 240;
/// Width of the first columns.
pub const FIRST_WIDTH_NS: u64 = 1_000_000_000;
/// Later than any clock that is right (the year 2116): a recording may name any time, and sums of these fit.
const LATEST_NS: u64 = 1 << 62;

/// What is told over time: one value a column.
#[derive(Debug)]
pub struct Series {
    /// Public name: never renamed.
    pub name: &'static str,
    /// [`Kind::Counter`], which adds up over columns and nodes, or [`Kind::Peak`], of which the largest stands.
    pub kind: Kind,
    /// Unit of the values.
    pub unit: Unit,
    /// One sentence for docs/RECORD.md.
    pub help: &'static str,
    /// Its value in an interval of a job's; `None` where that is unknown.
    value: fn(&[Group]) -> Option<u64>,
}

/// How many there are.
pub const WIDTH: usize = SERIES.len();

/// All of them, in the order of their output.
pub static SERIES: [Series; 9] = [
    Series {
        name: "on_cpu_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks on a CPU: divided by the width, cores in use.",
        value: |groups| sum(groups, Sched::on_cpu_ns),
    },
    Series {
        name: "run_queue_wait_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks waiting for a CPU.",
        value: |groups| of(groups, &SCHED, |group| Some(group.hist(Sched::run_queue_wait_ns)?.sum)),
    },
    Series {
        name: "blocked_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time of the job's tasks blocked.",
        value: |groups| of(groups, &SCHED, |group| Some(group.hist(Sched::blocked_ns)?.sum)),
    },
    Series {
        name: "memory_bytes",
        kind: Kind::Peak,
        unit: Unit::Bytes,
        help: "Most anonymous and shared memory of any reading, without the page cache.",
        value: |groups| of(groups, &MEMORY, used_bytes),
    },
    Series {
        name: "disk_read_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Read from local disks.",
        value: |groups| disk(groups, "read"),
    },
    Series {
        name: "disk_written_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Written to local disks.",
        value: |groups| disk(groups, "write"),
    },
    Series {
        name: "net_bytes",
        kind: Kind::Counter,
        unit: Unit::Bytes,
        help: "Sent and received through sockets.",
        value: |groups| {
            of(groups, &NET, |group| {
                Some(
                    group
                        .number(Net::sent_bytes)?
                        .saturating_add(group.number(Net::received_bytes)?),
                )
            })
        },
    },
    Series {
        name: "gpu_busy_ns",
        kind: Kind::Counter,
        unit: Unit::Nanoseconds,
        help: "Time in which a kernel ran on the job's GPUs, all added up.",
        value: |groups| sum(groups, Gpu::busy_ns),
    },
    Series {
        name: "gpu_memory_bytes",
        kind: Kind::Peak,
        unit: Unit::Bytes,
        help: "Most device memory in use at the end of any interval, all of the job's GPUs together.",
        value: |groups| of(groups, &GPU, |group| group.number(Gpu::memory_used_bytes)),
    },
];

/// Memory that the job's processes need: without the page cache.
pub fn used_bytes(memory: &Group) -> Option<u64> {
    let (anon, shmem) = (memory.number(Memory::anon_bytes)?, memory.number(Memory::shmem_bytes)?);
    Some(anon.saturating_add(shmem))
}

fn disk(groups: &[Group], op: &str) -> Option<u64> {
    let is_known = groups.iter().any(|group| group.is(&BLOCK));
    let bytes = |group: &Group| {
        if group.tags[1] == op { group.number(Block::bytes) } else { is_known.then_some(0) }
    };
    of(groups, &BLOCK, bytes)
}

fn sum(groups: &[Group], field: Handle<Number>) -> Option<u64> {
    of(groups, field.measurement(), |group| group.number(field))
}

/// The sum of `value` over the groups of `measurement`; `None` where none of them knows it.
fn of(
    groups: &[Group],
    measurement: &'static tracer_ebpf::table::Measurement,
    value: impl Fn(&Group) -> Option<u64>,
) -> Option<u64> {
    let values = groups.iter().filter(|group| group.is(measurement)).filter_map(value);
    values.reduce(u64::saturating_add)
}

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// From here on values were added, wall time.
    begin_ns: u64,
    /// Wall time of the first column's begin, a multiple of the width.
    start_ns: u64,
    width_ns: u64,
    /// Up to here values were added.
    end_ns: u64,
    /// All columns but the last.
    closed: Packed<WIDTH>,
    /// The last one.
    open: Column,
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
            closed: Packed::default(),
            open: [None; WIDTH],
        }
    }

    /// One of `columns`, each `width_ns` wide, with values from `begin_ns` to `end_ns`; `None` where no program wrote
    /// such a one.
    pub fn of(begin_ns: u64, end_ns: u64, width_ns: u64, columns: &[Column]) -> Option<Self> {
        let start_ns = begin_ns - begin_ns.checked_rem(width_ns)?;
        let is_width = width_ns.is_multiple_of(FIRST_WIDTH_NS)
            && (width_ns / FIRST_WIDTH_NS).is_power_of_two();
        let (open, closed) = columns.split_last()?;
        let last_ns = (closed.len() as u64).checked_mul(width_ns)?.checked_add(start_ns)?;
        let is_one = is_width
            && begin_ns <= end_ns
            && columns.len() as u64 <= MOST_COLUMNS
            && end_ns <= LATEST_NS
            && (last_ns..=last_ns.checked_add(width_ns)?).contains(&end_ns);
        let packed = || closed.iter().copied().collect();
        is_one.then(|| Self { begin_ns, start_ns, width_ns, end_ns, closed: packed(), open: *open })
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
    pub fn columns(&self) -> impl Iterator<Item = Column> + '_ {
        self.closed.iter().chain([self.open])
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.closed.memory_bytes()
    }

    /// Adds the next `span_ns`, in which the job did `groups`: sums are spread evenly over it. What comes without
    /// a span, late, is the last column's.
    pub fn add(&mut self, span_ns: u64, groups: &[Group]) {
        let values = std::array::from_fn(|at| (SERIES[at].value)(groups));
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
        let doubled = merged(&[self], self.width_ns * 2);
        *self = doubled;
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
    let closed = columns.into_iter().collect();
    Timeline { begin_ns, start_ns, width_ns, end_ns, closed, open }
}
