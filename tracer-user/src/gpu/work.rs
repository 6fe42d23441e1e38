//! The thread that asks the driver: opens the library, reads period by period, and opens it anew for the
//! sake of a device that was lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use nvml_wrapper::{Nvml, error::NvmlError};
use rustix::time::{ClockId, clock_gettime};

use super::{
    failure::is_absent,
    nvml::{Gpu, Known},
    reading::{ProcessReading, Reading},
    sampler::{Settings, Shared},
};
use crate::clock::monotonic_ns;

/// Longest time until a lost device is looked for again.
const MAX_BACK_OFF: Duration = Duration::from_secs(300);
/// Readings without a loss after which the next one is the first again.
const WELL: u32 = 60;

/// What the thread does.
pub(super) struct Work<K, F> {
    pub shared: Arc<Shared<K>>,
    pub settings: Settings,
    pub owner: F,
}

/// Why a library is closed.
enum Closed {
    Stopped,
    Lost { was_well: bool },
}

impl<K: Ord + Clone, F: Fn(&ProcessReading) -> Option<K>> Work<K, F> {
    /// Samples until it is stopped, or for want of a driver.
    pub fn run(&self) {
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
                    self.failed(1);
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
                Err(NvmlError::NoPermission) => {}
                Err(error) => {
                    let text = format!("GPU {index} could not be opened ({error})");
                    self.failed(1);
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
                return Closed::Lost { was_well: readings >= WELL };
            }
            let before = gpus.len();
            self.read(&mut gpus, known);
            self.failed((before - gpus.len()) as u64);
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
        drop(totals);
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu_ns = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32).as_nanos() as u64;
        self.shared.cpu_ns.store(cpu_ns, Ordering::Relaxed);
        self.shared.readings.fetch_add(1, Ordering::Relaxed);
        self.shared.came.notify_one();
    }

    fn failed(&self, count: u64) {
        self.shared.failures.fetch_add(count, Ordering::Relaxed);
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
