//! What a system call does to files: the words of the table that the agent fills, a word for each call's number.

use crate::{calls::CALLS, tables::io::op};

/// The table: calls of 64 bits, and behind them those of 32 bits, whose numbers are others.
pub type IoCalls = [u16; 2 * CALLS];

/// Where the calls of 32 bits begin.
pub const OF_32_BITS: usize = CALLS;

/// Where the file system of an operation is found.
pub mod place {
    /// Nowhere: the call does not tell.
    pub const UNKNOWN: u32 = 0;
    /// The file of the first argument, a descriptor.
    pub const FIRST: u32 = 1;
    /// The file of the second argument, a descriptor.
    pub const SECOND: u32 = 2;
    /// The file of the first argument, which is gone when the call returns.
    pub const CLOSED: u32 = 3;
    /// The file of the descriptor that it returns; where it fails, the path.
    pub const OPENED: u32 = 4;
    /// The path.
    pub const PATH: u32 = 5;
    /// The `struct stat` that it fills; where it fails, the path.
    pub const STAT: u32 = 6;
    /// The same of `struct statx`.
    pub const STATX: u32 = 7;
}

const PLACE_SHIFT: u32 = 5;
const OP_MASK: u32 = (1 << PLACE_SHIFT) - 1;
/// What tells calls from each other that are no operation: with none a place says something else.
const KIND_MASK: u32 = OP_MASK | 7 << PLACE_SHIFT;
/// Flag: the path follows the descriptor of the folder that it begins at.
const AT: u32 = 1 << 8;
/// Flag: it returns the number of bytes that it moved.
const MOVES: u32 = 1 << 9;
/// Flag: it is an operation for some values of its second argument alone: `fcntl`, for those of locks.
const LOCKS: u32 = 1 << 10;
/// Flag: the fourth argument is where in the file it begins; -1: where the file stands.
const AT_OFFSET: u32 = 1 << 11;
/// Flag: it is one of 32 bits, whose arguments are in other registers.
const NARROW: u32 = 1 << 12;
/// Flag: a text comes before the path and the folder's descriptor: `symlink`.
const AFTER_TEXT: u32 = 1 << 13;
/// Flag: where its file is a pipe, it writes the file of the third argument: `splice`.
const OUT_OF_PIPE: u32 = 1 << 14;
/// Flag, of none in the table: a copy that is told of the file that it writes.
const OF_TARGET: u32 = 1 << 16;

/// A call's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoCall(pub u32);

/// No operation on files.
pub const NONE: IoCall = IoCall(0);
/// None itself, but one that submits requests to libaio.
pub const SUBMISSION: IoCall = IoCall(1 << PLACE_SHIFT);
/// Whatever it is: a call of 32 bits, by numbers that are not known here.
pub const OF_OTHER_NUMBERS: IoCall = IoCall(2 << PLACE_SHIFT);

impl IoCall {
    /// One that is operation `op`, by [`op`], on what [`place`] finds.
    pub const fn new(op: u32, place: u32) -> Self {
        Self((op + 1) | place << PLACE_SHIFT)
    }

    /// The same, where the path follows a folder's descriptor.
    #[must_use]
    pub const fn at(self) -> Self {
        Self(self.0 | AT)
    }

    /// The same, where a text comes before these.
    #[must_use]
    pub const fn after_text(self) -> Self {
        Self(self.0 | AFTER_TEXT)
    }

    /// The same, where it returns the number of bytes that it moved.
    #[must_use]
    pub const fn moves(self) -> Self {
        Self(self.0 | MOVES)
    }

    /// The same, where it is one for some values of the second argument.
    #[must_use]
    pub const fn locks(self) -> Self {
        Self(self.0 | LOCKS)
    }

    /// The same, where the fourth argument is the offset.
    #[must_use]
    pub const fn at_offset(self) -> Self {
        Self(self.0 | AT_OFFSET)
    }

    /// The same, where it writes the file of the third argument if the first's is a pipe.
    #[must_use]
    pub const fn out_of_pipe(self) -> Self {
        Self(self.0 | OUT_OF_PIPE)
    }

    /// The same, a copy, told of the file that it writes.
    #[must_use]
    #[inline(always)]
    pub const fn of_target(self) -> Self {
        Self(self.0 | OF_TARGET)
    }

    /// The same in 32 bits.
    #[must_use]
    pub const fn of_32_bits(self) -> Self {
        Self(self.0 | NARROW)
    }

    /// Whether it is an operation at all.
    #[inline(always)]
    pub const fn is_some(self) -> bool {
        self.0 & OP_MASK != 0
    }

    /// Whether it is one of 32 bits.
    #[inline(always)]
    pub const fn is_of_32_bits(self) -> bool {
        self.0 & NARROW != 0
    }

    /// Whether it is [`SUBMISSION`].
    #[inline(always)]
    pub const fn is_submission(self) -> bool {
        self.0 & KIND_MASK == SUBMISSION.0
    }

    /// Whether it is [`OF_OTHER_NUMBERS`].
    #[inline(always)]
    pub const fn is_of_other_numbers(self) -> bool {
        self.0 & KIND_MASK == OF_OTHER_NUMBERS.0
    }

    /// The operation.
    #[inline(always)]
    pub const fn op(self) -> u32 {
        (self.0 & OP_MASK).wrapping_sub(1)
    }

    /// Where its file system is found.
    #[inline(always)]
    pub const fn place(self) -> u32 {
        self.0 >> PLACE_SHIFT & 7
    }

    /// Whether the path follows a folder's descriptor.
    #[inline(always)]
    pub const fn is_at(self) -> bool {
        self.0 & AT != 0
    }

