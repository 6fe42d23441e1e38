//! Chance that comes out alike for ever: a seed and a stream give the same numbers on every machine and
//! with every version of this program, which no random-number crate promises of its generators.
//!
//! Pure. SplitMix64 (Steele, Lea, Flood 2014): plenty for plausible jobs, and for nothing secret.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream `stream` of `seed`: streams of one seed have nothing to do with each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed);
        let seed = mixed.number();
        let mut mixed = Self(seed ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(mixed.number())
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to less than 1.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 to less than `end`; 0 where that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// One of `choices` by their weights, which are not all zero.
    pub fn pick<T: Copy>(&mut self, choices: &[(T, u32)]) -> T {
        let total: u64 = choices.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = self.below(total);
        for (choice, weight) in choices {
            if left < u64::from(*weight) {
                return *choice;
            }
            left -= u64::from(*weight);
        }
        choices[choices.len() - 1].0
    }

    /// Log-normal around `mean` with the given spread of the logarithm.
    pub fn log_normal(&mut self, mean: f64, sigma: f64) -> f64 {
        // Box and Muller; 1 - u is never 0.
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        mean * (sigma * normal - sigma * sigma / 2.0).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_for_ever() {
        // The reference implementation's first numbers of seed 1234567.
        let mut plain = Random(1_234_567);
        let numbers = [plain.number(), plain.number(), plain.number()];
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let of = |seed, stream| Random::new(seed, stream).number();
        assert_eq!(of(1, 2), of(1, 2));
        assert!(of(1, 2) != of(1, 3) && of(1, 2) != of(2, 2));
    }

    #[test]
    fn numbers_keep_to_their_bounds_and_means() {
        let mut random = Random::new(1, 0);
        let mut sums = (0.0, 0.0, [0_u32; 3]);
        for _ in 0..100_000 {
            let unit = random.unit();
            assert!((0.0..1.0).contains(&unit));
            assert!(random.below(7) < 7);
            sums.0 += unit;
            sums.1 += random.log_normal(100.0, 1.2);
            sums.2[random.pick(&[(0, 1), (1, 0), (2, 3)])] += 1;
        }
        assert!((0.49..0.51).contains(&(sums.0 / 1e5)), "{}", sums.0);
        assert!((95.0..105.0).contains(&(sums.1 / 1e5)), "{}", sums.1);
        assert_eq!(sums.2[1], 0);
        assert!((24_000..26_000).contains(&sums.2[0]), "{:?}", sums.2);
    }
}
