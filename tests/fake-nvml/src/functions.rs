//! The functions that tell of devices and processes, as nvml.h declares them.

use std::{
    ffi::{c_char, c_uint, c_ulonglong},
    time::Duration,
};

use nvml_wrapper_sys::bindings::{nvmlMemory_t, nvmlMemory_v2_t, nvmlUtilization_t};

use crate::{
    driver::{Driver, Handle, NOT_SUPPORTED, Return, driver, give, give_text, gpu},
    ring,
    scenario::Gpu,
};

/// A function that asks a device for one value.
macro_rules! value {
    ($name:ident($($argument:ident: $of:ty)?) -> $type:ty, $value:expr) => {
        /// As in nvml.h.
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: Handle, $($argument: $of,)? out: *mut $type) -> Return {
            $(let _ = $argument;)?
            let value: fn(&Gpu, Duration, usize) -> $type = $value;
            let index = (handle as usize & 0xffff).wrapping_sub(1);
            // SAFETY: the caller's word.
            gpu(handle, stringify!($name), |gpu, elapsed| unsafe {
                give(out, value(gpu, elapsed, index))
            })
        }
    };
}

value!(nvmlDeviceGetIndex() -> c_uint, |_, _, index| index as c_uint);
// Not the index: whoever takes one for the other is to notice.
value!(nvmlDeviceGetMinorNumber() -> c_uint, |_, _, index| 7 - index as c_uint);
value!(nvmlDeviceGetComputeMode() -> c_uint, |gpu, _, _| gpu.compute_mode);
value!(nvmlDeviceGetPowerUsage() -> c_uint, |gpu, _, _| gpu.power_mw);
value!(nvmlDeviceGetCurrentClocksThrottleReasons() -> c_ulonglong, |gpu, _, _| gpu.throttle);
value!(nvmlDeviceGetTemperature(sensor: c_uint) -> c_uint, |gpu, _, _| gpu.temperature);
value!(nvmlDeviceGetTotalEnergyConsumption() -> c_ulonglong, |gpu, elapsed, _| {
    gpu.energy_mj + (f64::from(gpu.power_mw) * elapsed.as_secs_f64()) as u64
});
value!(nvmlDeviceGetUtilizationRates() -> nvmlUtilization_t, |gpu, elapsed, _| nvmlUtilization_t {
    gpu: ring::newest(gpu, elapsed),
    memory: gpu.memory_utilization,
});
value!(nvmlDeviceGetMemoryInfo_v2() -> nvmlMemory_v2_t, |gpu, _, _| nvmlMemory_v2_t {
    version: 0,
    total: gpu.memory_total,
    reserved: 0,
    free: gpu.memory_total.saturating_sub(gpu.memory_used),
    used: gpu.memory_used,
});

// Before driver 510 there is no other.
value!(nvmlDeviceGetMemoryInfo() -> nvmlMemory_t, |gpu, _, _| nvmlMemory_t {
    total: gpu.memory_total,
    free: gpu.memory_total.saturating_sub(gpu.memory_used),
    used: gpu.memory_used,
});

/// As in nvml.h: references are counted.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Return {
    driver("nvmlInit_v2", Driver::open)
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Return {
    driver("nvmlInit_v2", Driver::open)
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Return {
    driver("nvmlShutdown", Driver::close)
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> Return {
    // SAFETY: the caller's word.
    driver("nvmlSystemGetDriverVersion", |driver| unsafe {
        give_text(out, length, driver.now().version())
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> Return {
    driver("nvmlDeviceGetCount_v2", |driver| {
        // SAFETY: the caller's word.
        unsafe { give(out, driver.now().gpus.len() as c_uint) }
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut Handle) -> Return {
    let handle = (index as usize + 1) as Handle;
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetHandleByIndex_v2", |_, _| unsafe { give(out, handle) })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUUID(
    handle: Handle,
    out: *mut c_char,
    length: c_uint,
) -> Return {
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetUUID", |gpu, _| unsafe { give_text(out, length, &gpu.uuid) })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(
    handle: Handle,
    out: *mut c_char,
    length: c_uint,
) -> Return {
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetName", |gpu, _| unsafe { give_text(out, length, &gpu.name) })
}

/// As in nvml.h: SM and memory clock alone.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(
    handle: Handle,
    clock: c_uint,
    out: *mut c_uint,
) -> Return {
    gpu(handle, "nvmlDeviceGetClockInfo", |gpu, _| {
        let megahertz = match clock {
            1 => gpu.sm_clock_mhz,
            2 => gpu.memory_clock_mhz,
            _ => return NOT_SUPPORTED,
        };
        // SAFETY: the caller's word.
        unsafe { give(out, megahertz) }
    })
}

/// As in nvml.h: uncorrected, since the driver was loaded.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    handle: Handle,
    of: c_uint,
    since: c_uint,
    out: *mut c_ulonglong,
) -> Return {
    gpu(handle, "nvmlDeviceGetTotalEccErrors", |gpu, _| match (gpu.ecc, of, since) {
        // SAFETY: the caller's word.
        (Some(count), 1, 0) => unsafe { give(out, count) },
        _ => NOT_SUPPORTED,
    })
}
