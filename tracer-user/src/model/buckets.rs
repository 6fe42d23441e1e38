//! A histogram's buckets as databases want them: how wide, under which tag, counted how.
//!
//! Pure, and about one histogram of one interval: no style needs what was before it.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tracer_ebpf::{
    loglinear::{BUCKETS, bucket_high},
    table::Unit,
};

use super::hist::Hist;

/// How wide the buckets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// From one power of two to the next; the last begins at 2^38 and has no bound.
    Log2,
    /// As the kernel counts them: four to each power of two.
    Fine,
}

/// How buckets are told apart and counted.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    ValueEnum,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum BucketStyle {
    /// InfluxDB with Grafana: each bucket's own count, its upper bound a plain integer.
    #[default]
    Le,
    /// Prometheus: counts up to each bound, `+Inf` the last.
    Prom,
    /// VictoriaMetrics: each bucket's own count, `lower...upper`.
    Vmrange,
}

impl BucketStyle {
    /// The tag that tells buckets apart.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Le | Self::Prom => "le",
            Self::Vmrange => "vmrange",
        }
    }

    /// The field with the count. `bucket` makes the metric `job_hist_bucket` where measurement and field
    /// are joined; a count of another meaning has another name, so that no database mixes the two.
    pub fn field(self) -> &'static str {
        match self {
            Self::Le => "n",
            Self::Prom | Self::Vmrange => "bucket",
        }
    }

    /// What the tag holds, for docs/METRICS.md.
    pub fn tag_help(self) -> String {
        match self {
            Self::Le => format!(
                "largest value of the bucket, as a plain integer; {} for the last bucket, which has no upper bound",
                i64::MAX
            ),
            Self::Prom => "the same; `+Inf` for the last bucket".into(),
            Self::Vmrange => "`lower...upper`, excluding the lower bound".into(),
        }
    }

    /// What the field counts, for docs/METRICS.md.
    pub fn field_help(self) -> &'static str {
        match self {
            Self::Le => {
                "This interval's values in this bucket alone: not cumulative over buckets or time. \
                 Empty buckets write no line."
            }
            Self::Prom => {
                "This interval's values up to this bound: cumulative over buckets, not over time. \
                 Below the lowest non-empty bucket there is a single zero."
            }
            Self::Vmrange => {
                "This interval's values in this bucket alone. Empty buckets write no line."
            }
        }
    }
}

/// Upper bound of bucket `index` as the tag `le` and nothing else shows it, in the public unit of `unit`:
/// the same for ever, so that a bucket is one series whatever the largest value was. The last bucket has
/// none and shows `i64::MAX`, which every consumer can hold.
pub fn le(unit: Unit, index: usize) -> String {
    match unit.per_public() {
        divisor if divisor > 1 && index + 1 < BUCKETS => {
            (bucket_high(index) as f64 / divisor as f64).to_string()
        }
        _ => bucket_high(index).min(i64::MAX as u64).to_string(),
    }
}

/// The values of the tag and the field for `hist`, an interval of values in `unit`, from the lowest bucket up; none for an
/// empty one.
///
/// - `Le`, `Vmrange`: the buckets that are not empty. Any sum of them is exact.
/// - `Prom`: all buckets from the one below the lowest that is not empty. None above it may be left out:
///   a sum over time adds each bound apart, and a bound missing from one interval would fall behind the
///   bounds below it. Those further down would be zero.
pub fn rows(hist: &Hist, unit: Unit, width: Width, style: BucketStyle) -> Vec<(String, u64)> {
    // Count and index of the highest bucket for each bucket of this width.
    let mut counts = [0; BUCKETS];
    hist.buckets().for_each(|(index, count)| counts[width.highest(index)] += count);
    let Some(first) = counts.iter().position(|count| *count > 0) else { return Vec::new() };
    let below = |index: usize| (0..index).rev().find(|below| width.highest(*below) == *below);
    let from = if style == BucketStyle::Prom { below(first).unwrap_or(first) } else { first };
    let mut total = 0;
    let mut rows = Vec::new();
    for index in (from..BUCKETS).filter(|index| width.highest(*index) == *index) {
        let count = counts[index];
        total += count;
        let is_last = index == BUCKETS - 1;
        match style {
            BucketStyle::Le if count > 0 => rows.push((le(unit, index), count)),
            BucketStyle::Prom if is_last => rows.push(("+Inf".to_owned(), total)),
            BucketStyle::Prom => rows.push((le(unit, index), total)),
            BucketStyle::Vmrange if count > 0 => {
                // The upper bound belongs to a range and the lower one does not.
                let lower = below(index).map_or_else(|| "0".to_owned(), |index| le(unit, index));
                let upper = if is_last { "+Inf".to_owned() } else { le(unit, index) };
                rows.push((format!("{lower}...{upper}"), count));
            }
            BucketStyle::Le | BucketStyle::Vmrange => {}
        }
    }
    rows
}

