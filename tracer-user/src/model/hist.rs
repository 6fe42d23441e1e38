//! A histogram as the agent holds it: the kernel's log-linear buckets, widened to 64 bits.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tracer_ebpf::loglinear::{BUCKETS, bucket_high, bucket_low, bucket_of};

use super::counts::Counts;

/// The percentiles of every histogram field: suffix of the name and quantile.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// More values than a node counts in decades: what is read from outside and has more is damaged, and a
/// few of them added up fit into their type.
pub const MAX_COUNT: u64 = 1 << 56;

/// Counts per bucket with the exact sum and largest value.
///
/// Cumulative ones only grow; [`Hist::since`] makes an interval, [`Hist::merge`] adds CPUs, cgroups,
/// devices or intervals. Copies share their [`Counted`] until one of them changes, so that a histogram takes no more
/// room in a group than a number.
#[derive(Clone, Debug, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct Hist {
    /// None where all is zero.
    counted: Option<Arc<Counted>>,
}

/// What a histogram holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counted {
    /// Sum of all values, exact.
    pub sum: u64,
    /// Largest value; exact in totals, in an interval the bucket's bound where no new maximum came.
    pub max: u64,
    counts: Counts,
}

impl Deref for Hist {
    type Target = Counted;

    fn deref(&self) -> &Counted {
        static NOTHING: Counted = Counted { sum: 0, max: 0, counts: Counts::NONE };
        self.counted.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for Hist {
    fn deref_mut(&mut self) -> &mut Counted {
        Arc::make_mut(self.counted.get_or_insert_default())
    }
}

impl PartialEq for Hist {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl Hist {
    /// A histogram of the given buckets (at most [`BUCKETS`], index and count).
    pub fn from_buckets(
        sum: u64,
        max: u64,
        buckets: impl IntoIterator<Item = (usize, u64)>,
    ) -> Self {
        let mut counted = Counted { sum, max, counts: Counts::default() };
        for (index, count) in buckets {
            counted.counts.add(index.min(BUCKETS - 1), count);
        }
        Self::of_counted(counted)
    }

    fn of_counted(counted: Counted) -> Self {
        Self { counted: (counted != Counted::default()).then(|| Arc::new(counted)) }
    }

    /// Whether it is a copy of `other`, neither changed since.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.counted, &other.counted) {
            (Some(counted), Some(other)) => Arc::ptr_eq(counted, other),
            (counted, other) => counted.is_none() && other.is_none(),
        }
    }

    /// Adds `count` values to bucket `index`; an index past the last counts in the last.
    pub fn add(&mut self, index: usize, count: u64) {
        if count > 0 {
            self.counts.add(index.min(BUCKETS - 1), count);
        }
    }

    /// Brings it up to what the kernel has now: sum, largest value, and of each bucket the low 32 bits, by which less
    /// than 2^32 came to it since.
    pub fn advance(&mut self, sum: u64, max: u64, low: &[u32; BUCKETS]) {
        if (self.sum, self.max) == (sum, max) && self.counts.is_at(low) {
            return;
        }
        let counted = &mut **self;
        (counted.sum, counted.max) = (sum, max);
        counted.counts.advance(low);
    }

    /// Number of values in bucket `index`.
    pub fn bucket(&self, index: usize) -> u64 {
        if index < BUCKETS { self.counts.of(index) } else { 0 }
    }

    /// Values, each with how often it came.
    #[cfg(test)]
    pub fn of(values: &[(u64, u64)]) -> Self {
        let mut hist = Self::default();
        for (value, count) in values {
            hist.record_times(*value, *count);
        }
        hist
    }

    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        self.record_times(value, 1);
    }

    /// Adds one value so many times; no times, none.
    pub fn record_times(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.add(bucket_of(value) as usize, times);
        let Counted { sum, max, .. } = &mut **self;
        *sum = sum.wrapping_add(value.wrapping_mul(times));
        *max = value.max(*max);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.total()
    }

    /// Mean value; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// Non-empty buckets: index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter()
    }

    /// Upper bound of bucket `index` as shown outside: the largest value it can hold, never past `max`.
    pub fn bound(&self, index: usize) -> u64 {
        bucket_high(index).min(self.max)
    }

    /// Lower bound of the lowest non-empty bucket; `None` without values.
    pub fn min(&self) -> Option<u64> {
        self.buckets().next().map(|(index, _)| bucket_low(index).min(self.max))
    }

    /// What came between `older` and this one, both cumulative from the same source.
    pub fn since(&self, older: &Self) -> Self {
        if self.is_same(older) {
            return Self::default();
        }
        let counts = self.counts.since(&older.counts);
        let max = match counts.iter().last() {
            None => 0,
            Some(_) if self.max > older.max => self.max,
            Some((index, _)) => bucket_high(index).min(self.max),
        };
        Self::of_counted(Counted { sum: self.sum.wrapping_sub(older.sum), max, counts })
    }

    /// Adds `other`'s values.
    pub fn merge(&mut self, other: &Self) {
        let Some(more) = &other.counted else { return };
        let Some(counted) = &mut self.counted else {
            self.counted = Some(more.clone());
            return;
        };
        let counted = Arc::make_mut(counted);
        counted.sum = counted.sum.wrapping_add(more.sum);
        counted.max = counted.max.max(more.max);
        more.counts.iter().for_each(|(index, count)| counted.counts.add(index, count));
    }

    /// The values as an HdrHistogram of one significant digit, whose cells our bounds map into
    /// exactly; each value stands at its bucket's upper bound.
    pub fn to_hdr(&self) -> Histogram<u64> {
        let mut hdr = Histogram::new_with_max(self.max.max(2), 1)
            .expect("bounds 1..=max and one digit are always valid");
        for (index, count) in self.buckets() {
            hdr.saturating_record_n(self.bound(index), count);
        }
        hdr
    }

    /// Values at the [`QUANTILES`], in their order; `None` without values. Never above `max`. The same as
    /// [`Self::to_hdr`] has them, whose thousands of cells take longer than all else of a line.
    pub fn quantiles(&self) -> Option<[u64; 4]> {
        let count = self.count();
        let mut buckets = self.buckets();
        let (mut last, mut up_to) = buckets.next()?;
        // Greater and greater ones: one walk.
        Some(QUANTILES.map(|(_, q)| {
            let rank = ((q * count as f64).ceil() as u64).max(1);
            while up_to < rank {
                let Some((index, count)) = buckets.next() else { return self.max };
                (last, up_to) = (index, up_to + count);
            }
            self.bound(last)
        }))
    }
}

/// The form in JSON: `{"sum":…,"max":…,"buckets":[[index,count],…]}`, non-zero buckets only.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sparse {
    sum: u64,
    max: u64,
    buckets: Vec<(usize, u64)>,
}

impl TryFrom<Sparse> for Hist {
    type Error = String;

    /// Refuses what no kernel counted, so that no later sum of it overflows.
    fn try_from(sparse: Sparse) -> Result<Self, String> {
        let total: u128 = sparse.buckets.iter().map(|(_, count)| u128::from(*count)).sum();
        if total > u128::from(MAX_COUNT) {
            return Err(format!("a histogram of {total} values is damaged"));
        }
        if let Some((index, _)) = sparse.buckets.iter().find(|(index, _)| *index >= BUCKETS) {
            return Err(format!("a histogram has no bucket {index}"));
        }
        Ok(Self::from_buckets(sparse.sum, sparse.max, sparse.buckets))
    }
}

impl From<Hist> for Sparse {
    fn from(hist: Hist) -> Self {
        Self { sum: hist.sum, max: hist.max, buckets: hist.buckets().collect() }
    }
}
