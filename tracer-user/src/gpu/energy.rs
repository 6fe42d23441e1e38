//! A device's energy between two questions for its counter, which are dear: by its power, until the counter tells. Pure.

use super::reading::DeviceReading;

/// What a device's counter said last, and how much was reckoned since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Energy {
    counter_millijoules: u64,
    /// Reckoned beyond the counter, and given out.
    ahead_millijoules: u64,
}

impl Energy {
    /// Millijoules since the reading before, `span_ns` ago (0: too long ago for a power to stand for it), and what is known
    /// from now on. Over all readings they are what the counter says, and never negative: what was reckoned too high is
    /// missing from what comes next.
    pub fn add(known: &mut Option<Self>, read: &DeviceReading, span_ns: u64) -> Option<u64> {
        let Some(before) = *known else {
            *known = read.energy_millijoules.map(Self::at);
            return None;
        };
        let Some(counter) = read.energy_millijoules else {
            let nanojoules = u128::from(read.power_milliwatts?) * u128::from(span_ns);
            let more = (nanojoules / 1_000_000_000) as u64;
            let ahead_millijoules = before.ahead_millijoules.saturating_add(more);
            *known = Some(Self { ahead_millijoules, ..before });
            return Some(more);
        };
        *known = Some(Self::at(counter));
        // A counter that fell began anew with its driver.
        let grown = counter.checked_sub(before.counter_millijoules)?;
        let ahead_millijoules = before.ahead_millijoules.saturating_sub(grown);
        *known = Some(Self { ahead_millijoules, ..Self::at(counter) });
        Some(grown.saturating_sub(before.ahead_millijoules))
    }

    const fn at(counter_millijoules: u64) -> Self {
        Self { counter_millijoules, ahead_millijoules: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn reckoned_energy_comes_to_what_the_counter_says() {
        let mut known = None;
        let mut add = |counter, watts: u64| {
            let power_milliwatts = Some(watts * 1000);
            let energy_millijoules = counter;
            let read =
                DeviceReading { energy_millijoules, power_milliwatts, ..DeviceReading::default() };
            Energy::add(&mut known, &read, S)
        };
        assert_eq!(add(None, 100), None, "nobody knows yet whether there is a counter");
        assert_eq!(add(Some(5_000_000), 100), None, "the first");
        assert_eq!(add(None, 100), Some(100_000));
        assert_eq!(add(None, 300), Some(300_000));
        assert_eq!(add(Some(5_500_000), 100), Some(100_000), "400 J of 500 were reckoned");
        assert_eq!(add(None, 300), Some(300_000));
        assert_eq!(add(Some(5_700_000), 100), Some(0), "100 J too many");
        assert_eq!(add(Some(5_900_000), 100), Some(100_000), "and so fewer here");
        assert_eq!(add(Some(10), 100), None, "the driver was loaded anew");
        assert_eq!(add(Some(20), 100), Some(10));
    }
}
