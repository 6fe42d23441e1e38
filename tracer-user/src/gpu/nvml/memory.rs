//! Memory of a device. The wrapper knows only the call that came with driver 510.

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::nvmlMemory_t;

use crate::gpu::failure::Failure;

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub total_bytes: u64,
    /// By whomever; as drivers before 510 tell it, what they reserve too.
    pub used_bytes: u64,
}

/// Asks for it, and by the older call where the newer one is not there or fails.
///
/// # Errors
/// As the library answers.
pub fn read(device: &Device<'static>) -> Result<Memory, NvmlError> {
    match device.memory_info() {
        Ok(told) => Ok(Memory { total_bytes: told.total, used_bytes: told.used }),
        Err(error) if matches!(Failure::of(&error), Failure::Never | Failure::Unclear) => {
            older(device)
        }
        Err(error) => Err(error),
    }
}

fn older(device: &Device<'static>) -> Result<Memory, NvmlError> {
    let call = *nvml_sym(device.nvml().lib().nvmlDeviceGetMemoryInfo.as_ref())?;
    let mut told = nvmlMemory_t { total: 0, free: 0, used: 0 };
    // SAFETY: the handle is of this library, which writes one such struct.
    nvml_try(unsafe { call(device.handle(), &mut told) })?;
    Ok(Memory { total_bytes: told.total, used_bytes: told.used })
}
