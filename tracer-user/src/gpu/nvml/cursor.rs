//! How far a ring of the driver's samples was read. Its stamps are since boot or of the wall clock, as the
//! driver likes, and now and then garbage: they are compared with each other alone. Pure: the time comes as
//! an argument.

use std::time::{Duration, Instant};

/// What is older than this has left the ring, and a cursor that saw nothing new for so long may be wrong.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// How far stamps may run ahead of this machine's clock.
const SLACK_US: u64 = 1_000_000;
/// More than the longest ring holds: 4,096 samples of 139 ms.
const LONGEST_US: u64 = 600_000_000;

/// How far one ring was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor(Option<(u64, Instant)>);

impl Cursor {
    /// The stamp after which samples are new; `None` at the beginning, and again after 10 s without any.
    pub fn since_us(&mut self, now: Instant) -> Option<u64> {
        if self.0.is_some_and(|(_, at)| now.saturating_duration_since(at) > FORGOTTEN) {
            self.0 = None;
        }
        self.0.map(|(stamp_us, _)| stamp_us)
    }

    /// Those of `samples` that are new, and the cursor behind the newest of them.
    pub fn take<T>(&mut self, samples: Vec<T>, now: Instant, stamp_us: fn(&T) -> u64) -> Vec<T> {
        let mut new = samples;
        match (self.since_us(now), self.0) {
            (Some(since_us), Some((_, at))) => {
                let passed_us = now.saturating_duration_since(at).as_micros() as u64;
                let most_us = since_us.saturating_add(passed_us + SLACK_US);
                new.retain(|sample| (since_us + 1..=most_us).contains(&stamp_us(sample)));
            }
            _ => {
                let mut stamps: Vec<u64> = new.iter().map(stamp_us).filter(|at| *at > 0).collect();
                stamps.sort_unstable();
                let middle = stamps.get(stamps.len().saturating_sub(1) / 2).copied();
                let is_near =
                    |at| middle.is_some_and(|middle| at > 0 && middle.abs_diff(at) <= LONGEST_US);
                new.retain(|sample| is_near(stamp_us(sample)));
            }
        }
        if let Some(newest) = new.iter().map(stamp_us).max() {
            self.0 = Some((newest, now));
        }
        new
    }

    /// Goes on to where `other` is, of a ring that is filled beside this one: nothing came here since. Not where
    /// the other's stamps are of another clock.
    pub fn follow(&mut self, other: &Self) {
        let (Some((own_us, at)), Some((other_us, other_at))) = (self.0, other.0) else { return };
        let passed_us = other_at.saturating_duration_since(at).as_micros() as u64;
        if (own_us..=own_us.saturating_add(passed_us + SLACK_US)).contains(&other_us) {
            self.0 = other.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    #[test]
    fn what_is_new_is_taken_once_and_garbage_never() {
        let (begin, mut cursor) = (Instant::now(), Cursor::default());
        let at = |s: u64| begin + Duration::from_secs(s);
        let mut take = |s, stamps: &[u64]| cursor.take(stamps.to_vec(), at(s), |stamp| *stamp);
        assert_eq!(take(0, &[]), [0; 0]);
        assert_eq!(take(0, &[1000 * S, 0, 1001 * S, u64::MAX]), [1000 * S, 1001 * S]);
        assert_eq!(take(1, &[1001 * S, 1002 * S, 1004 * S, 5, u64::MAX]), [1002 * S]);
        assert_eq!(take(1, &[1002 * S]), [0; 0]);
        // The wall clock was set back: nothing is new until what is behind is forgotten.
        assert_eq!(take(2, &[500 * S]), [0; 0]);
        assert_eq!(take(12, &[510 * S]), [510 * S]);
        assert_eq!(cursor.since_us(at(12)), Some(510 * S));
        assert_eq!(cursor.since_us(at(23)), None);
    }

    #[test]
    fn a_ring_in_which_nothing_comes_follows_the_one_beside_it() {
        let begin = Instant::now();
        let at = |s: u64| begin + Duration::from_secs(s);
        let cursor = |stamp, s| Cursor(Some((stamp, at(s))));
        let followed = |mut cursor: Cursor, other| {
            cursor.follow(&other);
            cursor.0
        };
        let own = cursor(1000 * S, 0);
        assert_eq!(followed(own, cursor(1030 * S, 30)), Some((1030 * S, at(30))));
        assert_eq!(followed(own, cursor(1032 * S, 30)), own.0, "ahead of the time");
        assert_eq!(followed(own, cursor(999 * S, 30)), own.0, "behind");
        assert_eq!(followed(own, cursor(1_700_000_000 * S, 30)), own.0, "of the wall clock");
        assert_eq!(followed(own, Cursor::default()), own.0);
        assert_eq!(followed(Cursor::default(), own), None, "what its clock is, nobody knows yet");
    }
}
