//! The functions for values by number, limits and video.

use std::ffi::{c_int, c_uint};

use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlValue_t};

use crate::driver::{Handle, INVALID_ARGUMENT, NOT_SUPPORTED, Return, SUCCESS, give, gpu};

/// The driver's number for values of 64 bits, unsigned.
const UNSIGNED_64: c_uint = 3;

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    handle: Handle,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> Return {
    gpu(handle, "nvmlDeviceGetFieldValues", |gpu, _| {
        if values.is_null() || count <= 0 {
            return INVALID_ARGUMENT;
        }
        // SAFETY: the caller's word.
        let values = unsafe { std::slice::from_raw_parts_mut(values, count as usize) };
        for value in values {
            let told = gpu.fields.get(&value.fieldId);
            value.nvmlReturn = if told.is_some() { SUCCESS } else { NOT_SUPPORTED };
            value.valueType = UNSIGNED_64;
            value.value = nvmlValue_t { ullVal: told.copied().unwrap_or(0) };
        }
        SUCCESS
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetEnforcedPowerLimit(
    handle: Handle,
    out: *mut c_uint,
) -> Return {
    gpu(handle, "nvmlDeviceGetEnforcedPowerLimit", |gpu, _| match gpu.power_limit_mw {
        // SAFETY: the caller's word.
        Some(limit) => unsafe { give(out, limit) },
        None => NOT_SUPPORTED,
    })
}

/// A function that tells how busy one kind of video unit is.
macro_rules! video {
    ($name:ident, $of:tt) => {
        /// As in nvml.h.
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            handle: Handle,
            percent: *mut c_uint,
            period_us: *mut c_uint,
        ) -> Return {
            gpu(handle, stringify!($name), |gpu, _| match gpu.video {
                // SAFETY: the caller's word.
                Some(video) => unsafe {
                    give(period_us, 167_000);
                    give(percent, video.$of)
                },
                None => NOT_SUPPORTED,
            })
        }
    };
}

video!(nvmlDeviceGetEncoderUtilization, 0);
video!(nvmlDeviceGetDecoderUtilization, 1);
