//! Turns between the tests of a program in which some mostly wait: those that wait run beside the others, which
//! keep to one at a time. Such a program is started with as many threads as it has tests that wait, and one more
//! (`xtask/src/test/live.rs`); they come first in its alphabet, so that the others fill their time.

use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// Waits for the calling test's turn, which lasts until the value is dropped. Without one a test may sleep and wait,
/// and nothing that another test could notice.
#[must_use = "the turn ends with it"]
pub fn turn() -> MutexGuard<'static, ()> {
    // Another test's failure is no reason for this one to fail.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
