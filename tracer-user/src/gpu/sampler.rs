//! The sampling as its users see it. Nobody waits for the driver: what was read last stands until it
//! answers again, and a state that is too old is unknown.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, Thread},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    claim::Claims,
    reading::ProcessReading,
    totals::{STALE_NS, Totals},
    work::Work,
};
use crate::model::group::Group;

/// How long the end waits for a call that is under way: exiting under it may crash the library.
const PATIENCE: Duration = Duration::from_millis(100);

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

/// What the sampling took and could not do so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplerCost {
    /// CPU time of its thread.
    pub cpu_ns: u64,
    /// Readings.
    pub readings: u64,
    /// Devices lost, and openings of the library that failed.
    pub failures: u64,
}

/// Samples until it is dropped. `K` names a job.
pub struct Sampler<K> {
    shared: Arc<Shared<K>>,
    thread: Thread,
    ended: Receiver<()>,
}

/// What the thread and its users share.
pub(super) struct Shared<K> {
    /// Locked for the adding of a reading or the making of groups, never while the driver is asked.
    totals: Mutex<Totals<K>>,
    /// CLOCK_MONOTONIC when the reading under way began; 0 between two.
    pub asking_since_ns: AtomicU64,
    /// The thread is to end.
    pub stop: AtomicBool,
    /// Told after each reading.
    pub came: Notify,
    /// As in [`SamplerCost`].
    pub cpu_ns: AtomicU64,
    pub readings: AtomicU64,
    pub failures: AtomicU64,
}

impl<K: Ord + Clone + Send + 'static> Sampler<K> {
    /// Starts the thread. `owner` tells whose a process is; it is called with each process of each reading,
    /// under the lock that [`Self::groups_for`] takes, so it must not block.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(
        settings: SamplerSettings,
        owner: impl Fn(&ProcessReading) -> Option<K> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            totals: Mutex::new(Totals::default()),
            asking_since_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            came: Notify::new(),
            cpu_ns: AtomicU64::new(0),
            readings: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        });
        let (end, ended) = sync_channel(1);
        let work = Work { shared: Arc::clone(&shared), settings, owner };
        let thread = thread::Builder::new().name("gpu".into()).spawn(move || {
            work.run();
            // Nobody may be left to hear it.
            let _ = end.send(());
        })?;
        Ok(Self { shared, thread: thread.thread().clone(), ended })
    }

    /// Waits for the next reading, or one that came since the last call: [`Self::look`] is due then. One
    /// caller at a time; it may stop waiting.
    pub async fn reading(&self) {
        self.shared.came.notified().await;
    }

    /// As [`Totals::watched`].
    pub fn watched(&self) -> Vec<K> {
        self.shared.totals().watched()
    }

    /// As [`Totals::look`].
    pub fn look(&self, job: &K, now_ns: u64, groups: Option<&[Group]>) {
        self.shared.totals().look(job, now_ns, groups);
    }

    /// As [`Totals::settle`].
    pub fn settle(&self, job: &K) {
        self.shared.totals().settle(job);
    }

    /// As [`Totals::claim`].
    pub fn claim(&self, claims: BTreeMap<K, Claims>) {
        self.shared.totals().claim(claims);
    }

    /// What it took so far.
    pub fn cost(&self) -> SamplerCost {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Shared { cpu_ns, readings, failures, .. } = &*self.shared;
        SamplerCost { cpu_ns: load(cpu_ns), readings: load(readings), failures: load(failures) }
    }

    /// As [`Totals::groups_for`].
    pub fn groups_for(&self, job: &K, now_ns: u64) -> Vec<Group> {
        let mut totals = self.shared.totals();
        let since_ns = self.shared.asking_since_ns.load(Ordering::Relaxed);
        if since_ns != 0 && now_ns.saturating_sub(since_ns) > STALE_NS {
            totals.note(
                None,
                "the GPU driver did not answer for more than 5 s: GPU values have a gap".into(),
            );
        }
        totals.groups_for(job, now_ns)
    }

    /// As [`Totals::notes_for`].
    pub fn notes_for(&self, job: &K) -> Vec<String> {
        self.shared.totals().notes_for(job)
    }

    /// All notes so far, in their order, of the whole node.
    pub fn notes(&self) -> Vec<String> {
        self.shared.totals().notes().map(str::to_owned).collect()
    }

    /// As [`Totals::forget`].
    pub fn forget(&self, job: &K) {
        self.shared.totals().forget(job);
    }

    /// Whether the thread still looks for GPUs: not, where there are none and it was not to look again.
    pub fn is_running(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

impl<K> Drop for Sampler<K> {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

impl<K> Shared<K> {
    /// The totals, waited for no longer than an addition takes.
    pub fn totals(&self) -> MutexGuard<'_, Totals<K>> {
        // Numbers added up are as good as they were, whoever panicked.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