    /// Whether a text comes before the path and the folder's descriptor.
    #[inline(always)]
    pub const fn is_after_text(self) -> bool {
        self.0 & AFTER_TEXT != 0
    }

    /// Whether it returns the number of bytes that it moved.
    #[inline(always)]
    pub const fn is_moving(self) -> bool {
        self.0 & MOVES != 0
    }

    /// Whether it writes the file of the third argument if the first's is a pipe.
    #[inline(always)]
    pub const fn may_be_out_of_pipe(self) -> bool {
        self.0 & OUT_OF_PIPE != 0
    }

    /// Whether it reads one file and writes another.
    #[inline(always)]
    pub const fn is_copy(self) -> bool {
        matches!(self.op(), op::COPY | op::SENDFILE | op::SPLICE)
    }

    /// Whether it is a copy told of the file that it writes.
    #[inline(always)]
    pub const fn is_of_target(self) -> bool {
        self.0 & OF_TARGET != 0
    }

    /// Whether the bytes that it moves go into its file.
    #[inline(always)]
    pub const fn is_writing(self) -> bool {
        self.op() == op::WRITE || self.is_of_target()
    }

    /// Whether the fourth argument is the offset.
    #[inline(always)]
    pub const fn is_at_offset(self) -> bool {
        self.0 & AT_OFFSET != 0
    }

    /// Whether it is an operation for some values of the second argument alone.
    #[inline(always)]
    pub const fn is_lock_by_command(self) -> bool {
        self.0 & LOCKS != 0
    }
}

/// Whether a copy that fails with this result fails for the file that it writes: that is full (`ENOSPC`, `EDQUOT`), at its
/// limit (`EFBIG`), read-only (`EROFS`), has no reader (`EPIPE`, `ECONNRESET`) or no room now (`EAGAIN`).
#[inline(always)]
pub const fn fails_for_target(result: i64) -> bool {
    matches!(result, -28 | -122 | -27 | -30 | -32 | -104 | -11)
}

/// Whether a copy out of a pipe that ends with this result did so for the pipe: nothing was in it (`EAGAIN`), or a signal
/// came (`EINTR`, and the kernel's own before it begins anew).
#[inline(always)]
pub const fn ends_for_pipe(result: i64) -> bool {
    matches!(result, -11 | -4 | -516..=-512)
}

/// Whether `fcntl` with this command is a lock: `F_GETLK` to `F_SETLKW`, their kin of 32-bit programs with large files, and
/// those of open files.
#[inline(always)]
pub const fn is_lock(command: u64) -> bool {
    matches!(command as u32, 5..=7 | 12..=14 | 36..=38)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::io::OPS;

    #[test]
    fn a_word_holds_what_was_put_into_it() {
        let call = IoCall::new(op::LOCK, place::STATX);
        assert_eq!((call.op(), call.place()), (op::LOCK, place::STATX));
        assert!(!call.is_at() && call.at().is_at() && call.at().op() == op::LOCK);
        assert!(!call.is_moving() && call.moves().is_moving());
        assert!(!call.is_lock_by_command() && call.locks().is_lock_by_command());
        assert!(!call.is_at_offset() && call.at_offset().is_at_offset());
        assert!(!call.may_be_out_of_pipe() && call.out_of_pipe().may_be_out_of_pipe());
        let target = call.of_target();
        assert!(!call.is_writing() && target.is_writing() && target.is_of_target());
        assert_eq!((target.op(), target.place()), (op::LOCK, place::STATX));
        assert!(IoCall::new(op::WRITE, place::FIRST).is_writing());
        assert!(!call.is_after_text() && call.after_text().is_after_text());
        assert!(call.is_some() && !NONE.is_some());
        assert!(IoCall::new(0, place::UNKNOWN).is_some());
        assert!(call.of_32_bits().is_of_32_bits() && call.of_32_bits().op() == op::LOCK);
        for other in [SUBMISSION, OF_OTHER_NUMBERS, SUBMISSION.of_32_bits()] {
            assert!(!other.is_some());
        }
        assert!(SUBMISSION.is_submission() && !call.is_submission());
        assert!(OF_OTHER_NUMBERS.is_of_other_numbers() && !call.is_of_other_numbers());
        let all = call.at().moves().locks().at_offset().after_text().out_of_pipe().of_32_bits().0;
        assert!(all | SUBMISSION.0 | OF_OTHER_NUMBERS.0 <= u32::from(u16::MAX));
    }

    #[test]
    fn every_operation_fits_into_a_word() {
        for op in 0..OPS.len() as u32 {
            assert_eq!(IoCall::new(op, place::PATH).op(), op);
        }
    }

    #[test]
    fn a_result_tells_whose_it_is() {
        for (number, of_target, of_pipe) in [
            (28, true, false),
            (11, true, true),
            (4, false, true),
            (512, false, true),
            (5, false, false),
        ] {
            assert_eq!(
                (fails_for_target(-number), ends_for_pipe(-number)),
                (of_target, of_pipe),
                "{number}"
            );
            assert!(!fails_for_target(number) && !ends_for_pipe(number), "bytes");
        }
    }

    #[test]
    fn of_fcntl_locks_alone_are_operations() {
        // F_GETFD to F_SETFL; of sockets; of pipes and leases.
        for other in [0, 1, 2, 3, 4, 8, 9, 1024, 1030, 1031] {
            assert!(!is_lock(other), "{other}");
        }
        assert!((5..=7).chain(12..=14).chain(36..=38).all(is_lock));
    }
}
