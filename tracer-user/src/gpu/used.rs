//! What one job did to one device, added up over readings, and its part in one of them. Pure.

use std::sync::Arc;

use super::{
    detail::{Detail, record},
    idle::Idle,
    reading::{Busy, Device, DeviceReading, ProcessReading},
};
use crate::model::{
    group::Group,
    hist::Hist,
    tables::{GPU, Gpu},
};

/// One job's values of one device.
#[derive(Debug, Default)]
pub struct Used {
    /// As it was when the job first came: its tags are one series.
    pub device: Arc<Device>,
    busy: Option<Hist>,
    memory_busy: Option<Hist>,
    pub detail: Detail,
    power: Option<Hist>,
    clock: Option<Hist>,
    energy_millijoules: Option<u64>,
    memory_peak_bytes: Option<u64>,
    temperature_celsius: Option<u64>,
    shared: u64,
    held_ns: u64,
    used_ns: u64,
    pub idle: Idle,
    /// When the job last had it, and how.
    pub seen_ns: u64,
    memory_used_bytes: Option<u64>,
    processes: u64,
}

/// One job's part in one reading of one device.
#[derive(Default)]
pub struct JobPart {
    pub processes: u64,
    /// A process of it is more than an idle display server.
    pub is_working: bool,
    memory_bytes: Option<u64>,
    busy: Option<Busy>,
    pub sm_activity_ppm: Option<u64>,
    /// A process of it does not tell how busy or how large it is: neither is then known of the job.
    is_memory_unknown: bool,
    is_busy_unknown: bool,
}

/// One job's part in one reading, as [`Used`] counts it.
pub struct Share<'a> {
    pub part: &'a JobPart,
    /// Others are on the device too, or instead.
    pub is_shared: bool,
    pub is_used: bool,
    /// Since the reading before; zero where that was long ago.
    pub span_ns: u64,
    /// How often values count that are means over that time: a reading that comes late stands for more of it.
    pub periods: u64,
    pub energy: Option<u64>,
}

impl JobPart {
    /// Of a job without a process on the device. Where nobody could tell how busy it would keep it, nothing is known of
    /// the time in which it did not either: else that would be told as its share of all its time.
    pub fn none(is_busy_told: bool) -> Self {
        let busy = is_busy_told.then_some(Busy { sm_ppm: 0, memory_ppm: Some(0) });
        Self { memory_bytes: Some(0), busy, ..Self::default() }
    }

    /// Adds a process of the job.
    pub fn add(&mut self, process: &ProcessReading) {
        self.processes += 1;
        self.is_working |= !process.is_idle_display();
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
    /// Nothing yet of the device that was read; what it does not tell stays unknown.
    pub fn new(read: &DeviceReading) -> Self {
        let energy_millijoules = read.energy_millijoules.map(|_| 0);
        Self { device: Arc::clone(&read.device), energy_millijoules, ..Self::default() }
    }

    /// Adds a reading, and gives how busy the job kept the device in it.
    pub fn add(&mut self, now_ns: u64, read: &DeviceReading, share: &Share) -> Option<Busy> {
        let part = share.part;
        let own_memory = part.memory_bytes.filter(|_| !part.is_memory_unknown);
        let own_busy = part.busy.filter(|_| !part.is_busy_unknown);
        // Of a device that others are on too, only what its processes tell is the job's.
        let (memory, busy) = if share.is_shared {
            (own_memory, own_busy)
        } else {
            (own_memory.or(read.memory_used_bytes), read.busy.or(own_busy))
        };
        if let Some(Busy { sm_ppm, memory_ppm }) = busy {
            record(&mut self.busy, Some(sm_ppm), share.periods);
            record(&mut self.memory_busy, memory_ppm, share.periods);
        }
        record(&mut self.power, read.power_milliwatts, 1);
        record(&mut self.clock, read.sm_clock_hz, 1);
        if let Some(energy) = share.energy {
            *self.energy_millijoules.get_or_insert(0) += energy;
        }
        self.memory_peak_bytes = self.memory_peak_bytes.max(memory);
        self.temperature_celsius = self.temperature_celsius.max(read.temperature_celsius);
        self.shared += u64::from(share.is_shared);
        self.held_ns += share.span_ns;
        self.used_ns += if share.is_used { share.span_ns } else { 0 };
        self.seen_ns = now_ns;
        self.memory_used_bytes = memory;
        self.processes = part.processes;
        busy
    }

    /// The values so far, and the errors by code; states only where they are the newest.
    pub fn groups(&self, is_current: bool) -> impl Iterator<Item = Group> {
        [self.group(is_current)].into_iter().chain(self.detail.xids(&self.device))
    }

    fn group(&self, is_current: bool) -> Group {
        let device = &self.device;
        let Device { uuid, model, vendor, parent, .. } = &**device;
        let texts = [&device.number(), uuid, model, vendor, parent];
        let mut group = Group::unknown(&GPU, texts.map(String::clone).into());
        group.set_hist(Gpu::utilization_ratio, self.busy.clone());
        group.set_hist(Gpu::memory_utilization_ratio, self.memory_busy.clone());
        group.set_hist(Gpu::power_watts, self.power.clone());
        group.set_hist(Gpu::sm_clock_hz, self.clock.clone());
        self.detail.fill(&mut group);
        group.set(Gpu::mig_gpu_instance, device.instance_ids.map(|[id, _]| id.into()));
        group.set(Gpu::mig_compute_instance, device.instance_ids.map(|[_, id]| id.into()));
        group.set(Gpu::memory_used_bytes, self.memory_used_bytes.filter(|_| is_current));
        group.set(Gpu::processes, is_current.then_some(self.processes));
        group.set(Gpu::memory_peak_bytes, self.memory_peak_bytes);
        group.set(Gpu::memory_total_bytes, device.memory_total_bytes);
        group.set(Gpu::energy_joules, self.energy_millijoules);
        group.set(Gpu::temperature_max_celsius, self.temperature_celsius);
        group.set(Gpu::readings_shared, self.shared);
        group.set(Gpu::held_ns, self.held_ns);
        group.set(Gpu::used_ns, self.used_ns);
        self.idle.tell(&mut group);
        group
    }
}
