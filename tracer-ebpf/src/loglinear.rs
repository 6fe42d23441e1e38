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

/// Values per bucket, as the kernel counts them: they wrap at 2^32.
pub type Buckets = [u32; BUCKETS];

/// What a histogram has beside its buckets.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Ends {
    /// Sum of all values, exact.
    pub sum: u64,
    /// Largest value seen, exact.
    pub max: u64,
}

/// A histogram as the kernel fills it: one per slot and CPU. Shared ones
/// ([`BlockCell`](crate::tables::block::BlockCell)) keep [`Ends`] and [`Buckets`] apart.
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

const _: () = {
    assert!(core::mem::offset_of!(KernelHist, sum) == core::mem::offset_of!(Ends, sum));
    assert!(core::mem::offset_of!(KernelHist, max) == core::mem::offset_of!(Ends, max));
};

/// Buckets of the first 256 units, the seed of all others.
pub static FIRST: [u8; 256] = {
    let mut first = [0; 256];
    let mut units = 0;
    while units < 256 {
        first[units] = bucket_by_logarithm(units as u64) as u8;
        units += 1;
    }
    first
};

/// Bucket of so many units: what [`bucket_of`] finds by table.
const fn bucket_by_logarithm(units: u64) -> u32 {
    let exponent = 63 - (units | (1 << SUB_BUCKET_BITS)).leading_zeros();
    let shift = exponent - SUB_BUCKET_BITS;
    (shift << SUB_BUCKET_BITS) + (units >> shift) as u32
}

/// Bucket of `value`, always below [`BUCKETS`]; values past the last bound share the last bucket.
///
/// By table: the kernel's machine has no instruction for a logarithm, and `leading_zeros` comes to 25.
/// Six bits less are six powers of two less, 24 buckets; what is left always fills the two bits that
/// tell sub-buckets apart. `look_up` is `FIRST[_]`, however the caller's machine wants it bounded.
#[inline(always)]
pub fn bucket_by(value: u64, look_up: impl Fn(u64) -> u32) -> u32 {
    const POWERS: u32 = 6;
    const BUCKETS_LESS: u32 = POWERS << SUB_BUCKET_BITS;
    let units = value >> UNIT_BITS;
    if units < 1 << 8 {
        look_up(units)
    } else if units < 1 << 14 {
        look_up(units >> POWERS) + BUCKETS_LESS
    } else if units < 1 << 20 {
        look_up(units >> (2 * POWERS)) + 2 * BUCKETS_LESS
    } else if units < 1 << 26 {
        look_up(units >> (3 * POWERS)) + 3 * BUCKETS_LESS
    } else if units < 1 << 32 {
        look_up(units >> (4 * POWERS)) + 4 * BUCKETS_LESS
    } else {
        let bucket = BUCKETS as u32 - 1;
        if units < 1 << 33 { look_up(units >> (5 * POWERS)) + 5 * BUCKETS_LESS } else { bucket }
    }
}

/// [`bucket_by`] with the table itself.
pub fn bucket_of(value: u64) -> u32 {
    bucket_by(value, |units| FIRST[units as usize & 0xff].into())
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
    fn the_table_finds_what_the_logarithm_does() {
        for units in
            (0..100_000).chain((0..33).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]))
        {
            let bucket = bucket_by_logarithm(units).min(BUCKETS as u32 - 1);
            assert_eq!(bucket_of(units << UNIT_BITS), bucket, "{units} units");
        }
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
