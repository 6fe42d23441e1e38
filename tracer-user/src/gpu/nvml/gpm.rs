//! Activity by the counters in the hardware (GPM, from Hopper on): the difference of two samples.

use nvml_wrapper::{
    Device, GpmSample, enums::gpm::GpmMetricId, error::NvmlError, gpm::gpm_metrics_get,
};

use crate::gpu::reading::Activity;

const METRICS: [GpmMetricId; 3] =
    [GpmMetricId::SmUtil, GpmMetricId::AnyTensorUtil, GpmMetricId::DramBwUtil];

/// The newest sample of a device or a GPU instance.
#[derive(Default)]
pub struct Gpm(Option<GpmSample<'static>>);

impl Gpm {
    /// Activity since the last call; the first knows none. `instance` is the id of a GPU instance of `device`.
    ///
    /// # Errors
    /// As the library answers.
    pub fn read(
        &mut self,
        device: &Device<'static>,
        instance: Option<u32>,
    ) -> Result<Activity, NvmlError> {
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
        let Some(old) = self.0.replace(new) else { return Ok(Activity::default()) };
        let Some(new) = &self.0 else { return Ok(Activity::default()) };
        let metrics = gpm_metrics_get(nvml, &old, new, &METRICS)?;
        let [sm_ppm, tensor_ppm, dram_ppm] = [0, 1, 2].map(|metric| {
            // One that this device does not count is missing by itself.
            metrics.get(metric).and_then(|result| ppm(result.as_ref().ok()?.value))
        });
        Ok(Activity { sm_ppm, tensor_ppm, dram_ppm })
    }
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
}
