//! Hours of the day and days of the week: which share of a span of time lies in each.

/// 1970 began on a Thursday.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const THURSDAY: u64 = 3;

/// What comes again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Circle {
    /// Of 24 hours.
    Day,
    /// Of 7 days, the first a Monday.
    Week,
}

impl Circle {
    /// Its parts' names, in their order.
    pub fn keys(self) -> Vec<String> {
        match self {
            Self::Day => (0..24).map(|hour| format!("{hour:02}:00")).collect(),
            Self::Week => WEEKDAYS.map(str::to_owned).to_vec(),
        }
    }

    /// How long a part is, in nanoseconds, how many there are, and at which one 1970 began.
    fn form(self) -> (u64, u64, u64) {
        match self {
            Self::Day => (super::HOUR_NS, 24, 0),
            Self::Week => (24 * super::HOUR_NS, 7, THURSDAY),
        }
    }

    /// The parts in which a span from `begin` to `end` lies, each with its share of it; they add up to one.
    pub fn spread(self, (begin, end): (u64, u64)) -> Vec<(usize, f64)> {
        let (part_ns, count, first) = self.form();
        let part = |at: u64| ((at / part_ns + first) % count) as usize;
        let circle_ns = part_ns * count;
        let span = end.saturating_sub(begin);
        if span == 0 {
            return vec![(part(begin), 1.0)];
        }
        let mut ns = [span / circle_ns * part_ns; 24];
        let (mut at, until) = (begin, begin + span % circle_ns);
        while at < until {
            let next = ((at / part_ns + 1) * part_ns).min(until);
            ns[part(at)] += next - at;
            at = next;
        }
        let parts = ns[..count as usize].iter().enumerate().filter(|(_, ns)| **ns > 0);
        parts.map(|(at, ns)| (at, *ns as f64 / span as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::HOUR_NS, *};

    #[test]
    fn shares_add_up_to_one() {
        const DAY_NS: u64 = 24 * HOUR_NS;
        for span in [(5, 5), (0, 1), (7, 100 * DAY_NS + 3), (HOUR_NS - 1, 26 * HOUR_NS), (9, 3)] {
            for circle in [Circle::Day, Circle::Week] {
                let sum: f64 = circle.spread(span).iter().map(|(_, share)| share).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{circle:?} {span:?}");
            }
        }
        // 2026-11-23, a Monday.
        let monday = 1_795_392_000_000_000_000;
        assert_eq!(Circle::Week.spread((monday, monday + 1)), [(0, 1.0)]);
        assert_eq!(Circle::Day.spread((monday + 3 * HOUR_NS, monday + 5 * HOUR_NS)).len(), 2);
    }
}
