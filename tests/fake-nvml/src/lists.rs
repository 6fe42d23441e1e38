//! The lists of processes, under each name that some driver has, with the records that it writes there.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{nvmlProcessInfo_v1_t, nvmlProcessInfo_v2_t};

use crate::{
    driver::{Handle, NO_VALUE, Return, SUCCESS, UNKNOWN_MEMORY, driver, give_list, gpu},
    scenario::{Gpu, Process},
};

/// What drivers from 535.43 to 535.86 write under the newest names: it was taken back.
#[repr(C)]
#[derive(Clone, Copy)]
struct LongInfo {
    info: nvmlProcessInfo_v2_t,
    protected_memory: u64,
}

fn info(process: &Process) -> nvmlProcessInfo_v2_t {
    nvmlProcessInfo_v2_t {
        pid: process.pid,
        usedGpuMemory: process.memory.unwrap_or(UNKNOWN_MEMORY),
        gpuInstanceId: NO_VALUE,
        computeInstanceId: NO_VALUE,
    }
}

fn short(process: &Process) -> nvmlProcessInfo_v1_t {
    let nvmlProcessInfo_v2_t { pid, usedGpuMemory, .. } = info(process);
    nvmlProcessInfo_v1_t { pid, usedGpuMemory }
}

fn long(process: &Process) -> LongInfo {
    LongInfo { info: info(process), protected_memory: 0 }
}

fn writes_long_records() -> bool {
    let mut is_so = false;
    driver("version", |driver| {
        let mut numbers = driver.now().version().split('.').map(|part| part.parse().unwrap_or(0));
        is_so = driver.now().long_records
            || numbers.next() == Some(535)
                && numbers.next().is_some_and(|minor: u32| (43..=86).contains(&minor));
        SUCCESS
    });
    is_so
}

/// The list of that name, whose records are made by `$record`.
macro_rules! list {
    ($name:ident, $of:ident, $record:ident: $info:ty $(, $other:ident)?) => {
        /// As in nvml.h.
        ///
        /// # Safety
        /// As there.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            handle: Handle,
            count: *mut c_uint,
            out: *mut $info,
        ) -> Return {
            gpu(handle, stringify!($name), |gpu: &Gpu, _| {
                let most = gpu.most_listed.unwrap_or(usize::MAX).min(gpu.$of.len());
                let processes = &gpu.$of[..most];
                $(if writes_long_records() {
                    let records: Vec<_> = processes.iter().map($other).collect();
                    // SAFETY: the caller's word, if it knows this driver.
                    return unsafe { give_list(count, out.cast(), &records) };
                })?
                let records: Vec<_> = processes.iter().map($record).collect();
                // SAFETY: the caller's word.
                unsafe { give_list(count, out, &records) }
            })
        }
    };
}

list!(nvmlDeviceGetComputeRunningProcesses, processes, short: nvmlProcessInfo_v1_t);
list!(nvmlDeviceGetComputeRunningProcesses_v2, processes, info: nvmlProcessInfo_v2_t);
list!(nvmlDeviceGetComputeRunningProcesses_v3, processes, info: nvmlProcessInfo_v2_t, long);
list!(nvmlDeviceGetGraphicsRunningProcesses, graphics, short: nvmlProcessInfo_v1_t);
list!(nvmlDeviceGetGraphicsRunningProcesses_v2, graphics, info: nvmlProcessInfo_v2_t);
list!(nvmlDeviceGetGraphicsRunningProcesses_v3, graphics, info: nvmlProcessInfo_v2_t, long);
list!(nvmlDeviceGetMPSComputeRunningProcesses, mps, short: nvmlProcessInfo_v1_t);
list!(nvmlDeviceGetMPSComputeRunningProcesses_v2, mps, info: nvmlProcessInfo_v2_t);
list!(nvmlDeviceGetMPSComputeRunningProcesses_v3, mps, info: nvmlProcessInfo_v2_t, long);
