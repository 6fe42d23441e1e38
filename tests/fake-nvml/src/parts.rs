//! MIG: the functions that tell of a device's instances.

use std::ffi::c_uint;

use crate::driver::{Handle, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, Return, give, gpu};

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigMode(
    handle: Handle,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> Return {
    gpu(handle, "nvmlDeviceGetMigMode", |gpu, _| {
        // SAFETY: the caller's word.
        unsafe {
            give(current, gpu.mig.into());
            give(pending, gpu.mig.into())
        }
    })
}

/// As in nvml.h: of an A100 or H100.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(
    handle: Handle,
    out: *mut c_uint,
) -> Return {
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetMaxMigDeviceCount", |_, _| unsafe { give(out, 7) })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    handle: Handle,
    index: c_uint,
    out: *mut Handle,
) -> Return {
    gpu(handle, "nvmlDeviceGetMigDeviceHandleByIndex", |gpu, _| {
        if !gpu.mig {
            return NOT_SUPPORTED;
        }
        if gpu.parts.get(index as usize).is_none_or(|part| part.uuid.is_empty()) {
            return NOT_FOUND;
        }
        let part = (index as usize + 1) << 16;
        // SAFETY: the caller's word.
        unsafe { give(out, (handle as usize | part) as Handle) }
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(handle: Handle, out: *mut c_uint) -> Return {
    gpu(handle, "nvmlDeviceGetGpuInstanceId", |gpu, _| match gpu.instance {
        // SAFETY: the caller's word.
        Some(id) => unsafe { give(out, id) },
        None => INVALID_ARGUMENT,
    })
}

/// As in nvml.h: each GPU instance has one compute instance.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeInstanceId(
    handle: Handle,
    out: *mut c_uint,
) -> Return {
    gpu(handle, "nvmlDeviceGetComputeInstanceId", |gpu, _| match gpu.instance {
        // SAFETY: the caller's word.
        Some(_) => unsafe { give(out, 0) },
        None => INVALID_ARGUMENT,
    })
}
