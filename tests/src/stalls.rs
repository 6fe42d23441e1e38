//! How long the machine itself stood still while a test ran: a bound on a time is exceeded by that much without
//! anybody's fault.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

/// How long the watcher means to sleep.
const NAP: Duration = Duration::from_millis(10);

/// A thread that sleeps a little over and over, and notes how much longer it took; ended with its value.
#[derive(Debug)]
pub struct Stalls {
    longest_ns: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Stalls {
    /// Watches from now on.
    pub fn watch() -> Self {
        let (longest_ns, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (noted, told) = (Arc::clone(&longest_ns), Arc::clone(&stop));
        let watcher = spawn(move || {
            while !told.load(Ordering::Relaxed) {
                let begin = Instant::now();
                sleep(NAP);
                let more = begin.elapsed().saturating_sub(NAP);
                noted.fetch_max(more.as_nanos() as u64, Ordering::Relaxed);
            }
        });
        Self { longest_ns, stop, watcher: Some(watcher) }
    }

    /// The longest so far.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
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
