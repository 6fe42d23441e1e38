//! Histograms against the exact values they were made of.

use jobtrace::model::hist::{Hist, QUANTILES};
use proptest::{collection::vec, prelude::*};
use tracer_ebpf::loglinear::{BUCKETS, bucket_high, bucket_low, bucket_of};

/// Values of every magnitude, small and bound-hugging ones often.
fn value() -> impl Strategy<Value = u64> + Clone {
    let near_a_bound = (0..BUCKETS, 0..3_u64)
        .prop_map(|(index, offset)| (bucket_low(index) + offset).saturating_sub(1));
    prop_oneof![
        0..2000_u64,
        near_a_bound,
        (0..64_u32, any::<u64>()).prop_map(|(shift, bits)| bits >> shift),
    ]
}

/// As the kernel would have filled it.
fn hist(values: &[u64]) -> Hist {
    let sum = values.iter().fold(0_u64, |sum, value| sum.wrapping_add(*value));
    let max = values.iter().copied().max().unwrap_or(0);
    Hist::from_buckets(sum, max, values.iter().map(|value| (bucket_of(*value) as usize, 1)))
}

fn merged(a: &Hist, b: &Hist) -> Hist {
    let mut sum = a.clone();
    sum.merge(b);
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_interval_added_to_what_was_before_is_what_is_now(
        before in vec(value(), 0..50), during in vec(value(), 0..50),
    ) {
        let older = hist(&before);
        let newer = hist(&[before, during.clone()].concat());
        let interval = newer.since(&older);
        prop_assert_eq!(merged(&older, &interval), newer);
        let exact = hist(&during);
        prop_assert_eq!(interval.sum, exact.sum);
        prop_assert_eq!(interval.buckets().collect::<Vec<_>>(), exact.buckets().collect::<Vec<_>>());
        let bound = if during.is_empty() { 0 } else { bucket_high(bucket_of(exact.max) as usize) };
        prop_assert!((exact.max..=bound).contains(&interval.max));
    }

    #[test]
    fn merging_is_as_if_the_values_had_been_counted_together(
        a in vec(value(), 0..30), b in vec(value(), 0..30), c in vec(value(), 0..30),
    ) {
        let [ha, hb, hc] = [hist(&a), hist(&b), hist(&c)];
        let together = hist(&[a, b, c].concat());
        prop_assert_eq!(merged(&merged(&ha, &hb), &hc), together.clone());
        prop_assert_eq!(merged(&hc, &merged(&hb, &ha)), together.clone());
        prop_assert_eq!(merged(&together, &Hist::default()), together);
    }

    #[test]
    fn quantiles_lie_in_the_bucket_of_the_exact_value(mut values in vec(value(), 1..300)) {
        let hist = hist(&values);
        values.sort_unstable();
        let max = values[values.len() - 1];
        let quantiles = hist.quantiles().expect("there are values");
        for ((name, q), value) in QUANTILES.iter().zip(quantiles) {
            let rank = (q * values.len() as f64).ceil().max(1.0) as usize;
            let exact = values[rank - 1];
            let bucket = bucket_of(exact) as usize;
            let within = exact..=bucket_high(bucket).min(max);
            prop_assert!(within.contains(&value), "{name}: {value} not in {within:?}");
        }
        let hdr = hist.to_hdr();
        let of_hdr = QUANTILES.map(|(_, q)| hdr.value_at_quantile(q).min(max));
        prop_assert_eq!(quantiles, of_hdr, "as the library has them");
        let min = hist.min().expect("there are values");
        prop_assert_eq!(bucket_of(min), bucket_of(values[0]));
        prop_assert!(min <= values[0]);
        prop_assert_eq!(hist.count(), values.len() as u64);
    }

    #[test]
    fn json_brings_it_back(values in vec(value(), 0..50)) {
        let hist = hist(&values);
        let text = serde_json::to_string(&hist).unwrap();
        prop_assert_eq!(serde_json::from_str::<Hist>(&text).unwrap(), hist);
    }

    /// A recording is a file that anybody may have written.
    #[test]
    fn nonsense_in_a_recording_is_refused_or_borne(
        sum in any::<u64>(), max in any::<u64>(),
        buckets in vec((0..130_usize, (0..64_u32, any::<u64>()).prop_map(|(s, n)| n >> s)), 0..6),
    ) {
        let text = serde_json::json!({"sum": sum, "max": max, "buckets": buckets}).to_string();
        let Ok(hist) = serde_json::from_str::<Hist>(&text) else {
            let total: u128 = buckets.iter().map(|(_, count)| u128::from(*count)).sum();
            prop_assert!(total > 1 << 56 || buckets.iter().any(|(index, _)| *index >= BUCKETS));
            return Ok(());
        };
        let twice = merged(&hist, &hist);
        for hist in [&hist, &twice, &hist.since(&twice), &twice.since(&hist)] {
            if let Some(quantiles) = hist.quantiles() {
                prop_assert!(quantiles.iter().all(|value| *value <= hist.max));
            }
            let _ = (hist.count(), hist.mean(), hist.min());
        }
    }
}

#[test]
fn every_bound_is_a_bound_of_a_cell_of_hdr_histogram() {
    let hdr = Hist::from_buckets(0, u64::MAX, []).to_hdr();
    for index in 0..BUCKETS - 1 {
        let (low, high) = (bucket_low(index), bucket_high(index));
        assert_eq!(hdr.lowest_equivalent(low), low, "low bound of {index}");
        assert_eq!(hdr.highest_equivalent(high), high, "high bound of {index}");
    }
}

#[test]
fn hdr_histogram_holds_the_same_counts() {
    let hist = Hist::from_buckets(
        0,
        bucket_low(BUCKETS - 1) + 5,
        (0..BUCKETS).map(|index| (index, index as u64 + 1)),
    );
    let hdr = hist.to_hdr();
    assert_eq!(hdr.len(), hist.count());
    for (index, count) in hist.buckets() {
        assert_eq!(
            hdr.count_between(bucket_low(index), hist.bound(index)),
            count,
            "bucket {index}"
        );
    }
}

#[test]
fn an_empty_histogram_has_no_quantile() {
    let empty = Hist::default();
    assert_eq!((empty.quantiles(), empty.min(), empty.mean()), (None, None, None));
    let same = Hist::from_buckets(9, 9, [(0, 1)]);
    let nothing = same.since(&same);
    assert_eq!((nothing.quantiles(), nothing.max, nothing.sum), (None, 0, 0));
}
