//! Two pieces of work at one time.

use std::{
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

/// Does `beside` in a thread of its own while the caller's does `here`; where there can be no further thread,
/// one after the other. A panic in either is the caller's.
pub fn both<A: Send, B>(beside: impl FnOnce() -> A + Send, here: impl FnOnce() -> B) -> (A, B) {
    let work = Mutex::new(Some(beside));
    let take = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let run = || take().map(|work| work());
    thread::scope(|scope| {
        let spawned = thread::Builder::new().name("beside".into()).spawn_scoped(scope, run);
        let here = here();
        let beside = match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => run(),
        };
        (beside.expect("the work is taken once"), here)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done_once() {
        let (mut left, mut right) = (0, 0);
        let sum = both(
            || {
                left += 1;
                left
            },
            || {
                right += 2;
                right
            },
        );
        assert_eq!((sum, left, right), ((1, 2), 1, 2));
    }
}
