//! How often to read again what costs much to read and seldom changes: while a job is young each time, later every few
//! seconds. At intervals as long as that it is read each time. What is not read again is unknown meanwhile.
//!
//! Pure: the time comes as an argument.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::still::AGAIN_NS;

/// It is read again once a tenth of its age has passed, so that little is missing of what ends.
const PART: u64 = 10;
/// And after this at the latest, with what sets those apart that began together: they are not all due at once.
const LATEST_NS: u64 = 4_500_000_000;
const APART_NS: u64 = 500_000_000;
const APARTS: u64 = 3;
/// What hardly ever changes after a job's begin is read after this at the latest,
const HARDLY_NS: u64 = 60_000_000_000;
/// what hardly changes without a sign, after [`AGAIN_NS`], and both while the job is young once such a part of
/// its age has passed.
const HARDLY_PART: u64 = 4;

/// How many there were so far.
static MADE: AtomicU64 = AtomicU64::new(0);

/// When one thing is to be read again. Times are CLOCK_MONOTONIC.
#[derive(Clone, Debug)]
pub struct Pace {
    begin_ns: u64,
    read_ns: Option<u64>,
    part: u64,
    latest_ns: u64,
}

impl Pace {
    /// Of what is there from `now_ns` on, and was not read so far.
    pub fn from(now_ns: u64) -> Self {
        let number = MADE.fetch_add(1, Relaxed) % APARTS;
        let latest_ns = LATEST_NS + number * APART_NS;
        Self { begin_ns: now_ns, read_ns: None, part: PART, latest_ns }
    }

    /// Of what hardly ever changes, and was read at `now_ns`, when it was new.
    pub fn hardly(now_ns: u64) -> Self {
        // Not counted: with three for each job, all jobs would have the same of each kind.
        let number = MADE.load(Relaxed) % APARTS;
        let latest_ns = HARDLY_NS + number * APART_NS;
        Self { begin_ns: now_ns, read_ns: Some(now_ns), part: HARDLY_PART, latest_ns }
    }

    /// Whether it is to be read at `now_ns`.
    pub fn is_due(&self, now_ns: u64) -> bool {
        self.is_past(now_ns, self.part, self.latest_ns)
    }

    /// The same where no sign came since it was read.
    pub fn is_due_at_rest(&self, now_ns: u64) -> bool {
        self.is_past(now_ns, HARDLY_PART, AGAIN_NS)
    }

    fn is_past(&self, now_ns: u64, part: u64, latest_ns: u64) -> bool {
        let age_ns = now_ns.saturating_sub(self.begin_ns);
        let pause_ns = (age_ns / part).min(latest_ns);
        self.read_ns.is_none_or(|read_ns| now_ns.saturating_sub(read_ns) >= pause_ns)
    }

    /// Whether it was read at `now_ns`.
    pub fn was_read(&self, now_ns: u64) -> bool {
        self.read_ns == Some(now_ns)
    }

    /// It was read at `now_ns`.
    pub fn note_read(&mut self, now_ns: u64) {
        self.read_ns = Some(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// At which of the seconds up to `until_s` it is read, looked at `every_s` seconds.
    fn read_at(until_s: u64, every_s: u64) -> Vec<u64> {
        let mut pace = Pace::from(100 * S);
        let is_read = |at_s: &u64| {
            let now_ns = (100 + at_s) * S;
            let is_due = pace.is_due(now_ns);
            if is_due {
                pace.note_read(now_ns);
            }
            is_due
        };
        (0..=until_s).step_by(every_s as usize).filter(is_read).collect()
    }

    #[test]
    fn of_young_ones_each_reading_and_later_a_tenth_of_their_age_is_missing() {
        assert_eq!(read_at(10, 1), (0..=10).collect::<Vec<_>>());
        let at = read_at(600, 1);
        for two in at.windows(2) {
            let pause = two[1] - two[0];
            assert!(pause <= 6 && (pause == 1 || pause * 10 <= two[1] + 10), "{two:?} of {at:?}");
        }
        assert!((100..150).contains(&at.len()), "{at:?}");
    }

    #[test]
    fn what_hardly_changes_is_read_by_its_age_and_once_a_minute() {
        let mut pace = Pace::hardly(100 * S);
        let mut at = Vec::new();
        for second in 1..=3600 {
            if pace.is_due((100 + second) * S) {
                pace.note_read((100 + second) * S);
                at.push(second);
            }
        }
        assert_eq!(at[0], 1);
        assert!(
            at.windows(2).all(|two| two[1] - two[0] <= 61 && (two[1] - two[0]) * 4 <= two[1] + 4)
        );
        assert!(at.len() < 80, "{}", at.len());
    }

    #[test]
    fn at_intervals_of_many_seconds_all_are() {
        assert_eq!(read_at(600, 6).len(), 101);
        assert_eq!(read_at(600, 10).len(), 61);
    }
}
