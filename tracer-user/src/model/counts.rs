//! Counts by bucket. Most histograms of most jobs have values in a dozen of their buckets, and an agent holds several
//! histograms of each job: so only counts that are not zero take memory.

use tracer_ebpf::loglinear::BUCKETS;

/// How many values each bucket has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// A bit for each bucket: whether it has any.
    used: u128,
    /// The counts of those, in the buckets' order; none is zero.
    counts: Vec<u64>,
}

const _: () = assert!(BUCKETS == u128::BITS as usize, "a bit for each bucket");

impl Counts {
    /// No values.
    pub const NONE: Self = Self { used: 0, counts: Vec::new() };

    /// Adds `count` values to bucket `index`, below [`BUCKETS`].
    pub fn add(&mut self, index: usize, count: u64) {
        if count == 0 {
            return;
        }
        let place = self.place(index);
        if self.has(index) {
            self.counts[place] += count;
        } else {
            self.begin(index, place, count);
        }
    }

    /// Bucket `index`, empty so far, gets its first values, at `place`.
    fn begin(&mut self, index: usize, place: usize, count: u64) {
        self.used |= 1 << index;
        // Buckets are few and new ones rare: no room is kept for more.
        self.counts.reserve_exact(1);
        self.counts.insert(place, count);
    }

    /// Number of values in bucket `index`, below [`BUCKETS`].
    pub fn of(&self, index: usize) -> u64 {
        if self.has(index) { self.counts[self.place(index)] } else { 0 }
    }

    /// Whether `low` are the low 32 bits of all buckets.
    pub fn is_at(&self, low: &[u32; BUCKETS]) -> bool {
        // What is not among those in use may not have begun.
        not_zero(low) & !self.used == 0
            && self.iter().all(|(index, count)| count as u32 == low[index])
    }

    /// Adds to each bucket what it lacks to `low`, its low 32 bits.
    pub fn advance(&mut self, low: &[u32; BUCKETS]) {
        let mut begun = not_zero(low) & !self.used;
        for (index, count) in indices(self.used).zip(&mut self.counts) {
            *count += u64::from(low[index].wrapping_sub(*count as u32));
        }
        while begun != 0 {
            let index = begun.trailing_zeros() as usize;
            self.begin(index, self.place(index), low[index].into());
            begun &= begun - 1;
        }
    }

    /// Number of values in all buckets.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Buckets with values: index and count.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        indices(self.used).zip(self.counts.iter().copied())
    }

    /// What each bucket has more than in `older`.
    pub fn since(&self, older: &Self) -> Self {
        let mut older = older.iter().peekable();
        let mut since = Self { used: 0, counts: Vec::with_capacity(self.counts.len()) };
        for (index, count) in self.iter() {
            while older.next_if(|(at, _)| *at < index).is_some() {}
            let before = older.next_if(|(at, _)| *at == index).map_or(0, |(_, before)| before);
            if count > before {
                since.used |= 1 << index;
                since.counts.push(count - before);
            }
        }
        since
    }

    fn has(&self, index: usize) -> bool {
        self.used & 1 << index != 0
    }

    /// Where the count of bucket `index` is, or would be.
    fn place(&self, index: usize) -> usize {
        (self.used & ((1 << index) - 1)).count_ones() as usize
    }
}

/// The bits that are set, from the lowest up.
fn indices(mut left: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(index)
    })
}

/// A bit for each bucket: whether `low` has anything there. Sixteen at a time, without a branch: as fast as memory is read.
fn not_zero(low: &[u32; BUCKETS]) -> u128 {
    let (chunks, _) = low.as_chunks::<16>();
    let bits = chunks.iter().map(|chunk| {
        chunk.iter().enumerate().fold(0_u16, |bits, (at, low)| bits | u16::from(*low != 0) << at)
    });
    bits.enumerate().fold(0, |all, (at, bits)| all | u128::from(bits) << (16 * at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_an_array() {
        let mut counts = Counts::default();
        let mut array = [0; BUCKETS];
        for step in 0..1000_usize {
            let (index, count) = (step * 37 % BUCKETS / (1 + step % 3), (step % 5) as u64);
            counts.add(index, count);
            array[index] += count;
            if step.is_multiple_of(50) {
                let known = array.iter().copied().enumerate().filter(|(_, count)| *count > 0);
                assert!(counts.iter().eq(known), "after {step}");
            }
        }
        assert!((0..BUCKETS).all(|index| counts.of(index) == array[index]));
        assert_eq!(counts.total(), array.iter().sum::<u64>());
        assert!(array[0] > 0 && array[BUCKETS - 1] > 0, "both ends");
    }

    #[test]
    fn counts_follow_their_low_halves() {
        let mut counts = Counts::default();
        let mut low = [0_u32; BUCKETS];
        assert!(counts.is_at(&low));
        for (index, more) in [(5, 1), (0, 2), (127, 3), (5, u32::MAX), (6, 9), (5, 1)] {
            low[index] = low[index].wrapping_add(more);
            assert!(!counts.is_at(&low), "{index} has {more} more");
            counts.advance(&low);
            assert!(counts.is_at(&low));
        }
        let wrapped = u64::from(u32::MAX) + 2;
        assert!(counts.iter().eq([(0, 2), (5, wrapped), (6, 9), (127, 3)]));
    }

    #[test]
    fn what_came_since_leaves_out_what_is_the_same() {
        let mut counts = Counts::default();
        [(3, 7), (127, 1)].iter().for_each(|(index, count)| counts.add(*index, *count));
        let older = counts.clone();
        assert_eq!(counts.since(&older), Counts::default());
        [(0, 2), (127, 4)].iter().for_each(|(index, count)| counts.add(*index, *count));
        assert!(counts.since(&older).iter().eq([(0, 2), (127, 4)]));
        assert_eq!(counts.since(&Counts::default()), counts);
        assert_eq!(Counts::default().since(&counts), Counts::default());
    }
}
