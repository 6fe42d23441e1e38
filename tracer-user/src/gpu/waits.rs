//! Waits that ended in a stretch of time, and what of them lay before it. Pure.

use tracer_ebpf::loglinear::bucket_low;

use crate::model::hist::Hist;

/// Waits that ended in a stretch of time: the kernel charges a wait when it ends, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Waits {
    /// What of them lay in the stretch.
    pub within_ns: u64,
    /// What of them lay before it.
    pub before_ns: u64,
    /// How long before its begin the earliest of them began, at most.
    pub reach_ns: u64,
}

impl Waits {
    /// The waits of `ended`, all of which ended in a stretch of `span_ns`.
    ///
    /// When in it each ended is not known, so every moment is as likely: on the mean a wait of length `l`
    /// reaches `l²/2s` before a stretch of `s` where it is shorter, `l - s/2` where it is longer. Lengths
    /// are the buckets' middles, moved so that they add up to the exact sum.
    pub fn of(ended: &Hist, span_ns: u64) -> Self {
        let middle = |index: usize| (bucket_low(index) as f64 + ended.bound(index) as f64) / 2.0;
        let sum: f64 = ended.buckets().map(|(index, count)| middle(index) * count as f64).sum();
        let exact = if sum > 0.0 { ended.sum as f64 / sum } else { 1.0 };
        let before = |(index, count): (usize, u64)| {
            let (low, high) = (bucket_low(index) as f64, ended.bound(index) as f64);
            let length = (middle(index) * exact).clamp(low.min(high), high);
            before(length, span_ns) * count as f64
        };
        let before_ns = (ended.buckets().map(before).sum::<f64>() as u64).min(ended.sum);
        let longest = ended.buckets().last().map_or(0, |(index, _)| ended.bound(index));
        Self { within_ns: ended.sum - before_ns, before_ns, reach_ns: longest }
    }

    /// `count` waits of which no more is known than that they took `ns`: as if all were as long.
    pub fn alike(ns: u64, count: u64, span_ns: u64) -> Self {
        let length = ns as f64 / count.max(1) as f64;
        let before_ns = ((before(length, span_ns) * count as f64) as u64).min(ns);
        Self { within_ns: ns - before_ns, before_ns, reach_ns: length.ceil() as u64 }
    }

    /// With others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            within_ns: self.within_ns.saturating_add(other.within_ns),
            before_ns: self.before_ns.saturating_add(other.before_ns),
            reach_ns: self.reach_ns.max(other.reach_ns),
        }
    }

    /// `part` of `whole` of them.
    #[must_use]
    pub fn part(self, part: u64, whole: u64) -> Self {
        let scaled =
            |ns: u64| (u128::from(ns) * u128::from(part) / u128::from(whole.max(1))) as u64;
        let of = |ns: u64| if part >= whole { ns } else { scaled(ns) };
        Self { within_ns: of(self.within_ns), before_ns: of(self.before_ns), ..self }
    }

    /// Without others, which are among them.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            within_ns: self.within_ns.saturating_sub(other.within_ns),
            before_ns: self.before_ns.saturating_sub(other.before_ns),
            reach_ns: self.reach_ns,
        }
    }
}

/// What of a wait of `length` that ended in a stretch of `span_ns` lay before it, on the mean.
fn before(length: f64, span_ns: u64) -> f64 {
    let span = span_ns as f64;
    if length <= span && span > 0.0 { length * length / (2.0 * span) } else { length - span / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const S: u64 = 1_000 * MS;

    #[test]
    fn a_wait_reaches_before_the_stretch_in_which_it_ended() {
        for (what, waits, before_ms, reach_ms) in [
            ("none", &[][..], 0, 0),
            ("reads of 200 µs: next to nothing of them", &[(MS / 5, 4_000)], 0, 0),
            ("waits of 100 ms", &[(100 * MS, 9)], 45, 100),
            ("half a second: a quarter of it, on the mean", &[(S / 2, 1)], 125, 500),
            ("as long as the stretch", &[(S, 1)], 500, 1_000),
            (
                "five seconds: they ended half a second into it, on the mean",
                &[(5 * S, 1)],
                4_500,
                5_000,
            ),
            ("eight tasks", &[(5 * S, 8)], 36_000, 5_000),
            ("one long and many short ones", &[(5 * S, 1), (MS, 300)], 4_500, 5_000),
        ] {
            let hist = Hist::of(waits);
            let got = Waits::of(&hist, S);
            assert_eq!(got.within_ns + got.before_ns, hist.sum, "{what}");
            let near = |got: u64, wanted_ms: u64| got.abs_diff(wanted_ms * MS) <= 2 * MS + got / 10;
            assert!(near(got.before_ns, before_ms), "{what}: {got:?}");
            assert!(near(got.reach_ns, reach_ms), "{what}: {got:?}");
        }
        let one = Waits::of(&Hist::of(&[(5 * S + 7, 1)]), S);
        assert_eq!(one.before_ns, 4_500 * MS + 7, "a single wait is known to the nanosecond");
        assert_eq!(Waits::of(&Hist::of(&[(7, 1)]), 0).within_ns, 0, "no time, nothing in it");
    }

    #[test]
    fn waits_taken_to_be_alike_are_all_there() {
        let one = Waits::alike(5 * S, 1, S);
        assert_eq!((one.within_ns, one.before_ns, one.reach_ns), (S / 2, 4_500 * MS, 5 * S));
        let many = Waits::alike(900 * MS, 9, S);
        assert_eq!((many.within_ns, many.before_ns, many.reach_ns), (855 * MS, 45 * MS, 100 * MS));
        assert_eq!(Waits::alike(0, 0, S), Waits::default());
    }
}
