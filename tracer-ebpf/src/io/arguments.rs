//! The arguments of a call, as they were when the task entered it.

use core::arch::asm;

use tracer_ebpf::{io_calls::IoCall, kernel_fields::fields::*};

use crate::kernel::{Kernel, load};

/// A path begins at the working directory.
pub const AT_FDCWD: u32 = -100_i32 as u32;

/// The registers that a call has them in, which are others in calls of 32 bits.
#[derive(Clone, Copy)]
pub struct Arguments {
    registers: Kernel,
    call: IoCall,
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident = $field:ident, $field_32:ident);* $(;)?) => {
        $($(#[$doc])*
        #[inline(always)]
        pub fn $name(self) -> u64 {
            if self.are_of_32_bits() {
                load::<u32, _>(self.registers, $field_32).into()
            } else {
                load(self.registers, $field)
            }
        })*
    };
}

impl Arguments {
    /// Those of `call` in these registers.
    #[inline(always)]
    pub fn of(registers: Kernel, call: IoCall) -> Self {
        Self { registers, call }
    }

    arguments! {
        /// The first.
        first = CALL_FIRST, CALL_FIRST_32;
        /// The second.
        second = CALL_SECOND, CALL_SECOND_32;
        /// The third.
        third = CALL_THIRD, CALL_THIRD;
        /// The fifth.
        fifth = CALL_FIFTH, CALL_FIFTH_32
    }

    /// The fourth, an offset in a file; in calls of 32 bits that is two arguments.
    #[inline(always)]
    pub fn offset(self) -> u64 {
        if self.are_of_32_bits() {
            let low: u32 = load(self.registers, CALL_FOURTH_32);
            self.fifth() << 32 | u64::from(low)
        } else {
            load(self.registers, CALL_FOURTH)
        }
    }

    /// Whether the call is one of 32 bits. Asked of a copy of its word each time: of a bit that it has looked at once the
    /// verifier knows the value, and looks at all that follows for either.
    #[inline(always)]
    pub fn are_of_32_bits(self) -> bool {
        let mut word = u64::from(self.call.0);
        // SAFETY: changes nothing in a word of 16 bits, which LLVM does not know.
        unsafe { asm!("{0} &= 65535", inout(reg) word, options(nomem, nostack)) };
        IoCall(word as u32).is_of_32_bits()
    }

    /// The address of the path, and the descriptor of the folder that it begins at.
    #[inline(always)]
    pub fn path(self) -> (u64, u32) {
        match (self.call.is_at(), self.call.is_after_text()) {
            (true, false) => (self.second(), self.first() as u32),
            (true, true) => (self.third(), self.second() as u32),
            (false, false) => (self.first(), AT_FDCWD),
            (false, true) => (self.second(), AT_FDCWD),
        }
    }
}
