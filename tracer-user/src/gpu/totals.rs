//! What each job did to each device, added up from readings. Pure: the time comes with the readings,
//! and whose a process is comes as an argument.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    detail::Detail,
    reading::{Busy, Device, DeviceReading, ProcessReading, Reading},
};
use crate::model::{group::Group, hist::Hist, tables::GPU};

/// Readings further apart than this leave open who was on a device between them.
const MAX_GAP_NS: u64 = 5_000_000_000;
/// A state older than this is unknown: the driver has not answered since.
pub const STALE_NS: u64 = 5_000_000_000;

/// Cumulative values of each job, which `K` names, on each device that it ever was on.
///
/// Whose a process is, is settled with each reading: at the next export it may have gone.
#[derive(Debug)]
pub struct Totals<K> {
    jobs: BTreeMap<K, BTreeMap<String, Used>>,
    devices: BTreeMap<String, Seen<K>>,
    notes: Vec<(Option<String>, String)>,
}

/// A device as last seen.
#[derive(Debug)]
struct Seen<K> {
    monotonic_ns: u64,
    energy_millijoules: Option<u64>,
    ecc_uncorrected: Option<u64>,
    on_it: BTreeSet<K>,
}

/// One job's values of one device.
#[derive(Debug, Default)]
struct Used {
    /// As it was when the job first came: its tags are one series.
    device: Arc<Device>,
    busy: Option<Hist>,
    memory_busy: Option<Hist>,
    detail: Detail,
    power: Option<Hist>,
    clock: Option<Hist>,
    energy_millijoules: Option<u64>,
    memory_peak_bytes: Option<u64>,
    temperature_celsius: Option<u64>,
    shared: u64,
    /// When the job was last on it, and how.
    seen_ns: u64,
    memory_used_bytes: Option<u64>,
    processes: u64,
}

/// One job's part in one reading of one device.
#[derive(Default)]
struct Part {
    processes: u64,
    memory_bytes: Option<u64>,
    busy: Option<Busy>,
    sm_activity_ppm: Option<u64>,
    /// A process of it does not tell how busy or how large it is: neither is then known of the job.
    is_memory_unknown: bool,
    is_busy_unknown: bool,
}

impl<K> Default for Totals<K> {
    fn default() -> Self {
        Self { jobs: BTreeMap::new(), devices: BTreeMap::new(), notes: Vec::new() }
    }
}

impl<K: Ord + Clone> Totals<K> {
    /// Adds a reading; `owner` tells whose a process is. Readings come in the order of their times.
    pub fn add(&mut self, reading: &Reading, owner: impl Fn(&ProcessReading) -> Option<K>) {
        for device in &reading.devices {
            self.add_device(reading.monotonic_ns, device, &owner);
        }
    }

    fn add_device(
        &mut self,
        now_ns: u64,
        read: &DeviceReading,
        owner: impl Fn(&ProcessReading) -> Option<K>,
    ) {
        let mut parts: BTreeMap<K, Part> = BTreeMap::new();
        let mut others = false;
        for process in &read.processes {
            match owner(process) {
                Some(job) => parts.entry(job).or_default().add(process),
                None => others = true,
            }
        }
        let shared = others || parts.len() > 1;
        let seen = self.devices.get(&read.device.uuid);
        let energy = seen.and_then(|seen| {
            // A counter that fell began anew with its driver.
            read.energy_millijoules?.checked_sub(seen.energy_millijoules?)
        });
        let since_ns = seen.map(|seen| now_ns.saturating_sub(seen.monotonic_ns));
        let since_ns = since_ns.filter(|since_ns| *since_ns <= MAX_GAP_NS);
        let near = since_ns.is_some();
        let ecc = seen.and_then(|seen| read.ecc_uncorrected?.checked_sub(seen.ecc_uncorrected?));
        for (job, part) in &parts {
            let devices = self.jobs.entry(job.clone()).or_default();
            let used = devices.entry(read.device.uuid.clone()).or_insert_with(|| Used {
                device: Arc::clone(&read.device),
                energy_millijoules: read.energy_millijoules.map(|_| 0),
                ..Used::default()
            });
            let was_on_it = seen.is_some_and(|seen| seen.on_it.contains(job));
            used.add(now_ns, read, part, shared, energy.filter(|_| near || was_on_it));
            used.detail.add(read, part.sm_activity_ppm, shared, since_ns.unwrap_or(0));
            used.detail.add_errors(ecc, read.xids.as_deref());
        }
        // An error often ends the process that met it: it is also theirs who have just left.
        for job in seen.iter().flat_map(|seen| &seen.on_it).filter(|job| !parts.contains_key(job)) {
            let devices = self.jobs.get_mut(job);
            if let Some(used) = devices.and_then(|used| used.get_mut(&read.device.uuid)) {
                used.detail.add_errors(ecc, read.xids.as_deref());
            }
        }
        let DeviceReading { energy_millijoules, ecc_uncorrected, .. } = *read;
        let on_it = parts.into_keys().collect();
        let seen = Seen { monotonic_ns: now_ns, energy_millijoules, ecc_uncorrected, on_it };
        self.devices.insert(read.device.uuid.clone(), seen);
    }

