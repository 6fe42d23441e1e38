//! Activity by the counters in the hardware (GPM, from Hopper on): the difference of two samples.

use std::time::Instant;

use nvml_wrapper::{
    Device, GpmSample, enums::gpm::GpmMetricId as Id, error::NvmlError, gpm::gpm_metrics_get,
};

use crate::gpu::reading::{Activity, Traffic};

const METRICS: [Id; 11] = [
    Id::SmUtil,
    Id::AnyTensorUtil,
    Id::DramBwUtil,
    Id::SmOccupancy,
    Id::Fp64Util,
    Id::Fp32Util,
    Id::Fp16Util,
    Id::PcieTxPerSec,
    Id::PcieRxPerSec,
    Id::NvlinkTotalTxPerSec,
    Id::NvlinkTotalRxPerSec,
];
/// nvml.h gives traffic in MiB per second.
const MIB: f64 = 1_048_576.0;

/// The newest sample of a device or a GPU instance, and when it was taken.
#[derive(Default)]
pub struct Gpm(Option<(GpmSample<'static>, Instant)>);

impl Gpm {
    /// Activity and traffic since the last call; the first knows none. `instance` is the id of a GPU instance
    /// of `device`.
    ///
    /// # Errors
    /// As the library answers.
    pub fn read(
        &mut self,
        device: &Device<'static>,
        instance: Option<u32>,
    ) -> Result<(Activity, Traffic), NvmlError> {
        let nvml = device.nvml();
        if self.0.is_none() {
            // Dropping a sample calls it, whether it is there or not.
            let can_free = nvml.lib().nvmlGpmSampleFree.is_ok();
            if !can_free || !device.gpm_support()? {
                return Err(NvmlError::NotSupported);
            }
        }
        let new = match instance {
            None => device.gpm_sample()?,
            Some(id) => device.gpm_mig_sample(id)?,
        };
        let now = Instant::now();
        let (Some((old, at)), Some((new, _))) = (self.0.replace((new, now)), &self.0) else {
            return Ok(<(Activity, Traffic)>::default());
        };
        let metrics = gpm_metrics_get(nvml, &old, new, &METRICS)?;
        // One that this device does not count is missing by itself.
        let value = |id: Id| {
            let at = METRICS.iter().position(|metric| *metric == id)?;
            Some(metrics.get(at)?.as_ref().ok()?.value)
        };
        let share = |id| value(id).and_then(ppm);
        let seconds = now.duration_since(at).as_secs_f64();
        let bytes = |id| value(id).and_then(|mib| bytes(mib * seconds));
        let activity = Activity {
            sm_ppm: share(Id::SmUtil),
            tensor_ppm: share(Id::AnyTensorUtil),
            dram_ppm: share(Id::DramBwUtil),
            occupancy_ppm: share(Id::SmOccupancy),
            fp64_ppm: share(Id::Fp64Util),
            fp32_ppm: share(Id::Fp32Util),
            fp16_ppm: share(Id::Fp16Util),
        };
        let traffic = Traffic {
            pcie_sent_bytes: bytes(Id::PcieTxPerSec),
            pcie_received_bytes: bytes(Id::PcieRxPerSec),
            nvlink_sent_bytes: bytes(Id::NvlinkTotalTxPerSec),
            nvlink_received_bytes: bytes(Id::NvlinkTotalRxPerSec),
        };
        Ok((activity, traffic))
    }
}

/// Mebibytes as bytes; `None` where it is no number of them.
fn bytes(mib: f64) -> Option<u64> {
    // More than any link moves in an hour is garbage.
    (0.0..1e12).contains(&mib).then(|| (mib * MIB).round() as u64)
}

/// A percentage as a share; `None` where it is no number.
fn ppm(percent: f64) -> Option<u64> {
    percent.is_finite().then(|| (percent.clamp(0.0, 100.0) * 1e4).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_of_any_kind() {
        for (percent, expected) in [
            (0.0, Some(0)),
            (33.3333, Some(333_333)),
            (100.0, Some(1_000_000)),
            (100.7, Some(1_000_000)),
            (-1.0, Some(0)),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(ppm(percent), expected, "{percent}");
        }
    }

    #[test]
    fn traffic_of_any_kind() {
        for (mib, expected) in [
            (0.0, Some(0)),
            (1.5, Some(1_572_864)),
            (-1.0, None),
            (f64::NAN, None),
            (f64::MAX, None),
        ] {
            assert_eq!(bytes(mib), expected, "{mib}");
        }
    }
}
