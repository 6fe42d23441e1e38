//! The vocabulary of the field tables: what a measurement is, and what each of its fields means.
//!
//! A table stands right below the kernel-side struct it describes (or below the agent's reader of
//! it), and `measurement!` (handle.rs) writes it. Line protocol, JSON, reports and docs/METRICS.md read the
//! tables and name nothing themselves.

use crate::cells::CellHist;

/// How a field behaves over time: what an interval, a sum over cgroups and its output look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows; an interval is a subtraction, a merge an addition.
    Counter,
    /// A state; an interval shows the newest, a merge adds.
    Gauge,
    /// A high-water mark; an interval shows the newest, a merge the largest.
    Peak,
    /// A property of the measuring itself, alike everywhere; a merge keeps either.
    Constant,
    /// A log-linear histogram: `_count _sum _min _max _p50 _p90 _p99 _p999`.
    Histogram,
}

/// Unit of a field's value as it is held; the public unit, in which the name ends where it has one, is
/// [`Unit::per_public`] of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number of things.
    Count,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Bytes times seconds: memory over time.
    ByteSeconds,
    /// Thousandths of a core: 1500 is one and a half.
    Millicores,
    /// Millionths of the whole: 250,000 is the ratio 0.25. Finer than any source, so that the buckets'
    /// finest step (64) is no loss.
    PartsPerMillion,
    /// Thousandths of a watt.
    Milliwatts,
    /// Thousandths of a joule.
    Millijoules,
    /// Hertz.
    Hertz,
    /// Degrees Celsius, whole.
    Celsius,
}

impl Unit {
    /// How many of the held unit make one of the public: where it is more than one, the value is shown
    /// as a float.
    pub const fn per_public(self) -> u64 {
        match self {
            Self::Millicores | Self::Milliwatts | Self::Millijoules => 1_000,
            Self::PartsPerMillion => 1_000_000,
            Self::Count
            | Self::Nanoseconds
            | Self::Bytes
            | Self::ByteSeconds
            | Self::Hertz
            | Self::Celsius => 1,
        }
    }
}

/// Where the value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Byte offset in [`JobBank`](crate::tables::job::JobBank).
    Job(usize),
    /// Byte offset in [`NetCounts`](crate::tables::net::NetCounts), of which the bank has one a family.
    Net(usize),
    /// Byte offset in [`LatencyBank`](crate::tables::latency::LatencyBank), `--faults full` only.
    Latency(usize),
    /// Byte offset in the measurement's [cell](crate::cells).
    Cell(usize),
    /// A histogram in it.
    CellHist(CellHist),
    /// The number of values in the histogram of the same measurement that is in this place.
    CountOf(&'static Self),
    /// The sum of its values.
    SumOf(&'static Self),
    /// The agent reads or computes it.
    Agent,
}

/// One field of a measurement.
#[derive(Debug)]
pub struct Field {
    /// Public name: never renamed.
    pub name: &'static str,
    /// Behaviour over time.
    pub kind: Kind,
    /// Unit of the value.
    pub unit: Unit,
    /// Where it comes from.
    pub place: Place,
    /// One sentence for the reader of docs/METRICS.md: meaning and source.
    pub help: &'static str,
}

impl Field {
    /// Bytes the field takes in its kernel-side struct.
    pub const fn kernel_bytes(&self) -> usize {
        match self.kind {
            Kind::Histogram => size_of::<crate::loglinear::KernelHist>(),
            _ => size_of::<u64>(),
        }
    }
}

/// One measurement: a line of line protocol, an object of the JSON.
#[derive(Debug)]
pub struct Measurement {
    /// Public name, `job_sched`.
    pub name: &'static str,
    /// Key in the JSON, `sched`.
    pub key: &'static str,
    /// Tags of its own beside every job's; with any, the JSON holds a list.
    pub tags: &'static [&'static str],
    /// Its fields, in the order of their output.
    pub fields: &'static [Field],
    /// One sentence for docs/METRICS.md.
    pub help: &'static str,
}

/// Bytes of a kernel-side struct that `tables` describe; a const assertion next to each struct holds
/// this against its size, so that a forgotten row stops the build.
pub const fn described_bytes(tables: &[&Measurement], of: fn_place::Of) -> usize {
    let mut bytes = 0;
    let mut t = 0;
    while t < tables.len() {
        let mut f = 0;
        while f < tables[t].fields.len() {
            let field = &tables[t].fields[f];
            if fn_place::is(field.place, of) {
                bytes += field.kernel_bytes();
            }
            f += 1;
        }
        t += 1;
    }
    bytes
}

/// Which kernel-side struct a place lies in, as a const function can compare it.
pub mod fn_place {
    use super::Place;

    /// The kernel-side structs.
    #[derive(Clone, Copy)]
    pub enum Of {
        /// [`JobBank`](crate::tables::job::JobBank)
        Job,
        /// [`NetCounts`](crate::tables::net::NetCounts)
        Net,
        /// [`LatencyBank`](crate::tables::latency::LatencyBank)
        Latency,
        /// The measurement's [cell](crate::cells)
        Cell,
    }

    /// Whether `place` lies in `of`.
    pub const fn is(place: Place, of: Of) -> bool {
        matches!(
            (place, of),
            (Place::Job(_), Of::Job)
                | (Place::Net(_), Of::Net)
                | (Place::Latency(_), Of::Latency)
                | (Place::Cell(_) | Place::CellHist(_), Of::Cell)
        )
    }
}
