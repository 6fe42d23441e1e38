//! How long the agent's end waits for the disk. Pure: time arrives as an argument.

use std::time::{Duration, Instant};

/// For a disk that takes nothing: the agent promises to end within two seconds then.
const IDLE: Duration = Duration::from_secs(1);
/// For one that takes record after record, of jobs that ended by the hundred just before.
const BUSY: Duration = Duration::from_secs(10);

/// With the disk, from the agent's end on.
pub(super) struct Patience {
    begin: Instant,
    /// The fewest that were left, and since when.
    least: usize,
    since: Instant,
}

impl Patience {
    /// `left` are to be saved, and the agent ends `now`.
    pub fn begins(left: usize, now: Instant) -> Self {
        Self { begin: now, least: left, since: now }
    }

    /// Whether it lasts `now` that `left` are to be saved.
    pub fn lasts(&mut self, left: usize, now: Instant) -> bool {
        if left < self.least {
            (self.least, self.since) = (left, now);
        }
        now.duration_since(self.since) < IDLE && now.duration_since(self.begin) < BUSY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// After how many milliseconds it ends with a disk that saves one of `count` records in every `each_ms`, and how many
    /// are left then; `None` where all are saved before.
    fn ends(count: usize, each_ms: u32) -> Option<(u32, usize)> {
        let begin = Instant::now();
        let mut patience = Patience::begins(count, begin);
        for ms in 0..20_000 {
            let left = count.saturating_sub((ms / each_ms) as usize);
            if left == 0 {
                return None;
            }
            if !patience.lasts(left, begin + ms * MS) {
                return Some((ms, left));
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn it_lasts_while_records_are_saved_and_a_second_without() {
        assert_eq!(ends(1, u32::MAX), Some((1_000, 1)), "a disk that hangs");
        assert_eq!(ends(5, 1_000), None, "each comes just in time");
        assert_eq!(ends(5, 1_001), Some((1_000, 5)));
        assert_eq!(ends(2_000, 5), None, "9,995 ms of work");
        assert_eq!(ends(2_001, 5), Some((10_000, 1)), "no disk is waited for longer");
    }

    #[test]
    fn what_comes_back_to_wait_is_no_progress() {
        let begin = Instant::now();
        let mut patience = Patience::begins(2, begin);
        // The disk refuses one, and it is handed over once more, time and again.
        let lasts = |ms: u32| patience.lasts(2 - (ms as usize) % 2, begin + ms * MS);
        assert_eq!((0..10_000).map(lasts).take_while(|lasts| *lasts).count(), 1_001);
    }
}
