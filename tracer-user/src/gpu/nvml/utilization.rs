//! How busy a device was since the last reading, by the driver's ring of samples. Its snapshot is of the last
//! 1/6 to 1 s: beside work that comes once a second it shows the same part of each turn, over and over.

use std::{ffi::c_uint, time::Instant};

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{nvmlSample_t, nvmlValue_t};

use super::{
    asker::{Asker, Value},
    cursor::Cursor,
};
use crate::gpu::reading::{Busy, ppm};

/// The driver's number for values that are unsigned.
const UNSIGNED: c_uint = 1;
/// Rings have 72 to 4,096 samples.
const MOST_SAMPLES: usize = 1 << 16;
/// The first time that much of the ring counts.
const FIRST_US: u64 = 1_000_000;

/// What a ring is of, by the driver's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ring {
    /// A kernel ran.
    Gpu = 1,
    /// Memory was read or written.
    Memory = 2,
}

/// A sample: its stamp in µs, and the percentage of the time since the one before.
type Sample = (u64, u32);

/// How much is asked of how busy a device is: a ring costs the CPU 1.4 to 2.9 ms where the device's firmware keeps it, a
/// snapshot 0.05.
#[derive(Clone, Copy)]
pub struct Asked {
    /// Somebody is on the device.
    pub is_held: bool,
    /// Of its memory no more than the snapshot: counters in the hardware tell better.
    pub memory_by_snapshot: bool,
}

/// How busy a device was since the last reading; where its rings have nothing new, as the driver's snapshot
/// says.
///
/// # Errors
/// When the device is lost.
pub fn busy(
    asker: &mut Asker,
    gpu: &Device<'static>,
    asked: Asked,
) -> Result<Option<Busy>, NvmlError> {
    let now = Instant::now();
    let mut rates = None;
    if !asked.is_held || asked.memory_by_snapshot {
        rates = asker.ask(Value::Utilization, || gpu.utilization_rates())?;
    }
    // One that tells no snapshot is asked for its ring.
    let percent = rates.as_ref().map_or(100, |rates| rates.gpu);
    if asker.memory.rest.is_long(asked.is_held, percent) {
        // What comes next is not of this time.
        (asker.memory.of_gpu, asker.memory.of_memory) = <(Cursor, Cursor)>::default();
        let memory_ppm = rates.and_then(|rates| ppm(rates.memory.into()));
        return Ok(Some(Busy { sm_ppm: 0, memory_ppm }));
    }
    let mut of_gpu = std::mem::take(&mut asker.memory.of_gpu);
    let sm_ppm = asker.ask(Value::UtilizationRing, || share(gpu, Ring::Gpu, &mut of_gpu, now));
    asker.memory.of_gpu = of_gpu;
    let sm_ppm = sm_ppm?.flatten();
    if sm_ppm.is_some_and(|ppm| ppm > 0) {
        asker.memory.rest.end();
    }
    let memory_ppm = match asked.memory_by_snapshot {
        true => rates.as_ref().and_then(|rates| ppm(rates.memory.into())),
        false => {
            let mut of_memory = std::mem::take(&mut asker.memory.of_memory);
            let told =
                asker.ask(Value::MemoryRing, || share(gpu, Ring::Memory, &mut of_memory, now));
            asker.memory.of_memory = of_memory;
            told?.flatten()
        }
    };
    if let (Some(sm_ppm), Some(_)) = (sm_ppm, memory_ppm) {
        return Ok(Some(Busy { sm_ppm, memory_ppm }));
    }
    if rates.is_none() {
        rates = asker.ask(Value::Utilization, || gpu.utilization_rates())?;
    }
    let sm_ppm = sm_ppm.or_else(|| ppm(rates.as_ref()?.gpu.into()));
    let memory_ppm = memory_ppm.or_else(|| ppm(rates?.memory.into()));
    Ok(sm_ppm.map(|sm_ppm| Busy { sm_ppm, memory_ppm }))
}

/// Share of the time since the last reading, in millionths; `None` where no sample has come since.
///
/// # Errors
/// As the library answers.
fn share(
    device: &Device<'static>,
    ring: Ring,
    cursor: &mut Cursor,
    now: Instant,
) -> Result<Option<u64>, NvmlError> {
    let since_us = cursor.since_us(now);
    let samples = match samples(device, ring, since_us) {
        Err(NvmlError::NotFound) => Vec::new(),
        samples => samples?,
    };
    Ok(mean(samples, since_us.is_none(), cursor, now))
}

/// Mean of what came since `cursor`, which goes on; the first time, of the last second.
fn mean(
    mut samples: Vec<Sample>,
    is_first: bool,
    cursor: &mut Cursor,
    now: Instant,
) -> Option<u64> {
    samples.retain(|(_, percent)| *percent <= 100);
    let mut new = cursor.take(samples, now, |(stamp_us, _)| *stamp_us);
    let newest_us = new.iter().map(|(stamp_us, _)| *stamp_us).max()?;
    if is_first {
        new.retain(|(stamp_us, _)| *stamp_us + FIRST_US > newest_us);
    }
    let sum: u64 = new.iter().map(|(_, percent)| u64::from(*percent)).sum();
    Some(sum * 10_000 / new.len() as u64)
}

/// The samples after `since_us`. The wrapper cannot tell an empty ring from one that has nothing new.
fn samples(
    device: &Device<'static>,
    ring: Ring,
    since_us: Option<u64>,
) -> Result<Vec<Sample>, NvmlError> {
    let call = *nvml_sym(device.nvml().lib().nvmlDeviceGetSamples.as_ref())?;
    let (mut kind, mut count) = (UNSIGNED, 0);
    let since_us = since_us.unwrap_or(0);
    let mut ask = |count: &mut c_uint, out: *mut nvmlSample_t| {
        // SAFETY: the handle is of this library; there is room for `count` samples, or `out` is null.
        nvml_try(unsafe { call(device.handle(), ring as c_uint, since_us, &mut kind, count, out) })
    };
    match ask(&mut count, std::ptr::null_mut()) {
        Ok(()) | Err(NvmlError::InsufficientSize(_)) => {}
        Err(error) => return Err(error),
    }
    let empty = nvmlSample_t { timeStamp: 0, sampleValue: nvmlValue_t { ullVal: 0 } };
    let mut samples = vec![empty; (count as usize).min(MOST_SAMPLES)];
    count = samples.len() as c_uint;
    ask(&mut count, samples.as_mut_ptr())?;
    if kind != UNSIGNED {
        return Err(NvmlError::NotSupported);
    }
    samples.truncate(count as usize);
    // SAFETY: every bit pattern is a number; the driver said that it wrote this one.
    let percent = |value: nvmlValue_t| unsafe { value.uiVal };
    Ok(samples.into_iter().map(|of| (of.timeStamp, percent(of.sampleValue))).collect())
}

#[cfg(test)]
mod tests;
