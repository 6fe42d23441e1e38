//! How often the programs of a job are asked who runs it: a few in a row, then after longer and longer pauses.
//! Pure: time arrives as an argument.

/// Programs asked in the first row.
const TRIES: usize = 8;
/// Programs, and before them tasks, asked in the rows after a pause.
pub const AGAIN: usize = 4;
/// The pause after the first row; each one is twice as long as that before, up to the longest.
const FIRST_PAUSE_NS: u64 = 5_000_000_000;
const LONGEST_PAUSE_NS: u64 = 320_000_000_000;

/// What was asked of one job so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    left: usize,
    /// Of the next pause.
    pause_ns: u64,
    /// End of the pause, where none is left.
    until_ns: u64,
}

impl Default for Asking {
    fn default() -> Self {
        Self { left: TRIES, pause_ns: FIRST_PAUSE_NS, until_ns: 0 }
    }
}

impl Asking {
    /// Takes one of those that are left; `false` in a pause. After the last a pause begins.
    pub fn ask(&mut self, now_ns: u64) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        if left == 0 {
            self.until_ns = now_ns.saturating_add(self.pause_ns);
            self.pause_ns = (self.pause_ns * 2).min(LONGEST_PAUSE_NS);
        }
        true
    }

    /// Whether no program is of interest now.
    pub fn is_paused(&self) -> bool {
        self.left == 0
    }

    /// Begins another row where the pause is over; whether it does.
    pub fn resume(&mut self, now_ns: u64) -> bool {
        let is_over = self.is_paused() && now_ns >= self.until_ns;
        if is_over {
            self.left = AGAIN;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_few_are_asked_and_then_nobody_until_the_pause_is_over() {
        let mut asking = Asking::default();
        assert!(!asking.resume(0), "there is no pause");
        assert_eq!((0..100).filter(|_| asking.ask(7 * S)).count(), TRIES);
        assert!(asking.is_paused() && !asking.resume(12 * S - 1));
        assert!(asking.resume(12 * S) && !asking.is_paused());
        assert!(asking.ask(12 * S) && !asking.resume(13 * S), "some are left");
    }

    #[test]
    fn of_ten_programs_a_second_few_are_asked() {
        let (mut asking, mut asked, mut last_ns) = (Asking::default(), 0, 0);
        // An hour, with a tick each second.
        for tenth in 0..36_000 {
            let now_ns = tenth * S / 10;
            if tenth % 10 == 0 && asking.resume(now_ns) {
                last_ns = now_ns;
            }
            asked += u32::from(asking.ask(now_ns));
        }
        assert!((40..=100).contains(&asked), "{asked} of 36000");
        assert!(3_600 * S - last_ns <= LONGEST_PAUSE_NS + 2 * S, "it never ends");
    }
}
