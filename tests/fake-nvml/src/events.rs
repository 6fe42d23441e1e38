//! XID errors, told through sets of events.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::nvmlEventData_t;

use crate::driver::{
    Handle, INVALID_ARGUMENT, NO_VALUE, Return, SUCCESS, TIMEOUT, driver, give, gpu,
};

const XID: c_ulonglong = 8;

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(out: *mut Handle) -> Return {
    driver("nvmlEventSetCreate", |driver| {
        let set = driver.allocate();
        driver.sets.insert(set, (0, 0));
        // SAFETY: the caller's word.
        unsafe { give(out, set as Handle) }
    })
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetFree(set: Handle) -> Return {
    driver("nvmlEventSetFree", |driver| match driver.sets.remove(&(set as usize)) {
        Some(_) => SUCCESS,
        None => INVALID_ARGUMENT,
    })
}

/// As in nvml.h: one device to a set. What came before is not told.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(
    handle: Handle,
    types: c_ulonglong,
    set: Handle,
) -> Return {
    let mut told = 0;
    let asked = gpu(handle, "nvmlDeviceRegisterEvents", |gpu, _| {
        told = gpu.xids.len();
        SUCCESS
    });
    if asked != SUCCESS {
        return asked;
    }
    driver("register", |driver| match driver.sets.get_mut(&(set as usize)) {
        Some(state) if types == XID => {
            *state = (handle as usize, told);
            SUCCESS
        }
        _ => INVALID_ARGUMENT,
    })
}

/// As in nvml.h, but that it never waits.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: Handle,
    out: *mut nvmlEventData_t,
    _timeout_ms: c_uint,
) -> Return {
    let mut state = (0, 0);
    driver("find", |driver| {
        state = driver.sets.get(&(set as usize)).copied().unwrap_or_default();
        SUCCESS
    });
    let (device, told) = state;
    gpu(device as Handle, "nvmlEventSetWait_v2", |gpu, _| {
        let Some((code, instance)) = gpu.xids.get(told).copied() else { return TIMEOUT };
        driver("tell", |driver| {
            driver.sets.insert(set as usize, (device, told + 1));
            SUCCESS
        });
        let data = nvmlEventData_t {
            device: (device as Handle).cast(),
            eventType: XID,
            eventData: code,
            gpuInstanceId: instance.unwrap_or(NO_VALUE),
            computeInstanceId: NO_VALUE,
        };
        // SAFETY: the caller's word.
        unsafe { give(out, data) }
    })
}
