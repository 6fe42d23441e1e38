//! The sampling as its users see it. Nobody waits for the driver: what was read last stands until it
//! answers again, and a state that is too old is unknown.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, Thread},
    time::Duration,
};

use super::{
    claim::{Claims, Holder},
    reading::ProcessReading,
    shared::{SamplerSettings, Shared},
    totals::{SLOW, STALE_NS},
    work::{Asking, Work},
};
use crate::model::group::Group;

/// How long the end waits for a call that is under way: exiting under it may crash the library.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a sampler waits for the one before it to let go of the driver: what a driver takes to wake its
/// devices. One that hangs for longer would hang for the next one too.
const GOING: Duration = Duration::from_secs(30);

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

/// Samples until it is dropped, and then lets go of the driver. `K` names a job.
pub struct Sampler<K> {
    shared: Arc<Shared<K>>,
    thread: Thread,
    ended: Receiver<()>,
}

/// A sampler that may still be in a call of the driver's.
pub struct Ending(Receiver<()>);

impl Ending {
    /// Waits until it has let go of the driver, or for 30 s.
    fn wait(&self) {
        // Its thread may be gone without a word.
        let _ = self.0.recv_timeout(GOING);
    }
}

impl<K: Holder + Send + 'static> Sampler<K> {
    /// Starts the thread. `owner` tells whose a process is; it is called with each process of each reading,
    /// under the lock that [`Self::groups_for`] takes, so it must not block.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(
        settings: SamplerSettings,
        owner: impl Fn(&ProcessReading) -> Option<K> + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_after(None, settings, owner)
    }

    /// The same, once the sampler before it has let go of the driver: only an opening that is the first
    /// initialises it, and finds again what was lost. Its thread waits, and no caller.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_after(
        before: Option<Ending>,
        settings: SamplerSettings,
        owner: impl Fn(&ProcessReading) -> Option<K> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (end, ended) = sync_channel(1);
        let work = Work { shared: Arc::clone(&shared), settings, owner, read_ns: Cell::new(None) };
        let thread = thread::Builder::new().name("gpu".into()).spawn(move || {
            // Even where this one is to end meanwhile: the next waits for it, and so for the one before.
            if let Some(before) = before {
                let _asking = Asking::begin(&work.shared);
                before.wait();
            }
            work.run();
            // Nobody may be left to hear it.
            let _ = end.send(());
        })?;
        Ok(Self { shared, thread: thread.thread().clone(), ended })
    }

    /// Ends the sampling without waiting for a call of the driver's.
    pub fn end(mut self) -> Ending {
        self.stop();
        // Its own end has nothing left to wait for.
        Ending(std::mem::replace(&mut self.ended, sync_channel(0).1))
    }

    /// Ends the sampling with the process: what the kernel cleans up anyway need not take its time.
    pub fn exit(self) {
        self.shared.is_exit.store(true, Ordering::Release);
    }

    /// Waits for the next reading, or one that came since the last call: [`Self::look`] is due then. One
    /// caller at a time; it may stop waiting.
    pub async fn reading(&self) {
        self.shared.came.notified().await;
    }

    /// As [`Totals::watched`](super::Totals::watched).
    pub fn watched(&self) -> Vec<K> {
        self.shared.totals().watched()
    }

    /// As [`Totals::look`](super::Totals::look).
    pub fn look(&self, job: &K, now_ns: u64, groups: Option<&[Group]>) {
        self.shared.totals().look(job, now_ns, groups);
    }

    /// As [`Totals::settle`](super::Totals::settle).
    pub fn settle(&self, job: &K) {
        self.shared.totals().settle(job);
    }

    /// As [`Totals::claim`](super::Totals::claim).
    pub fn claim(&self, claims: BTreeMap<K, Claims>) {
        self.shared.totals().claim(claims);
    }

    /// What it took so far.
    pub fn cost(&self) -> SamplerCost {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Shared { cpu_ns, readings, failures, .. } = &*self.shared;
        SamplerCost { cpu_ns: load(cpu_ns), readings: load(readings), failures: load(failures) }
    }

    /// As [`Totals::groups_for`](super::Totals::groups_for).
    pub fn groups_for(&self, job: &K, now_ns: u64) -> Vec<Group> {
        let mut totals = self.shared.totals();
        let since_ns = self.shared.asking_since_ns.load(Ordering::Relaxed);
        if since_ns != 0 && now_ns.saturating_sub(since_ns) > STALE_NS {
            totals.note(None, SLOW.into());
        }
        totals.groups_for(job, now_ns)
    }

    /// As [`Totals::notes_for`](super::Totals::notes_for).
    pub fn notes_for(&self, job: &K) -> Vec<String> {
        self.shared.totals().notes_for(job)
    }

    /// All notes so far, in their order, of the whole node.
    pub fn notes(&self) -> Vec<String> {
        self.shared.totals().notes().map(str::to_owned).collect()
    }

    /// As [`Totals::forget`](super::Totals::forget).
    pub fn forget(&self, job: &K) {
        self.shared.totals().forget(job);
    }

    /// Whether the thread still looks for GPUs: not, where there are none and it was not to look again.
    pub fn is_running(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

impl<K> Sampler<K> {
    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl<K> Drop for Sampler<K> {
    fn drop(&mut self) {
        self.stop();
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}
