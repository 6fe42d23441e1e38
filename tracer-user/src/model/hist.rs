//! A histogram as the agent holds it: the kernel's log-linear buckets, widened to 64 bits.

use std::sync::Arc;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tracer_ebpf::loglinear::{BUCKETS, bucket_high, bucket_low, bucket_of};

/// The percentiles of every histogram field: suffix of the name and quantile.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// More values than a node counts in decades: what is read from outside and has more is damaged, and a
/// few of them added up fit into their type.
pub const MAX_COUNT: u64 = 1 << 56;

/// Counts per bucket with the exact sum and largest value.
///
/// Cumulative ones only grow; [`Hist::since`] makes an interval, [`Hist::merge`] adds CPUs, cgroups,
/// devices or intervals. Copies share their buckets until one of them changes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Sparse", into = "Sparse")]
pub struct Hist {
    /// Sum of all values, exact.
    pub sum: u64,
    /// Largest value; exact in totals, in an interval the bucket's bound where no new maximum came.
    pub max: u64,
    /// Values per bucket; none where all are zero.
    buckets: Option<Arc<[u64; BUCKETS]>>,
}

impl Hist {
    /// A histogram of the given buckets (at most [`BUCKETS`], index and count).
    pub fn from_buckets(
        sum: u64,
        max: u64,
        buckets: impl IntoIterator<Item = (usize, u64)>,
    ) -> Self {
        let mut hist = Self { sum, max, buckets: None };
        for (index, count) in buckets {
            hist.add(index, count);
        }
        hist
    }

    /// Adds `count` values to bucket `index`; an index past the last counts in the last.
    pub fn add(&mut self, index: usize, count: u64) {
        if count == 0 {
            return;
        }
        self.counts_mut()[index.min(BUCKETS - 1)] += count;
    }

    /// Adds to each bucket what it lacks to `low`, its low 32 bits as the kernel has them now: less than
    /// 2^32 came to one bucket since.
    pub fn advance(&mut self, low: &[u32; BUCKETS]) {
        if self.counts().iter().zip(low).all(|(count, low)| *count as u32 == *low) {
            return;
        }
        for (count, low) in self.counts_mut().iter_mut().zip(low) {
            *count += u64::from(low.wrapping_sub(*count as u32));
        }
    }

    fn counts(&self) -> &[u64; BUCKETS] {
        self.buckets.as_deref().unwrap_or(&[0; BUCKETS])
    }

    fn counts_mut(&mut self) -> &mut [u64; BUCKETS] {
        Arc::make_mut(self.buckets.get_or_insert_with(|| Arc::new([0; BUCKETS])))
    }

    /// Number of values in bucket `index`.
    pub fn bucket(&self, index: usize) -> u64 {
        self.counts().get(index).copied().unwrap_or(0)
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
        self.sum = self.sum.wrapping_add(value.wrapping_mul(times));
        self.max = self.max.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts().iter().sum()
    }

    /// Mean value; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// Non-empty buckets: index and count.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts().iter().copied().enumerate().filter(|&(_, count)| count > 0)
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
        let mut interval = Self { sum: self.sum.wrapping_sub(older.sum), ..Self::default() };
        if self.buckets == older.buckets {
            return interval;
        }
        for (index, (count, before)) in self.counts().iter().zip(older.counts()).enumerate() {
            interval.add(index, count.saturating_sub(*before));
        }
        let highest = interval.buckets().last().map(|(index, _)| index);
        interval.max = match highest {
            None => 0,
            Some(_) if self.max > older.max => self.max,
            Some(index) => bucket_high(index).min(self.max),
        };
        interval
    }

    /// Adds `other`'s values.
    pub fn merge(&mut self, other: &Self) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
        match (&mut self.buckets, &other.buckets) {
            (_, None) => {}
            (none @ None, some) => none.clone_from(some),
            (Some(_), Some(more)) => {
                for (count, more) in self.counts_mut().iter_mut().zip(more.iter()) {
                    *count += more;
                }
            }
        }
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
        self.buckets.as_ref()?;
        let count = self.count() as f64;
        Some(QUANTILES.map(|(_, q)| {
            let (mut up_to, rank) = (0, ((q * count).ceil() as u64).max(1));
            let mut buckets = self.buckets().skip_while(|(_, count)| {
                up_to += count;
                up_to < rank
            });
            buckets.next().map_or(self.max, |(index, _)| self.bound(index))
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
