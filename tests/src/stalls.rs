//! How long the machine itself stood still while a test ran: a bound on a time is exceeded by that much without
//! anybody's fault.

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant, SystemTime},
};

/// How long the watcher means to sleep.
const NAP: Duration = Duration::from_millis(10);

/// What a nap is always longer by, or nearly so: no stall.
const USUAL: Duration = Duration::from_millis(5);

/// Stalls: the end by the wall clock, and the length.
type Noted = Arc<Mutex<Vec<(SystemTime, Duration)>>>;

/// A thread that sleeps a little over and over, and notes when and by how much it took longer; ended with its value.
#[derive(Debug)]
pub struct Stalls {
    noted: Noted,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Stalls {
    /// Watches from now on.
    pub fn watch() -> Self {
        let (noted, stop) = (Noted::default(), Arc::new(AtomicBool::new(false)));
        let (all, told) = (Arc::clone(&noted), Arc::clone(&stop));
        let watcher = spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let begin = Instant::now();
                sleep(NAP);
                let more = begin.elapsed().saturating_sub(NAP);
                if more > USUAL {
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((SystemTime::now(), more));
                }
            }
        });
        Self { noted, stop, watcher: Some(watcher) }
    }

    /// The longest so far.
    pub fn longest(&self) -> Duration {
        self.longest_of(|_| true)
    }

    /// The longest that ended in these nanoseconds since 1970.
    pub fn longest_in(&self, span_ns: &Range<u64>) -> Duration {
        self.longest_of(|end| {
            let since = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            span_ns.contains(&(since.as_nanos() as u64))
        })
    }

    fn longest_of(&self, is_meant: impl Fn(SystemTime) -> bool) -> Duration {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let meant = noted.iter().filter(|(end, _)| is_meant(*end));
        meant.map(|(_, length)| *length).max().unwrap_or_default()
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}
