//! What only some devices tell, one job's: activity of their parts, traffic, throttling, sensors and errors.
//! Pure.

use std::collections::BTreeMap;

use super::{
    reading::{Activity, Counters, Device, DeviceReading, Throttled},
    used::Share,
};
use crate::model::{
    group::Group,
    hist::Hist,
    tables::{Gpu, XID, Xid},
};

/// The code for a channel that is torn down: one each, after another error or where a process was killed.
const CLEANUP: u64 = 45;

/// One job's values of one device, cumulative.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    sm: Option<Hist>,
    tensor: Option<Hist>,
    dram: Option<Hist>,
    occupancy: Option<Hist>,
    /// By the size of the numbers: 64, 32, 16 bits.
    fp: [Option<Hist>; 3],
    encoder: Option<Hist>,
    decoder: Option<Hist>,
    memory_clock: Option<Hist>,
    throttled: Option<ThrottledNs>,
    /// PCIe and NVLink, sent and received.
    traffic_bytes: [Option<u64>; 4],
    memory_celsius: Option<u64>,
    power_limit_milliwatts: Option<u64>,
    remapped_rows: Option<u64>,
    errors: Errors,
    /// How many by code, where they are told.
    xids: Option<BTreeMap<u64, u64>>,
    xid_first: Option<u64>,
    xid_last: Option<u64>,
}

/// Nanoseconds by what held the clocks down.
#[derive(Clone, Copy, Debug, Default)]
struct ThrottledNs {
    power: u64,
    thermal: u64,
    other: u64,
}

/// Errors while the job had the device, or in the second after.
#[derive(Clone, Copy, Debug, Default)]
struct Errors {
    ecc_uncorrected: Option<u64>,
    ecc_corrected: Option<u64>,
    pcie_replays: Option<u64>,
    nvlink: Option<u64>,
}

impl Detail {
    /// Adds a reading of a device that the job is on. `grown` is what it counted since the last one.
    pub fn add(&mut self, read: &DeviceReading, grown: &Counters, share: &Share) {
        let &Share { part, is_shared, span_ns: since_ns, periods, .. } = share;
        // Activity is the device's; where others are on it too, the job's own where that is told.
        let activity = if is_shared { Activity::default() } else { read.activity };
        record(&mut self.sm, part.sm_activity_ppm.or(activity.sm_ppm), periods);
        record(&mut self.tensor, activity.tensor_ppm, periods);
        record(&mut self.dram, activity.dram_ppm, periods);
        record(&mut self.occupancy, activity.occupancy_ppm, periods);
        let fp = [activity.fp64_ppm, activity.fp32_ppm, activity.fp16_ppm];
        self.fp.iter_mut().zip(fp).for_each(|(hist, ppm)| record(hist, ppm, periods));
        record(&mut self.encoder, read.encoder_ppm.filter(|_| !is_shared), 1);
        record(&mut self.decoder, read.decoder_ppm.filter(|_| !is_shared), 1);
        record(&mut self.memory_clock, read.memory_clock_hz, 1);
        self.throttle(read.throttled, grown, since_ns);
        let traffic = read.traffic;
        let moved = [
            traffic.pcie_sent_bytes.or(grown.pcie_sent_bytes),
            traffic.pcie_received_bytes.or(grown.pcie_received_bytes),
            traffic.nvlink_sent_bytes,
            traffic.nvlink_received_bytes,
        ];
        if since_ns > 0 {
            self.traffic_bytes.iter_mut().zip(moved).for_each(|(sum, bytes)| count(sum, bytes));
        }
        self.memory_celsius = self.memory_celsius.max(read.memory_temperature_celsius);
        self.power_limit_milliwatts = read.power_limit_milliwatts.or(self.power_limit_milliwatts);
        self.remapped_rows = read.remapped_rows.or(self.remapped_rows);
        let none = |told: Option<u64>| told.map(|_| 0);
        count(&mut self.errors.ecc_uncorrected, none(read.counters.ecc_uncorrected));
        count(&mut self.errors.ecc_corrected, none(read.counters.ecc_corrected));
        count(&mut self.errors.pcie_replays, none(read.counters.pcie_replays));
        count(&mut self.errors.nvlink, none(read.counters.nvlink_errors));
    }

    /// By the driver's counters where they move, else what held the clocks down now did so all the time.
    fn throttle(&mut self, now: Option<Throttled>, grown: &Counters, since_ns: u64) {
        // Where several reasons held, the longest time is that of them all.
        let longest = |reasons: &[Option<u64>]| reasons.iter().copied().max().flatten();
        let by_counter = [
            longest(&grown.throttled_power_ns),
            longest(&grown.throttled_thermal_ns),
            grown.throttled_other_ns,
        ];
        if now.is_none() && by_counter == [None; 3] {
            return;
        }
        let now = now.unwrap_or_default();
        let ns = self.throttled.get_or_insert_default();
        let families = [
            (&mut ns.power, now.power),
            (&mut ns.thermal, now.thermal),
            (&mut ns.other, now.other),
        ];
        for ((sum, is_now), counted_ns) in families.into_iter().zip(by_counter) {
            *sum +=
                counted_ns.map_or(since_ns * u64::from(is_now), |counted| counted.min(since_ns));
        }
    }

