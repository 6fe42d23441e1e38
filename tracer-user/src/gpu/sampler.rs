//! The thread that asks the driver. Nobody waits for it: what it read last stands until it reads again,
//! and a state that is too old is unknown.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, sync_channel},
    },
    thread::{self, Thread},
    time::{Duration, Instant},
};

use nvml_wrapper::Nvml;

use super::{
    failure::is_absent,
    nvml::{Gpu, Known},
    reading::{ProcessReading, Reading},
    totals::{STALE_NS, Totals},
};
use crate::{clock::monotonic_ns, model::group::Group};

/// Longest time until a lost device is looked for again.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);
/// How long the end waits for a call that is under way: exiting under it may crash the library.
const PATIENCE: Duration = Duration::from_millis(100);

/// How to sample.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Time between two readings, 2 s at most: a state older than 5 s counts as unknown. The driver's own
    /// figures are of the last 1/6 to 1 s, so less than 1 s gains little.
    pub period: Duration,
    /// The library; by default the loader's `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// Where there is no library or no driver: look again after this time, or never.
    pub retry: Option<Duration>,
    /// After a device is lost: open the library anew after this time, then after twice as long, and so on.
    pub back_off: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(1),
            library: None,
            retry: None,
            back_off: Duration::from_secs(5),
        }
    }
}

/// Samples until it is dropped. `K` names a job.
pub struct Sampler<K> {
    shared: Arc<Shared<K>>,
    thread: Thread,
    ended: Receiver<()>,
}

struct Shared<K> {
    /// Locked for the adding of a reading or the making of groups, never while the driver is asked.
    totals: Mutex<Totals<K>>,
    /// CLOCK_MONOTONIC when the reading under way began; 0 between two.
    asking_since_ns: AtomicU64,
    stop: AtomicBool,
}

impl<K: Ord + Clone + Send + 'static> Sampler<K> {
    /// Starts the thread. `owner` tells whose a process is; it is called with each process of each reading,
    /// under the lock that [`Self::groups_for`] takes, so it must not block.
    ///
    /// # Errors
    /// When there can be no further thread.
    pub fn start(
        settings: Settings,
        owner: impl Fn(&ProcessReading) -> Option<K> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            totals: Mutex::new(Totals::default()),
            asking_since_ns: AtomicU64::new(0),
            stop: AtomicBool::new(false),
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
    fn totals(&self) -> MutexGuard<'_, Totals<K>> {
        // Numbers added up are as good as they were, whoever panicked.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Work<K, F> {
    shared: Arc<Shared<K>>,
    settings: Settings,
    owner: F,
}

/// Why a library is closed.
enum Closed {
    Stopped,
    Lost { was_well: bool },
}

impl<K: Ord + Clone, F: Fn(&ProcessReading) -> Option<K>> Work<K, F> {
    fn run(&self) {
        let mut known = Known::default();
        let mut back_off = self.settings.back_off;
        while !self.is_stopped() {
            match self.open() {
                Ok(nvml) => match self.sample(&nvml, &mut known, back_off) {
                    Closed::Stopped => {
                        // The process ends: what the kernel cleans up anyway need not take its time.
                        std::mem::forget(nvml);
                        return;
                    }
                    Closed::Lost { was_well } => {
                        let next = if was_well { self.settings.back_off } else { back_off * 2 };
                        back_off = next.min(MAX_BACK_OFF);
                    }
                },
                Err(Absence::None) => match self.settings.retry {
                    Some(retry) => self.sleep_until(Instant::now() + retry),
                    None => return,
                },
                Err(Absence::Failed(text)) => {
                    self.shared.totals().note(None, text);
                    self.sleep_until(Instant::now() + back_off);
                    back_off = (back_off * 2).min(MAX_BACK_OFF);
                }
            }
        }
    }

