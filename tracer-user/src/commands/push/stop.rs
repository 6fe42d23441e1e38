//! The wish to end, on which the sending thread sleeps.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Set once, never taken back.
#[derive(Debug, Default)]
pub struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Wakes whoever sleeps.
    pub fn set(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Whether to end.
    pub fn is_set(&self) -> bool {
        *self.lock()
    }

    /// Sleeps; whether to end, which cuts the sleep short.
    pub fn sleep(&self, time: Duration) -> bool {
        let woken = self.changed.wait_timeout_while(self.lock(), time, |is_set| !*is_set);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Instant};

    use super::*;

    #[test]
    fn a_sleep_ends_by_itself_or_by_the_wish() {
        let stop = Arc::new(Stop::default());
        assert!(!stop.sleep(Duration::from_millis(5)));
        let begin = Instant::now();
        let waker = stop.clone();
        let thread = thread::spawn(move || waker.set());
        assert!(stop.sleep(Duration::from_secs(60)));
        assert!(begin.elapsed() < Duration::from_secs(30));
        thread.join().unwrap();
        assert!(stop.is_set());
    }
}