    /// Adds what was reported since the last reading.
    pub fn add_errors(&mut self, grown: &Counters, xids: Option<&[u64]>) {
        count(&mut self.errors.ecc_uncorrected, grown.ecc_uncorrected);
        count(&mut self.errors.ecc_corrected, grown.ecc_corrected);
        count(&mut self.errors.pcie_replays, grown.pcie_replays);
        count(&mut self.errors.nvlink, grown.nvlink_errors);
        if let Some(xids) = xids {
            let by_code = self.xids.get_or_insert_default();
            xids.iter().for_each(|code| *by_code.entry(*code).or_default() += 1);
            let errors = || xids.iter().copied().filter(|code| *code != CLEANUP);
            self.xid_first = self.xid_first.or(errors().next());
            self.xid_last = errors().next_back().or(self.xid_last);
        }
    }

    /// Sets the known ones of its fields.
    pub fn fill(&self, group: &mut Group) {
        group.set_hist(Gpu::sm_activity_ratio, self.sm.clone());
        group.set_hist(Gpu::tensor_activity_ratio, self.tensor.clone());
        group.set_hist(Gpu::dram_activity_ratio, self.dram.clone());
        group.set_hist(Gpu::sm_occupancy_ratio, self.occupancy.clone());
        let [fp64, fp32, fp16] = self.fp.clone();
        group.set_hist(Gpu::fp64_activity_ratio, fp64);
        group.set_hist(Gpu::fp32_activity_ratio, fp32);
        group.set_hist(Gpu::fp16_activity_ratio, fp16);
        group.set_hist(Gpu::encoder_ratio, self.encoder.clone());
        group.set_hist(Gpu::decoder_ratio, self.decoder.clone());
        group.set_hist(Gpu::memory_clock_hz, self.memory_clock.clone());
        group.set(Gpu::throttled_power_ns, self.throttled.map(|ns| ns.power));
        group.set(Gpu::throttled_thermal_ns, self.throttled.map(|ns| ns.thermal));
        group.set(Gpu::throttled_other_ns, self.throttled.map(|ns| ns.other));
        let [pcie_sent, pcie_received, nvlink_sent, nvlink_received] = self.traffic_bytes;
        group.set(Gpu::pcie_sent_bytes, pcie_sent);
        group.set(Gpu::pcie_received_bytes, pcie_received);
        group.set(Gpu::nvlink_sent_bytes, nvlink_sent);
        group.set(Gpu::nvlink_received_bytes, nvlink_received);
        group.set(Gpu::memory_temperature_max_celsius, self.memory_celsius);
        group.set(Gpu::power_limit_watts, self.power_limit_milliwatts);
        group.set(Gpu::remapped_rows, self.remapped_rows);
        group.set(Gpu::ecc_uncorrected_errors, self.errors.ecc_uncorrected);
        group.set(Gpu::ecc_corrected_errors, self.errors.ecc_corrected);
        group.set(Gpu::pcie_replays, self.errors.pcie_replays);
        group.set(Gpu::nvlink_errors, self.errors.nvlink);
        let xids = |is_meant: fn(u64) -> bool| {
            let meant = self.xids.as_ref()?.iter().filter(|(code, _)| is_meant(**code));
            Some(meant.map(|(_, errors)| errors).sum::<u64>())
        };
        group.set(Gpu::xid_errors, xids(|code| code != CLEANUP));
        group.set(Gpu::xid_cleanups, xids(|code| code == CLEANUP));
        group.set(Gpu::xid_first, self.xid_first);
        group.set(Gpu::xid_last, self.xid_last);
    }

    /// A group for each code of XID errors of `device` that there were.
    pub fn xids(&self, device: &Device) -> impl Iterator<Item = Group> {
        self.xids.iter().flatten().map(|(code, errors)| {
            let tags = [device.number(), device.uuid.clone(), code.to_string()];
            let mut group = Group::unknown(&XID, tags.into());
            group.set(Xid::errors, *errors);
            group
        })
    }
}

/// Adds `more` to `sum`, where it is known.
fn count(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// Adds `value` to `hist`, where it is known, so many times.
pub fn record(hist: &mut Option<Hist>, value: Option<u64>, times: u64) {
    if let Some(value) = value {
        hist.get_or_insert_default().record_times(value, times);
    }
}