    /// The groups of `job`, cumulative, one for each device it ever was on. A state is known only while
    /// the job is on the device and the driver answers: `now_ns` is CLOCK_MONOTONIC.
    pub fn groups_for(&self, job: &K, now_ns: u64) -> Vec<Group> {
        let devices = self.jobs.get(job).into_iter().flatten();
        devices
            .map(|(uuid, used)| {
                let seen_ns = self.devices.get(uuid).map(|seen| seen.monotonic_ns);
                let is_fresh = now_ns.saturating_sub(used.seen_ns) <= STALE_NS;
                used.group(seen_ns == Some(used.seen_ns) && is_fresh)
            })
            .collect()
    }

    /// Forgets a job that has ended.
    pub fn forget(&mut self, job: &K) {
        self.jobs.remove(job);
    }

    /// Keeps what must be said, once: of one device, by its uuid, or of all.
    pub fn note(&mut self, uuid: Option<&str>, text: String) {
        let note = (uuid.map(str::to_owned), text);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What must be said to the owner of `job`: of all GPUs, and of those that it was on.
    pub fn notes_for(&self, job: &K) -> Vec<String> {
        let devices = self.jobs.get(job);
        let concerns = |uuid: &Option<String>| match uuid {
            None => true,
            Some(uuid) => devices.is_some_and(|devices| devices.contains_key(uuid)),
        };
        let notes = self.notes.iter().filter(|(uuid, _)| concerns(uuid));
        notes.map(|(_, text)| text.clone()).collect()
    }

    /// What must be said of the node, all of it, in its order.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(|(_, text)| text.as_str())
    }
}

impl Part {
    fn add(&mut self, process: &ProcessReading) {
        self.processes += 1;
        match process.memory_bytes {
            Some(bytes) => *self.memory_bytes.get_or_insert(0) += bytes,
            None => self.is_memory_unknown = true,
        }
        match process.busy {
            Some(busy) => {
                let sum = self.busy.get_or_insert_default();
                sum.sm_ppm = (sum.sm_ppm + busy.sm_ppm).min(1_000_000);
                sum.memory_ppm = match (sum.memory_ppm, busy.memory_ppm) {
                    (Some(sum), Some(more)) => Some((sum + more).min(1_000_000)),
                    (sum, more) => sum.or(more),
                };
            }
            None => self.is_busy_unknown = true,
        }
        if let Some(ppm) = process.sm_activity_ppm {
            let sum = self.sm_activity_ppm.get_or_insert(0);
            *sum = (*sum + ppm).min(1_000_000);
        }
    }
}

impl Used {
    fn add(
        &mut self,
        now_ns: u64,
        read: &DeviceReading,
        part: &Part,
        shared: bool,
        energy: Option<u64>,
    ) {
        let own_memory = part.memory_bytes.filter(|_| !part.is_memory_unknown);
        let own_busy = part.busy.filter(|_| !part.is_busy_unknown);
        // Of a device that others are on too, only what its processes tell is the job's.
        let (memory, busy) = match shared {
            true => (own_memory, own_busy),
            false => (own_memory.or(read.memory_used_bytes), read.busy.or(own_busy)),
        };
        if let Some(Busy { sm_ppm, memory_ppm }) = busy {
            record(&mut self.busy, Some(sm_ppm));
            record(&mut self.memory_busy, memory_ppm);
        }
        record(&mut self.power, read.power_milliwatts);
        record(&mut self.clock, read.sm_clock_hz);
        if let Some(energy) = energy {
            *self.energy_millijoules.get_or_insert(0) += energy;
        }
        self.memory_peak_bytes = self.memory_peak_bytes.max(memory);
        self.temperature_celsius = self.temperature_celsius.max(read.temperature_celsius);
        self.shared += u64::from(shared);
        self.seen_ns = now_ns;
        self.memory_used_bytes = memory;
        self.processes = part.processes;
    }

    fn group(&self, is_current: bool) -> Group {
        let device = &self.device;
        let Device { uuid, model, vendor, parent, .. } = &**device;
        let texts = [&device.number(), uuid, model, vendor, parent];
        let mut group = Group::unknown(&GPU, texts.map(String::clone).into());
        let hists = [
            ("utilization_ratio", &self.busy),
            ("memory_utilization_ratio", &self.memory_busy),
            ("power_watts", &self.power),
            ("sm_clock_hz", &self.clock),
        ];
        for (name, hist) in hists {
            if let Some(hist) = hist {
                group.set_hist(name, hist.clone());
            }
        }
        self.detail.fill(&mut group);
        group.set("memory_used_bytes", self.memory_used_bytes.filter(|_| is_current));
        group.set("processes", is_current.then_some(self.processes));
        group.set("memory_peak_bytes", self.memory_peak_bytes);
        group.set("memory_total_bytes", device.memory_total_bytes);
        group.set("energy_joules", self.energy_millijoules);
        group.set("temperature_max_celsius", self.temperature_celsius);
        group.set("readings_shared", self.shared);
        group
    }
}

/// Adds `value` to `hist`, where it is known.
pub(super) fn record(hist: &mut Option<Hist>, value: Option<u64>) {
    if let Some(value) = value {
        hist.get_or_insert_default().record(value);
    }
}

#[cfg(test)]
mod tests;
