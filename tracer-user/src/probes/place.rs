//! Slots' banks put into their places. For each the kernel waits a grace period; waits at one time are one wait.

use std::os::fd::BorrowedFd;

use anyhow::{Context, Result};

use crate::{
    base::both,
    bpf::{lookup, preemption::Ahead},
    model::lease::Slot,
};

/// A bank and where it belongs.
pub struct Place<'a> {
    /// The array of all banks of its kind.
    pub all: BorrowedFd<'a>,
    /// Its slot.
    pub slot: Slot,
    /// The bank.
    pub bank: BorrowedFd<'a>,
}

/// Fills all of `places` at once, each by a thread of its own.
///
/// # Errors
/// When a slot is past the last.
pub fn fill(places: &[Place<'_>]) -> Result<()> {
    match places {
        [] => Ok(()),
        [Place { all, slot, bank }] => {
            let _ahead = Ahead::begin();
            lookup::place(*all, (*slot).into(), *bank)
                .with_context(|| format!("cannot place a bank of slot {slot}"))
        }
        more => {
            let (some, others) = more.split_at(more.len() / 2);
            let (some, others) = both(|| fill(some), || fill(others));
            some.and(others)
        }
    }
}
