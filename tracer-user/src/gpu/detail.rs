//! What only some devices tell, one job's: activity of their parts, the memory's clock, throttling and
//! errors. Pure.

use super::reading::{Activity, DeviceReading, Throttled};
use crate::model::{group::Group, hist::Hist, tables::Gpu};

/// The code for a channel that is torn down: one each, after another error or where a process was killed.
const CLEANUP: u64 = 45;

/// One job's values of one device, cumulative.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    sm: Option<Hist>,
    tensor: Option<Hist>,
    dram: Option<Hist>,
    memory_clock: Option<Hist>,
    throttled: Option<ThrottledNs>,
    ecc_uncorrected: Option<u64>,
    xid_errors: Option<u64>,
    xid_cleanups: Option<u64>,
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

impl Detail {
    /// Adds a reading of a device that the job is on, the last one of which is `since_ns` ago. Activity is
    /// the device's; where others are on it too, the job's own where that is told, `own_sm_ppm`.
    pub fn add(
        &mut self,
        read: &DeviceReading,
        own_sm_ppm: Option<u64>,
        shared: bool,
        since_ns: u64,
    ) {
        let activity = if shared { Activity::default() } else { read.activity };
        record(&mut self.sm, own_sm_ppm.or(activity.sm_ppm));
        record(&mut self.tensor, activity.tensor_ppm);
        record(&mut self.dram, activity.dram_ppm);
        record(&mut self.memory_clock, read.memory_clock_hz);
        if let Some(Throttled { power, thermal, other }) = read.throttled {
            let ns = self.throttled.get_or_insert_default();
            ns.power += since_ns * u64::from(power);
            ns.thermal += since_ns * u64::from(thermal);
            ns.other += since_ns * u64::from(other);
        }
        if read.ecc_uncorrected.is_some() {
            self.ecc_uncorrected.get_or_insert(0);
        }
    }

    /// Adds what was reported since the last reading.
    pub fn add_errors(&mut self, ecc_uncorrected: Option<u64>, xids: Option<&[u64]>) {
        if let Some(count) = ecc_uncorrected {
            *self.ecc_uncorrected.get_or_insert(0) += count;
        }
        if let Some(xids) = xids {
            let errors = || xids.iter().copied().filter(|code| *code != CLEANUP);
            let count = errors().count() as u64;
            *self.xid_errors.get_or_insert(0) += count;
            *self.xid_cleanups.get_or_insert(0) += xids.len() as u64 - count;
            self.xid_first = self.xid_first.or(errors().next());
            self.xid_last = errors().next_back().or(self.xid_last);
        }
    }

    /// Sets the known ones of its fields.
    pub fn fill(&self, group: &mut Group) {
        group.set_hist(Gpu::sm_activity_ratio, self.sm.clone());
        group.set_hist(Gpu::tensor_activity_ratio, self.tensor.clone());
        group.set_hist(Gpu::dram_activity_ratio, self.dram.clone());
        group.set_hist(Gpu::memory_clock_hz, self.memory_clock.clone());
        group.set(Gpu::throttled_power_ns, self.throttled.map(|ns| ns.power));
        group.set(Gpu::throttled_thermal_ns, self.throttled.map(|ns| ns.thermal));
        group.set(Gpu::throttled_other_ns, self.throttled.map(|ns| ns.other));
        group.set(Gpu::ecc_uncorrected_errors, self.ecc_uncorrected);
        group.set(Gpu::xid_errors, self.xid_errors);
        group.set(Gpu::xid_cleanups, self.xid_cleanups);
        group.set(Gpu::xid_first, self.xid_first);
        group.set(Gpu::xid_last, self.xid_last);
    }
}

/// Adds `value` to `hist`, where it is known.
pub fn record(hist: &mut Option<Hist>, value: Option<u64>) {
    if let Some(value) = value {
        hist.get_or_insert_default().record(value);
    }
}
