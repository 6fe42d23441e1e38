//! Log-linear buckets: four to each power of two, the one shape of every histogram.
//!
//! Bounds are multiples of a power of two that HdrHistogram (16 sub-buckets per power of two at one
//! significant digit) resolves exactly, so a bucket never straddles two of its cells.

/// Buckets of each histogram.
pub const BUCKETS: usize = 128;
/// log2 of the sub-buckets in each power of two.
pub const SUB_BUCKET_BITS: u32 = 2;
/// Values are counted in units of `1 << UNIT_BITS` (64 ns or 64 bytes): what is finer is noise on
/// every path we time, and 128 buckets then reach 2^39 (9 minutes in nanoseconds).
pub const UNIT_BITS: u32 = 6;

/// A histogram as the kernel fills it: one per slot and CPU, or shared and updated atomically.
///
/// `buckets` wrap at 2^32 and are read by wrapping subtraction; `sum` and `max` are exact.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelHist {
    /// Sum of all values, exact.
    pub sum: u64,
    /// Largest value seen, exact.
    pub max: u64,
    /// Values per bucket.
    pub buckets: [u32; BUCKETS],
}

/// Bucket of `value`, always below [`BUCKETS`]; values past the last bound share the last bucket.
#[inline(always)]
pub const fn bucket_of(value: u64) -> u32 {
    let units = value >> UNIT_BITS;
    // Setting the bit keeps the logarithm at SUB_BUCKET_BITS or more without a branch.
    let exponent = 63 - (units | (1 << SUB_BUCKET_BITS)).leading_zeros();
    let shift = exponent - SUB_BUCKET_BITS;
    let index = (shift << SUB_BUCKET_BITS) + (units >> shift) as u32;
    if index < BUCKETS as u32 { index } else { BUCKETS as u32 - 1 }
}

/// Smallest value that falls into bucket `index`.
pub const fn bucket_low(index: usize) -> u64 {
    let index = index as u64;
    let sub = 1 << SUB_BUCKET_BITS;
    if index < 2 * sub {
        index << UNIT_BITS
    } else {
        let shift = (index >> SUB_BUCKET_BITS) - 1;
        ((index & (sub - 1)) + sub) << shift << UNIT_BITS
    }
}

/// Largest value that falls into bucket `index`; the last bucket has no bound (`u64::MAX`).
pub const fn bucket_high(index: usize) -> u64 {
    if index + 1 >= BUCKETS { u64::MAX } else { bucket_low(index + 1) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_falls_into_its_own_bucket() {
        for index in 0..BUCKETS {
            assert_eq!(bucket_of(bucket_low(index)), index as u32, "low bound of {index}");
            assert_eq!(bucket_of(bucket_high(index)), index as u32, "high bound of {index}");
        }
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), BUCKETS as u32 - 1);
    }

    #[test]
    fn buckets_are_at_most_a_quarter_wide() {
        for index in 8..BUCKETS - 1 {
            let (low, high) = (bucket_low(index), bucket_high(index));
            assert!((high - low) * 4 < low + 4 * (1 << UNIT_BITS), "bucket {index}: {low}..{high}");
        }
    }

    #[test]
    fn the_last_bound_is_past_seven_minutes_in_nanoseconds() {
        assert!(bucket_low(BUCKETS - 1) > 420_000_000_000);
    }
}
