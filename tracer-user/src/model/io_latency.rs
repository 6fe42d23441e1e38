//! How long a job's operations on files took over time, where it was asked for: for each column of time how many there
//! were of each class of durations. Classes are bounded by powers of two, as the buckets of histograms are, so that
//! each operation is in its class exactly.

use serde::{Deserialize, Serialize};
use tracer_ebpf::loglinear::bucket_low;

use super::{
    files::is_storage,
    group::Group,
    tables::{IO, Io},
};

/// Columns at most; their width doubles as the job grows.
pub const MOST_COLUMNS: usize = 240;
/// Classes of durations.
pub const CLASSES: usize = 13;
/// log2 of the nanoseconds that the first class is below, and of how much wider each is than the one before.
const FIRST_BITS: u32 = 12;
const STEP_BITS: u32 = 2;
/// Width of the first columns.
const FIRST_WIDTH_NS: u64 = 1_000_000_000;
/// Later than any clock that is right (the year 2116): sums of such times fit.
const LATEST_NS: u64 = 1 << 62;

/// Operations of one column, by class.
pub type Counts = [u64; CLASSES];

/// The shortest duration in `class`, nanoseconds.
pub const fn least_ns(class: usize) -> u64 {
    match class {
        0 => 0,
        _ => 1 << (FIRST_BITS + STEP_BITS * (class as u32 - 1)),
    }
}

/// How many operations on storage of `groups` are in each class.
fn counts_of(groups: &[Group]) -> Counts {
    let mut counts = [0_u64; CLASSES];
    let storage = groups.iter().filter(|group| group.is(&IO) && is_storage(&group.tags[0]));
    for hist in storage.filter_map(|group| group.hist(Io::latency_ns)) {
        for (bucket, count) in hist.buckets() {
            let class = &mut counts[class_of(bucket_low(bucket))];
            *class = class.saturating_add(count);
        }
    }
    counts
}

/// The class of a duration.
const fn class_of(ns: u64) -> usize {
    let bits = u64::BITS - ns.leading_zeros();
    if bits <= FIRST_BITS {
        return 0;
    }
    let class = 1 + ((bits - 1 - FIRST_BITS) / STEP_BITS) as usize;
    if class < CLASSES { class } else { CLASSES - 1 }
}

/// The durations over time; columns begin at multiples of their width since the Unix epoch, so that those of two nodes
/// fall onto each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Told")]
pub struct IoLatency {
    /// Wall time of the first column's begin.
    begin: u64,
    width_ns: u64,
    /// From the first with an operation to the last.
    columns: Vec<Counts>,
}

impl Default for IoLatency {
    fn default() -> Self {
        Self { begin: 0, width_ns: FIRST_WIDTH_NS, columns: Vec::new() }
    }
}

impl IoLatency {
    /// Whether there was no operation.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Width of each column.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Each column with the wall time of its begin.
    pub fn columns(&self) -> impl Iterator<Item = (u64, &Counts)> {
        let begin_ns = |at: u64| self.begin + at * self.width_ns;
        (0..).zip(&self.columns).map(move |(at, counts)| (begin_ns(at), counts))
    }

    /// Adds an interval of `span_ns` that ended at `end_ns` (wall time), in which the job did `groups`: to the column in
    /// which its middle lies, which is at least as wide.
    pub fn add(&mut self, end_ns: u64, span_ns: u64, groups: &[Group]) {
        self.add_since(end_ns, span_ns, groups, &[]);
    }

    /// The same, of the cumulative `groups` less those of before it, `older`: whichever names of mounts both have.
    pub fn add_since(&mut self, end_ns: u64, span_ns: u64, groups: &[Group], older: &[Group]) {
        let (mut counts, older) = (counts_of(groups), counts_of(older));
        for (count, older) in counts.iter_mut().zip(older) {
            *count = count.saturating_sub(older);
        }
        let span_ns = span_ns.min(LATEST_NS);
        while self.width_ns < span_ns {
            *self = self.widened();
        }
        self.put(end_ns.saturating_sub(span_ns / 2), &counts);
    }

    /// Adds another node's, or a later time's.
    pub fn merge(&mut self, other: &Self) {
        while self.width_ns < other.width_ns {
            *self = self.widened();
        }
        for (begin_ns, counts) in other.columns() {
            self.put(begin_ns, counts);
        }
    }

    /// The same in columns of twice the width.
    fn widened(&self) -> Self {
        let mut wide = Self { width_ns: self.width_ns * 2, ..Self::default() };
        self.columns().for_each(|(begin_ns, counts)| wide.put(begin_ns, counts));
        wide
    }

    fn put(&mut self, at_ns: u64, counts: &Counts) {
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        let at_ns = at_ns.min(LATEST_NS);
        let last_ns = self.columns().last().map_or(at_ns, |(begin_ns, _)| begin_ns.max(at_ns));
        let first_ns = if self.is_empty() { at_ns } else { self.begin.min(at_ns) };
        let columns = |width_ns: u64| last_ns / width_ns - first_ns / width_ns + 1;
        while columns(self.width_ns) > MOST_COLUMNS as u64 {
            *self = self.widened();
        }
        let width_ns = self.width_ns;
        let column_ns = at_ns - at_ns % width_ns;
        if self.is_empty() {
            self.begin = column_ns;
        }
        if let Some(earlier) = self.begin.checked_sub(column_ns) {
            let empty = std::iter::repeat_n([0; CLASSES], (earlier / width_ns) as usize);
            self.columns.splice(..0, empty);
            self.begin = column_ns;
        }
        let index = ((column_ns - self.begin) / width_ns) as usize;
        if index >= self.columns.len() {
            self.columns.resize(index + 1, [0; CLASSES]);
        }
        for (sum, more) in self.columns[index].iter_mut().zip(counts) {
            *sum = sum.saturating_add(*more);
        }
    }
}

