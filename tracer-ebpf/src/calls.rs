//! What a system call waits for: the words of the table that the agent fills, a word for each call's number.
//!
//! A word holds the cause of a sleep in the call, that of a block, and which of its arguments is the
//! descriptor of a file, whose file system then tells more.

use crate::tables::wait::{blocked, sleep};

/// Calls in the table; a higher number is [`OTHER`]'s. Linux 7.0 has fewer than 480.
pub const CALLS: usize = 512;

/// The table.
pub type Calls = [u16; CALLS];

/// What the descriptor of the file is.
pub mod file {
    /// No argument: there is none, or a path.
    pub const NONE: u32 = 0;
    /// The first argument.
    pub const FIRST: u32 = 1;
    /// The second argument.
    pub const SECOND: u32 = 2;
    /// The third argument.
    pub const THIRD: u32 = 3;
}

const BLOCKED_SHIFT: u32 = 4;
const FILE_SHIFT: u32 = 8;
/// Flag: asleep in it is waiting for its file system too.
const FILE_SLEEPS: u32 = 1 << 10;
/// Flag: it goes on with what another call began.
const RESUMED: u32 = 1 << 11;
/// Flag: asleep in it is waiting for its file system where the file is a regular one.
const FILE_MAY_SLEEP: u32 = 1 << 12;
/// Flag: where its file is a pipe, it writes the file of the third argument: `splice`.
const OUT_OF_PIPE: u32 = 1 << 13;

/// A call's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub u32);

impl Call {
    /// One in which to sleep is `sleep`, to be blocked `blocked`, on the file of argument `file`.
    pub const fn new(sleep: u32, blocked: u32, file: u32) -> Self {
        Self(sleep | blocked << BLOCKED_SHIFT | file << FILE_SHIFT)
    }

    /// The same, where nobody but the file system makes it sleep.
    #[must_use]
    pub const fn file_sleeps(self) -> Self {
        Self(self.0 | FILE_SLEEPS)
    }

    /// The same, where a regular file makes it sleep, or a pipe.
    #[must_use]
    pub const fn file_may_sleep(self) -> Self {
        Self(self.0 | FILE_MAY_SLEEP)
    }

    /// The same, where it writes the file of the third argument if the first's is a pipe.
    #[must_use]
    pub const fn out_of_pipe(self) -> Self {
        Self(self.0 | OUT_OF_PIPE)
    }

    /// The same, where it goes on with a call that was interrupted: with that one's sleep.
    #[must_use]
    pub const fn resumed(self) -> Self {
        Self(self.0 | RESUMED)
    }

    /// The cause of a sleep, [`sleep`].
    #[inline(always)]
    pub const fn sleep(self) -> u32 {
        self.0 & 0xf
    }

    /// The cause of a block, [`blocked`].
    #[inline(always)]
    pub const fn blocked(self) -> u32 {
        self.0 >> BLOCKED_SHIFT & 0xf
    }

    /// Which argument is the descriptor of its file, [`mod@file`].
    #[inline(always)]
    pub const fn file(self) -> u32 {
        self.0 >> FILE_SHIFT & 3
    }

    /// Whether asleep in it is waiting for its file system.
    #[inline(always)]
    pub const fn is_file_asleep(self) -> bool {
        self.0 & FILE_SLEEPS != 0
    }

    /// Whether asleep in it is waiting for its file system where the file is a regular one.
    #[inline(always)]
    pub const fn may_be_file_asleep(self) -> bool {
        self.0 & FILE_MAY_SLEEP != 0
    }

    /// Whether it writes the file of the third argument if the first's is a pipe.
    #[inline(always)]
    pub const fn may_be_out_of_pipe(self) -> bool {
        self.0 & OUT_OF_PIPE != 0
    }

    /// Whether it goes on with the call before.
    #[inline(always)]
    pub const fn is_resumed(self) -> bool {
        self.0 & RESUMED != 0
    }
}

/// Any call that the table does not tell, and those of another machine's numbers.
pub const OTHER: Call = Call::new(sleep::OTHER, blocked::OTHER, file::NONE);
/// No call: a page fault, where it is blocked.
pub const NO_CALL: Call = Call::new(sleep::OTHER, blocked::FAULT, file::NONE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_what_was_put_into_it() {
        let call = Call::new(sleep::PIPE, blocked::EXIT, file::SECOND);
        assert_eq!(
            (call.sleep(), call.blocked(), call.file()),
            (sleep::PIPE, blocked::EXIT, file::SECOND)
        );
        assert!(!call.is_file_asleep() && call.file_sleeps().is_file_asleep());
        assert_eq!(call.file_sleeps().sleep(), sleep::PIPE);
        assert!(!call.may_be_file_asleep() && call.file_may_sleep().may_be_file_asleep());
        assert!(!call.is_resumed() && call.resumed().is_resumed());
        assert!(!call.may_be_out_of_pipe() && call.out_of_pipe().may_be_out_of_pipe());
        assert_eq!(call.out_of_pipe().file(), file::SECOND);
        assert_eq!(
            (call.resumed().blocked(), call.resumed().file()),
            (blocked::EXIT, file::SECOND)
        );
    }
}