    fn open(&self) -> Result<Nvml, Absence> {
        let asking = Asking::begin(&self.shared);
        let mut builder = Nvml::builder();
        if let Some(library) = &self.settings.library {
            builder.lib_path(library.as_os_str());
        }
        let opened = builder.init().and_then(|nvml| match nvml.device_count()? {
            0 => Ok(None),
            _ => Ok(Some(nvml)),
        });
        drop(asking);
        match opened {
            Ok(Some(nvml)) => Ok(nvml),
            Ok(None) => Err(Absence::None),
            Err(error) if is_absent(&error) => Err(Absence::None),
            Err(error) => Err(Absence::Failed(format!(
                "GPUs are unknown: NVML answers: {error} (see nvidia-smi)"
            ))),
        }
    }

    /// Reads the devices period by period. A lost one is left out, and after `back_off` the library is to
    /// be opened anew for its sake.
    fn sample(&self, nvml: &Nvml, known: &mut Known, back_off: Duration) -> Closed {
        let mut lost_at = None;
        let mut gpus = Vec::new();
        let asking = Asking::begin(&self.shared);
        for index in 0..nvml.device_count().unwrap_or(0) {
            match Gpu::open(nvml, index) {
                Ok(gpu) => gpus.push(gpu),
                // Not this caller's to see, as in a container with some of the devices.
                Err(nvml_wrapper::error::NvmlError::NoPermission) => {}
                Err(error) => {
                    let text = format!("GPU {index} could not be opened ({error})");
                    self.shared.totals().note(None, text);
                    lost_at = Some(Instant::now());
                }
            }
        }
        drop(asking);
        let mut next = Instant::now();
        let mut readings = 0_u32;
        while !self.is_stopped() {
            if lost_at.is_some_and(|at| at.elapsed() >= back_off) {
                return Closed::Lost { was_well: readings >= 60 };
            }
            let before = gpus.len();
            self.read(&mut gpus, known);
            if lost_at.is_none() {
                readings = readings.saturating_add(1);
                lost_at = (gpus.len() < before).then(Instant::now);
            }
            // Periods that a slow driver took are not made up for.
            next = (next + self.settings.period).max(Instant::now());
            self.sleep_until(next);
        }
        Closed::Stopped
    }

    /// One reading; a device that is lost is taken out of `gpus`.
    fn read(&self, gpus: &mut Vec<Gpu>, known: &mut Known) {
        let asking = Asking::begin(&self.shared);
        let mut devices = Vec::new();
        let mut notes = Vec::new();
        gpus.retain(|gpu| match gpu.read(known) {
            Ok((device, said)) => {
                devices.push(device);
                notes.extend(said.into_iter().map(|text| (gpu.uuid().to_owned(), text)));
                true
            }
            Err(error) => {
                let text = format!("{} was lost for a time ({error})", gpu.name());
                notes.push((gpu.uuid().to_owned(), text));
                false
            }
        });
        // Values are of the end of a reading that took long, not of its beginning.
        let reading = Reading { monotonic_ns: monotonic_ns(), devices };
        drop(asking);
        let mut totals = self.shared.totals();
        totals.add(&reading, &self.owner);
        for (uuid, text) in notes {
            totals.note(Some(&uuid), text);
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }

    /// Sleeps, unless stopped.
    fn sleep_until(&self, then: Instant) {
        loop {
            let left = then.saturating_duration_since(Instant::now());
            if left.is_zero() || self.is_stopped() {
                return;
            }
            thread::park_timeout(left);
        }
    }
}

enum Absence {
    /// Nothing of NVIDIA's is here.
    None,
    /// Something is, and does not work.
    Failed(String),
}

/// The driver is being asked, as long as this lives.
struct Asking<'a>(&'a AtomicU64);

impl<'a> Asking<'a> {
    fn begin<K>(shared: &'a Shared<K>) -> Self {
        shared.asking_since_ns.store(monotonic_ns(), Ordering::Relaxed);
        Self(&shared.asking_since_ns)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