/// What a document says.
#[derive(Deserialize)]
struct Told {
    begin: u64,
    width_ns: u64,
    columns: Vec<Counts>,
}

impl TryFrom<Told> for IoLatency {
    type Error = &'static str;

    fn try_from(told: Told) -> Result<Self, Self::Error> {
        let Told { begin, width_ns, columns } = told;
        let is_width = width_ns.is_multiple_of(FIRST_WIDTH_NS)
            && (width_ns / FIRST_WIDTH_NS).is_power_of_two();
        let is_one = is_width
            && begin.is_multiple_of(width_ns)
            && columns.len() <= MOST_COLUMNS
            && begin <= LATEST_NS;
        let latency = Self { begin, width_ns, columns };
        // No program wrote columns later than these.
        let is_one = is_one && width_ns <= LATEST_NS;
        Some(latency).filter(|_| is_one).ok_or("the columns of `io_latency` do not fit its times")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hist::Hist;

    const S: u64 = 1_000_000_000;

    fn group(fs: &str, durations: &[u64]) -> Group {
        let mut group = Group::unknown(&IO, [fs, "/d", "read"].map(str::to_owned).into());
        let mut hist = Hist::default();
        durations.iter().for_each(|ns| hist.record(*ns));
        group.set_hist(Io::latency_ns, hist);
        group
    }

    fn told(latency: &IoLatency) -> Vec<(u64, Vec<(usize, u64)>)> {
        let some = |counts: &Counts| -> Vec<_> {
            counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
        };
        latency.columns().map(|(begin_ns, counts)| (begin_ns / S, some(counts))).collect()
    }

    #[test]
    fn each_duration_is_in_its_class() {
        for class in 1..CLASSES {
            assert_eq!(class_of(least_ns(class)), class);
            assert_eq!(class_of(least_ns(class) - 1), class - 1);
        }
        assert_eq!((class_of(0), class_of(u64::MAX)), (0, CLASSES - 1));
        let mut latency = IoLatency::default();
        let both = [group("ext4", &[100, 5_000, 5_100, 3 * S]), group("pipefs", &[S])];
        latency.add(1_000 * S, S, &both);
        // 2 to the power of 30 is a second and a bit.
        assert_eq!(told(&latency), [(999, vec![(0, 1), (1, 2), (10, 1)])]);
    }

    #[test]
    fn columns_widen_as_the_job_grows_and_nothing_is_lost() {
        let mut latency = IoLatency::default();
        for second in 0..241 {
            latency.add((1_001 + second) * S, S, &[group("ext4", &[100])]);
        }
        assert_eq!(latency.width_ns, 2 * S);
        let told = told(&latency);
        assert_eq!((told.len(), told[0].clone()), (121, (1_000, vec![(0, 2)])));
        assert_eq!(told[120], (1_240, vec![(0, 1)]));
        // An interval is in one column, which is at least as wide.
        latency.add(1_300 * S, 60 * S, &[group("ext4", &[100, 100])]);
        assert_eq!(latency.width_ns, 64 * S);
        let sum: u64 = latency.columns().map(|(_, counts)| counts[0]).sum();
        assert_eq!(sum, 243);
    }

    #[test]
    fn merging_has_no_order() {
        let of = |from: u64, step: u64| {
            let mut one = IoLatency::default();
            (0..200).for_each(|at| one.add((from + at * step) * S, S, &[group("ext4", &[100])]));
            one
        };
        let all = [of(1_000, 1), of(1_517, 3), of(900, 2), IoLatency::default()];
        let merged = |order: [usize; 4]| {
            let mut whole = IoLatency::default();
            order.iter().for_each(|at| whole.merge(&all[*at]));
            whole
        };
        let whole = merged([0, 1, 2, 3]);
        for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]] {
            assert_eq!(merged(order), whole);
        }
        assert_eq!(whole.columns().map(|(_, counts)| counts[0]).sum::<u64>(), 600);
        let json = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<IoLatency>(&json).unwrap(), whole);
        for key in ["width_ns", "begin"] {
            let damaged = json.replacen(&format!("\"{key}\":"), &format!("\"{key}\":3,\"x\":"), 1);
            assert!(serde_json::from_str::<IoLatency>(&damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn a_clock_that_steps_makes_no_more_columns() {
        let mut latency = IoLatency::default();
        for end_ns in [u64::MAX, 5 * S, 1_000_000 * S] {
            latency.add(end_ns, S, &[group("ext4", &[100])]);
        }
        assert!(latency.columns.len() <= MOST_COLUMNS);
        assert_eq!(latency.columns().map(|(_, counts)| counts[0]).sum::<u64>(), 3);
    }
}
