//! Pairs of a run with a tracer and those without beside it, and what is quoted of them.
//! Pure: the runs themselves are the caller's.

/// Time per operation without and with tracing, of each pair. None is ever dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    off_ns: Vec<f64>,
    on_ns: Vec<f64>,
}

/// The middle and the ends of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of the figures lie on each side.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Pairs {
    /// Adds a pair of times per operation.
    pub fn add(&mut self, off_ns: f64, on_ns: f64) {
        self.off_ns.push(off_ns);
        self.on_ns.push(on_ns);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.off_ns.len()
    }

    /// Time per operation without tracing.
    pub fn off_ns(&self) -> Option<Spread> {
        spread(self.off_ns.iter().copied())
    }

    /// By how much tracing slows, pair by pair: 0.05 is five per cent.
    pub fn slowdown_ratio(&self) -> Option<Spread> {
        spread(self.ratios())
    }

    /// Where the median slowdown lies with a confidence of 95 %, whatever the ratios' distribution;
    /// none of fewer than six pairs, which cannot tell.
    pub fn slowdown_interval(&self) -> Option<(f64, f64)> {
        let mut sorted: Vec<f64> = self.ratios().collect();
        sorted.sort_by(f64::total_cmp);
        let outside = outside(sorted.len())?;
        Some((sorted[outside], sorted[sorted.len() - 1 - outside]))
    }

    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.off_ns.iter().zip(&self.on_ns).map(|(off, on)| on / off - 1.0)
    }
}

/// How many of `count` sorted figures lie outside the interval on each side: the most for which a
/// fair coin tossed `count` times shows no more heads than that with a chance of 2.5 % at most.
fn outside(count: usize) -> Option<usize> {
    let tosses = count as f64;
    // The logarithm, as 2^-count is below the least double for many pairs.
    let mut log_chance = -tosses * std::f64::consts::LN_2;
    let mut total = 0.0;
    for heads in 0..count {
        total += log_chance.exp();
        if total > 0.025 {
            return heads.checked_sub(1);
        }
        log_chance += ((tosses - heads as f64) / (heads as f64 + 1.0)).ln();
    }
    None
}

/// Median and ends; none of nothing. Of an even number the median is the mean of the middle two.
pub fn spread(figures: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut sorted: Vec<f64> = figures.collect();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    };
    Some(Spread { median, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_no_figures() {
        let of = |figures: &[f64]| spread(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_median_lies_between_the_ranks_of_the_sign_test() {
        // Ranks (from 0) of the 95 % interval, from tables of the sign test.
        for (count, rank) in [(5, None), (6, Some(0)), (9, Some(1)), (20, Some(5)), (100, Some(39))]
        {
            assert_eq!(outside(count), rank, "{count}");
        }
        let mut pairs = Pairs::default();
        (0..9).for_each(|n| pairs.add(100.0, 100.0 + f64::from(n)));
        let (low, high) = pairs.slowdown_interval().expect("nine pairs");
        assert!((low - 0.01).abs() < 1e-9 && (high - 0.07).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn ratios_are_taken_within_a_pair() {
        // The machine slowed to half between the pairs: the medians alone would show +50 %.
        let mut pairs = Pairs::default();
        pairs.add(100.0, 105.0);
        pairs.add(200.0, 210.0);
        pairs.add(200.0, 190.0);
        let ratio = pairs.slowdown_ratio().expect("three pairs");
        assert!((ratio.median - 0.05).abs() < 1e-9);
        assert!((ratio.min + 0.05).abs() < 1e-9);
        assert_eq!(pairs.off_ns().expect("three pairs").median, 200.0);
        assert_eq!(pairs.count(), 3);
    }
}
