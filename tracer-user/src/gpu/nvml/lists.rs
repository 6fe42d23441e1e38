//! The lists of processes, which drivers write in three layouts under three names: which is which goes by
//! the driver's version, since a wrong guess reads other processes' numbers.

use std::ffi::c_uint;

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t, nvmlReturn_t,
};

/// Records there is room for at first, and at most.
const ROOM: usize = 64;
const MOST_ROOM: usize = 1 << 16;
/// Stands for no instance.
const NO_INSTANCE: u32 = u32::MAX;
/// Stands for memory that is not told.
const NO_MEMORY: u64 = u64::MAX;
const NOTHING: nvmlProcessInfo_v2_t = nvmlProcessInfo_v2_t {
    pid: 0,
    usedGpuMemory: NO_MEMORY,
    gpuInstanceId: NO_INSTANCE,
    computeInstanceId: NO_INSTANCE,
};

/// What processes do on a device; each has a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They compute; of MPS the server alone.
    Compute,
    /// They compute through an MPS server.
    MpsClients,
    /// They draw.
    Graphics,
}

/// A process in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub pid: u32,
    /// Device memory that it holds.
    pub memory_bytes: Option<u64>,
    /// Whether it is said to be on an instance of a divided device.
    pub is_on_instance: bool,
}

/// The records of drivers from 535.43 to 535.86.
#[repr(C)]
#[derive(Clone, Copy)]
struct LongRecord {
    record: nvmlProcessInfo_v2_t,
    protected_memory: u64,
}

type Call<Record> = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut Record) -> nvmlReturn_t;

/// How this driver writes lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lists {
    is_long: bool,
}

impl Lists {
    /// Those of a driver of that version, `535.54.03`.
    pub fn of(driver: &str) -> Self {
        let mut parts = driver.split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next().flatten(), parts.next().flatten());
        Self {
            is_long: major == Some(535) && minor.is_some_and(|minor| (43..=86).contains(&minor)),
        }
    }

    /// The processes of that kind on a device or an instance.
    ///
    /// # Errors
    /// As the library answers.
    pub fn read(self, device: &Device<'static>, kind: Kind) -> Result<Vec<Listed>, NvmlError> {
        let lib = device.nvml().lib();
        let (newest, middle, oldest) = match kind {
            Kind::Compute => (
                &lib.nvmlDeviceGetComputeRunningProcesses_v3,
                &lib.nvmlDeviceGetComputeRunningProcesses_v2,
                &lib.nvmlDeviceGetComputeRunningProcesses,
            ),
            Kind::MpsClients => (
                &lib.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                &lib.nvmlDeviceGetMPSComputeRunningProcesses_v2,
                &lib.nvmlDeviceGetMPSComputeRunningProcesses,
            ),
            Kind::Graphics => (
                &lib.nvmlDeviceGetGraphicsRunningProcesses_v3,
                &lib.nvmlDeviceGetGraphicsRunningProcesses_v2,
                &lib.nvmlDeviceGetGraphicsRunningProcesses,
            ),
        };
        match (newest, middle) {
            (Ok(call), _) if self.is_long => {
                let empty = LongRecord { record: NOTHING, protected_memory: 0 };
                let records = list(device, *call, empty)?;
                Ok(records.into_iter().map(|of| of.record.into()).collect())
            }
            (Ok(call), _) | (Err(_), Ok(call)) => {
                Ok(list(device, *call, NOTHING)?.into_iter().map(Listed::from).collect())
            }
            (Err(_), Err(_)) => {
                let call = nvml_sym(oldest.as_ref())?;
                let empty = nvmlProcessInfo_v1_t { pid: 0, usedGpuMemory: NO_MEMORY };
                let records = list(device, *call, empty)?;
                let full = |of: nvmlProcessInfo_v1_t| nvmlProcessInfo_v2_t {
                    pid: of.pid,
                    usedGpuMemory: of.usedGpuMemory,
                    ..NOTHING
                };
                Ok(records.into_iter().map(|of| full(of).into()).collect())
            }
        }
    }
}

impl From<nvmlProcessInfo_v2_t> for Listed {
    fn from(record: nvmlProcessInfo_v2_t) -> Self {
        let ids = [record.gpuInstanceId, record.computeInstanceId];
        Self {
            pid: record.pid,
            memory_bytes: Some(record.usedGpuMemory).filter(|bytes| *bytes != NO_MEMORY),
            is_on_instance: ids != [NO_INSTANCE; 2],
        }
    }
}

/// Calls for records that are `Real`, whatever the name's declaration says, until they fit.
fn list<Declared, Real: Copy>(
    device: &Device<'static>,
    call: Call<Declared>,
    empty: Real,
) -> Result<Vec<Real>, NvmlError> {
    let mut room = ROOM;
    loop {
        let (mut records, mut count) = (vec![empty; room], room as c_uint);
        // SAFETY: the handle is of this library, and there is room for so many of this driver's records.
        let answer =
            nvml_try(unsafe { call(device.handle(), &mut count, records.as_mut_ptr().cast()) });
        match answer {
            // Others may come before the next call.
            Err(NvmlError::InsufficientSize(_)) if room < MOST_ROOM => {
                room = (count as usize).max(room).saturating_mul(2).min(MOST_ROOM);
            }
            answer => {
                answer?;
                records.truncate(count as usize);
                return Ok(records);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_tells_the_layout() {
        for (driver, is_long) in [
            ("535.43.02", true),
            ("535.54.03", true),
            ("535.86.10", true),
            ("535.98", false),
            ("535.104.05", false),
            ("535.42", false),
            ("530.54", false),
            ("550.54.15", false),
            ("535", false),
            ("", false),
        ] {
            assert_eq!(Lists::of(driver).is_long, is_long, "{driver}");
        }
    }
}
