//! What the sampling thread and its users have in common: how to sample, and what was read so far.

use std::{
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use tokio::sync::Notify;

use super::totals::Totals;

/// How to sample.
#[derive(Clone, Debug)]
pub struct SamplerSettings {
    /// Time between two readings, 2 s at most: a state older than 5 s counts as unknown. The driver's own
    /// figures are of the last 1/6 to 1 s, so less than 1 s gains little.
    pub period: Duration,
    /// The library; by default the loader's `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// Where sys and proc are found; `/`, but for tests and containers.
    pub root: PathBuf,
    /// Where there is no library or no driver: look again after this time, or never.
    pub retry: Option<Duration>,
    /// After a device is lost: open the library anew after this time, then after twice as long, and so on.
    pub back_off: Duration,
}

impl Default for SamplerSettings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            library: None,
            root: PathBuf::from("/"),
            retry: None,
            back_off: Duration::from_secs(5),
        }
    }
}

/// What the thread and its users share.
pub(super) struct Shared<K> {
    /// Locked for the adding of a reading or the making of groups, never while the driver is asked.
    totals: Mutex<Totals<K>>,
    /// CLOCK_MONOTONIC when the reading under way began; 0 between two.
    pub asking_since_ns: AtomicU64,
    /// The thread is to end.
    pub stop: AtomicBool,
    /// The process ends with it.
    pub is_exit: AtomicBool,
    /// Told after each reading.
    pub came: Notify,
    /// As in [`SamplerCost`](super::SamplerCost).
    pub cpu_ns: AtomicU64,
    pub readings: AtomicU64,
    pub failures: AtomicU64,
}

impl<K: Ord> Default for Shared<K> {
    fn default() -> Self {
        Self {
            totals: Mutex::default(),
            asking_since_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            is_exit: AtomicBool::new(false),
            came: Notify::new(),
            cpu_ns: AtomicU64::new(0),
            readings: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }
}

impl<K> Shared<K> {
    /// The totals, waited for no longer than an addition takes.
    pub fn totals(&self) -> MutexGuard<'_, Totals<K>> {
        // Numbers added up are as good as they were, whoever panicked.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
