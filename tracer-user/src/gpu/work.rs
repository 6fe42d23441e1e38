//! The thread that asks the sources, period by period. One that has nothing to tell is left alone for a
//! while.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use super::{
    cards::Cards,
    claim::Holder,
    nvml::Nvidia,
    reading::{GpuReading, ProcessReading},
    shared::{SamplerSettings, Shared},
    source::{Answers, GpuSource, Presence},
    totals::{MAX_GAP_NS, SLOW},
};
use crate::base::clock::monotonic_ns;

/// What the thread does.
pub(super) struct Work<K, F> {
    pub shared: Arc<Shared<K>>,
    pub settings: SamplerSettings,
    pub owner: F,
    /// When the last reading with devices ended.
    pub read_ns: Cell<Option<u64>>,
}

/// A source, and when it is to be asked next.
struct Due {
    source: Box<dyn GpuSource>,
    at: Instant,
}

impl<K: Holder, F: Fn(&ProcessReading) -> Option<K>> Work<K, F> {
    /// Samples until it is stopped, or for want of devices.
    pub fn run(&self) {
        let mut sources = self.sources();
        let mut next = Instant::now();
        while !self.is_stopped() && !sources.is_empty() {
            self.read(&mut sources, next);
            next = next_reading(next, Instant::now(), self.settings.period);
            let first = sources.iter().map(|due| due.at).min();
            next = first.map_or(next, |first| first.max(next));
            self.sleep_until(next);
        }
        if self.shared.is_exit.load(Ordering::Acquire) {
            std::mem::forget(sources);
        }
    }

    fn sources(&self) -> Vec<Due> {
        let SamplerSettings { library, root, back_off, .. } = &self.settings;
        let nvidia = Nvidia::new(library.clone(), *back_off, &root.join("proc"));
        let sources: [Box<dyn GpuSource>; 2] = [Box::new(nvidia), Box::new(Cards::new(root))];
        let at = Instant::now();
        sources.into_iter().map(|source| Due { source, at }).collect()
    }

    /// One reading of all sources that are due at `now`; one that is not to be asked again is taken out.
    fn read(&self, sources: &mut Vec<Due>, now: Instant) {
        let began_ns = monotonic_ns();
        let asking = Asking::begin(&self.shared);
        let (mut answers, mut is_any) = (Answers::default(), false);
        sources.retain_mut(|due| {
            if due.at > now {
                return true;
            }
            match (due.source.read(&mut answers), self.settings.retry) {
                (Presence::Here, _) => {
                    is_any = true;
                    true
                }
                (Presence::Absent, Some(retry)) => {
                    due.at = Instant::now() + retry;
                    true
                }
                (Presence::Absent, None) => false,
            }
        });
        // Values are of the end of a reading that took long, not of its beginning.
        let reading = GpuReading {
            monotonic_ns: monotonic_ns(),
            period_ns: self.settings.period.as_nanos() as u64,
            devices: answers.devices,
        };
        drop(asking);
        let failures = answers.failures.len() as u64;
        let mut totals = self.shared.totals();
        totals.add(&reading, &self.owner);
        for (uuid, text) in answers.notes {
            totals.note(uuid.as_deref(), text);
        }
        for (uuid, text) in answers.failures {
            match uuid {
                Some(uuid) => totals.lose(&uuid, text),
                None => totals.note(None, text),
            }
        }
        if self.is_slow(began_ns, reading.monotonic_ns, is_any) {
            totals.note(None, SLOW.into());
        }
        drop(totals);
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu_ns = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32).as_nanos() as u64;
        self.shared.cpu_ns.store(cpu_ns, Ordering::Relaxed);
        self.shared.readings.fetch_add(u64::from(is_any), Ordering::Relaxed);
        self.shared.failures.fetch_add(failures, Ordering::Relaxed);
        self.shared.came.notify_one();
    }

    /// Whether a reading from `began_ns` to `ended_ns`, with devices or without `any`, took so long that it is too far
    /// from the one before it.
    fn is_slow(&self, began_ns: u64, ended_ns: u64, any: bool) -> bool {
        let before_ns = self.read_ns.replace(any.then_some(ended_ns));
        let took_ns = ended_ns.saturating_sub(began_ns);
        before_ns.is_some_and(|before_ns| {
            let span_ns = ended_ns.saturating_sub(before_ns);
            any && span_ns > MAX_GAP_NS && took_ns > span_ns / 2
        })
    }

    pub fn is_stopped(&self) -> bool {
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

/// When to read again after the reading that was due at `due` and ended `now`: whole periods later, and half a
/// period from now at least. Periods that a slow driver took are not made up for, since what a reading right after
/// another tells is of a moment, and counts as much as one of a whole period.
fn next_reading(due: Instant, now: Instant, period: Duration) -> Instant {
    let late = now.saturating_duration_since(due) + period / 2;
    let periods = late.as_nanos().div_ceil(period.as_nanos().max(1)).max(1);
    due + period * u32::try_from(periods).unwrap_or(u32::MAX)
}

/// The driver is being asked, or waited for, as long as this lives.
pub(super) struct Asking<'a>(&'a AtomicU64);

impl<'a> Asking<'a> {
    pub fn begin<K>(shared: &'a Shared<K>) -> Self {
        shared.asking_since_ns.store(monotonic_ns(), Ordering::Relaxed);
        Self(&shared.asking_since_ns)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_stay_on_their_grid_and_never_follow_each_other_at_once() {
        const PERIOD: Duration = Duration::from_millis(1000);
        let due = Instant::now();
        for (took_ms, next_ms) in [
            (0, 1000),
            (499, 1000),
            (500, 1000),
            (501, 2000),
            (1499, 2000),
            (1501, 3000),
            (7200, 8000),
        ] {
            let next = next_reading(due, due + Duration::from_millis(took_ms), PERIOD);
            assert_eq!(next - due, Duration::from_millis(next_ms), "after {took_ms} ms");
        }
    }
}
