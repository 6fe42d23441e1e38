//! The run queues' clock, told from CLOCK_MONOTONIC: needed for what runs at the moment of a read.
//!
//! No helper and no file shows that clock. But when this process wakes up, its own switch-in is
//! recorded with it: CLOCK_MONOTONIC read right after is that moment plus a few microseconds. The
//! smallest difference of several tries is the best; what runs now then seems a little too short.

use std::time::Duration;

use rustix::thread::sched_getcpu;
use tracer_ebpf::records::CpuRecord;

use crate::base::clock::monotonic_ns;

const TRIES: usize = 3;
/// A try that is no later than this after the best of the last reading is as good: each takes the processor from somebody.
const NEAR_NS: i64 = 20_000;

/// What was learnt of that clock.
#[derive(Debug, Default)]
pub struct RunQueueClock {
    /// By the last reading.
    ahead: Option<i64>,
}

impl RunQueueClock {
    /// How far CLOCK_MONOTONIC is ahead of the run queues' clock now (it may be behind); `None` where no try succeeded.
    /// `read` gives the CPUs' records.
    pub fn ahead(&mut self, mut read: impl FnMut() -> Option<Vec<CpuRecord>>) -> Option<i64> {
        let one_try = || {
            std::thread::sleep(Duration::from_micros(20));
            let cpu = sched_getcpu();
            let records = read()?;
            // After the records: whatever comes between makes the difference larger, never smaller.
            let now = monotonic_ns();
            let since = records.get(cpu)?.since_ns;
            // Moved meanwhile: the record is not of our own switch.
            (sched_getcpu() == cpu).then_some(())?;
            (since != 0).then(|| now as i64 - since as i64)
        };
        self.ahead = best(self.ahead, one_try);
        self.ahead
    }
}

/// The smallest that a few tries give; as soon as one is near `before`, that.
fn best(before: Option<i64>, mut one_try: impl FnMut() -> Option<i64>) -> Option<i64> {
    let mut best: Option<i64> = None;
    for _ in 0..TRIES {
        best = best.into_iter().chain(one_try()).min();
        if before.zip(best).is_some_and(|(before, best)| best <= before + NEAR_NS) {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_that_is_near_the_last_reading_is_enough() {
        let of = |before, tries: [Option<i64>; TRIES]| {
            let mut left = tries.into_iter();
            let best = best(before, || left.next().flatten());
            (best, TRIES - left.len())
        };
        let late = NEAR_NS + 500;
        assert_eq!(of(None, [Some(late), Some(480), Some(490)]), (Some(480), 3), "at first");
        assert_eq!(of(Some(480), [Some(490), Some(480), None]), (Some(490), 1));
        assert_eq!(of(Some(480), [Some(late), None, Some(481)]), (Some(481), 3));
        assert_eq!(of(Some(480), [Some(late), Some(481), None]), (Some(481), 2));
        let drifted = [Some(late + 9), Some(late), Some(late + 1)];
        assert_eq!(of(Some(480), drifted), (Some(late), 3), "the clocks drifted apart");
        assert_eq!(of(Some(480), [None; TRIES]), (None, 3));
    }
}