/// The highest of the kernel's buckets that end at the bound which `tag` shows: the other way of [`rows`].
/// `None` where it shows none of ours.
pub fn index_of(style: BucketStyle, unit: Unit, tag: &str) -> Option<usize> {
    let bound = match style {
        BucketStyle::Le | BucketStyle::Prom => tag,
        BucketStyle::Vmrange => tag.split_once("...")?.1,
    };
    match (style, bound) {
        (BucketStyle::Prom | BucketStyle::Vmrange, "+Inf") => Some(BUCKETS - 1),
        _ => (0..BUCKETS).find(|index| le(unit, *index) == bound),
    }
}

impl Width {
    /// The highest of the kernel's buckets that share a bucket of this width with `index`.
    fn highest(self, index: usize) -> usize {
        match self {
            Self::Fine => index,
            // The two lowest are powers of two apart already; four to each power from the fifth on.
            Self::Log2 if index < 2 => index,
            Self::Log2 => index | 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Width, style: BucketStyle, buckets: &[(usize, u64)]) -> Vec<(String, u64)> {
        let hist = Hist::from_buckets(0, u64::MAX, buckets.iter().copied());
        rows(&hist, Unit::Nanoseconds, width, style)
    }

    fn owned<const N: usize>(rows: [(&str, u64); N]) -> Vec<(String, u64)> {
        rows.map(|(tag, count)| (tag.to_owned(), count)).into()
    }

    #[test]
    fn log2_bounds_are_powers_of_two() {
        let all: Vec<_> = (0..BUCKETS).map(|index| (index, 1)).collect();
        let rows = shown(Width::Log2, BucketStyle::Le, &all);
        assert_eq!(rows.len(), 34);
        for (power, (bound, _)) in (6..).zip(&rows[..33]) {
            assert_eq!(*bound, ((1_u64 << power) - 1).to_string());
        }
        assert_eq!(rows.last(), Some(&(i64::MAX.to_string(), 4)));
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), BUCKETS as u64);
    }

    #[test]
    fn le_and_vmrange_show_what_is_not_empty() {
        let buckets = [(0, 2), (4, 1), (6, 5), (9, 1), (127, 3)];
        let last = i64::MAX.to_string();
        let (fine, log2) = (Width::Fine, Width::Log2);
        let expected = [("63", 2), ("319", 1), ("447", 5), ("767", 1), (last.as_str(), 3)];
        assert_eq!(shown(fine, BucketStyle::Le, &buckets), owned(expected));
        let expected = [("63", 2), ("511", 6), ("1023", 1), (last.as_str(), 3)];
        assert_eq!(shown(log2, BucketStyle::Le, &buckets), owned(expected));
        let expected =
            [("0...63", 2), ("255...511", 6), ("511...1023", 1), ("274877906943...+Inf", 3)];
        assert_eq!(shown(log2, BucketStyle::Vmrange, &buckets), owned(expected));
        assert_eq!(shown(fine, BucketStyle::Vmrange, &[(6, 5)]), owned([("383...447", 5)]));
    }

    #[test]
    fn prom_counts_up_from_a_zero_below_the_lowest_to_infinity() {
        let rows = shown(Width::Log2, BucketStyle::Prom, &[(5, 2), (9, 1)]);
        let expected = owned([("255", 0), ("511", 2), ("1023", 3), ("2047", 3)]);
        assert_eq!(rows[..4], expected);
        assert_eq!(rows.last(), Some(&("+Inf".to_owned(), 3)));
        // 255, then 511 to 2^38 - 1, then infinity.
        assert_eq!(rows.len(), 1 + 30 + 1);
        assert_eq!(shown(Width::Fine, BucketStyle::Prom, &[(0, 1)]).len(), BUCKETS);
        assert_eq!(shown(Width::Fine, BucketStyle::Prom, &[(127, 1)]).len(), 2);
    }

    #[test]
    fn an_empty_histogram_has_no_rows() {
        for style in BucketStyle::value_variants() {
            assert!(rows(&Hist::default(), Unit::Bytes, Width::Fine, *style).is_empty());
        }
    }
}
