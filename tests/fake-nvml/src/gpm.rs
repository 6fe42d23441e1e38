//! GPM: samples, which callers allocate, and what came between two of them.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{nvmlGpmMetricsGet_t, nvmlGpmSupport_t};

use crate::{
    driver::{Driver, Handle, INVALID_ARGUMENT, NOT_SUPPORTED, Return, SUCCESS, driver, give, gpu},
    scenario::Gpu,
};

/// Numbers of the metrics that there are.
const SM: c_uint = 2;
const TENSOR: c_uint = 5;
const DRAM: c_uint = 10;

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    handle: Handle,
    out: *mut nvmlGpmSupport_t,
) -> Return {
    gpu(handle, "nvmlGpmQueryDeviceSupport", |gpu, _| {
        let has = |gpu: &Gpu| gpu.gpm.is_some();
        let is_supported = has(gpu) || gpu.parts.iter().any(has);
        // SAFETY: the caller's word.
        unsafe {
            give(out, nvmlGpmSupport_t { version: 1, isSupportedDevice: is_supported.into() })
        }
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(out: *mut Handle) -> Return {
    driver("nvmlGpmSampleAlloc", |driver| {
        let sample = driver.allocate();
        driver.samples.insert(sample, (0, 0));
        // SAFETY: the caller's word.
        unsafe { give(out, sample as Handle) }
    })
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleFree(sample: Handle) -> Return {
    driver("nvmlGpmSampleFree", |driver| match driver.samples.remove(&(sample as usize)) {
        Some(_) => SUCCESS,
        None => INVALID_ARGUMENT,
    })
}

/// Fills a sample from the device of that handle.
fn fill(device: Handle, function: &str, sample: Handle) -> Return {
    let asked = gpu(device, function, |gpu, _| match gpu.gpm {
        Some(_) => SUCCESS,
        None => NOT_SUPPORTED,
    });
    if asked != SUCCESS {
        return asked;
    }
    driver("fill", |driver: &mut Driver| {
        let number = driver.allocate() as u32;
        match driver.samples.get_mut(&(sample as usize)) {
            Some(filled) => {
                *filled = (device as usize, number);
                SUCCESS
            }
            None => INVALID_ARGUMENT,
        }
    })
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(handle: Handle, sample: Handle) -> Return {
    fill(handle, "nvmlGpmSampleGet", sample)
}

/// As in nvml.h: of a GPU instance.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmMigSampleGet(handle: Handle, id: c_uint, sample: Handle) -> Return {
    let mut part = None;
    let asked = gpu(handle, "nvmlGpmMigSampleGet", |gpu, _| {
        part = gpu.parts.iter().position(|part| part.instance == Some(id));
        SUCCESS
    });
    match (asked, part) {
        (SUCCESS, Some(part)) => {
            let part = (handle as usize | (part + 1) << 16) as Handle;
            fill(part, "nvmlGpmSampleGet", sample)
        }
        (SUCCESS, None) => INVALID_ARGUMENT,
        (error, _) => error,
    }
}

/// As in nvml.h. Two samples of one device, the older first.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> Return {
    if request.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller's word.
    let request = unsafe { &mut *request };
    driver("nvmlGpmMetricsGet", |driver| {
        let sample = |sample: Handle| driver.samples.get(&(sample as usize)).copied();
        let (old, new) = (sample(request.sample1.cast()), sample(request.sample2.cast()));
        let (Some((device, old)), Some((same, new))) = (old, new) else { return INVALID_ARGUMENT };
        if device != same || old >= new {
            return INVALID_ARGUMENT;
        }
        let Some(gpm) = driver.device(device).and_then(|gpu| gpu.gpm) else {
            return NOT_SUPPORTED;
        };
        for metric in &mut request.metrics[..request.numMetrics as usize] {
            let value = match metric.metricId {
                SM => gpm.sm,
                TENSOR => gpm.tensor,
                DRAM => gpm.dram,
                3 => gpm.occupancy,
                11..=13 => gpm.fp.map(|fp| fp[metric.metricId as usize - 11]),
                20 | 21 => gpm.pcie.map(|pcie| pcie[metric.metricId as usize - 20]),
                // Received comes first here.
                60 | 61 => gpm.nvlink.map(|nvlink| nvlink[61 - metric.metricId as usize]),
                _ => None,
            };
            metric.nvmlReturn = if value.is_some() { SUCCESS } else { NOT_SUPPORTED };
            metric.value = value.unwrap_or(f64::NAN);
        }
        SUCCESS
    })
}
