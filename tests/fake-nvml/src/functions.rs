//! The functions of the library, as nvml.h declares them. A device's handle is its index plus one.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_uint, c_ulonglong},
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use nvml_wrapper_sys::bindings::{
    nvmlMemory_v2_t, nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlUtilization_t,
};

use crate::{
    place::SCENARIO,
    scenario::{Gpu, Process, Scenario},
};

type Return = u32;
type Handle = *mut std::ffi::c_void;

const SUCCESS: Return = 0;
const UNINITIALIZED: Return = 1;
const INVALID_ARGUMENT: Return = 2;
const NOT_FOUND: Return = 6;
const INSUFFICIENT_SIZE: Return = 7;
const NO_VALUE: u32 = u32::MAX;
const UNKNOWN_MEMORY: u64 = u64::MAX;

/// The driver of this copy of the library.
struct Driver {
    /// When it was opened first.
    since: Instant,
    opened: u32,
    /// File and state that the scenario was read from, so that it is read anew only when replaced.
    read: Option<(u64, i64, i64)>,
    scenario: Scenario,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// The file beside this very copy of the library.
fn scenario_path() -> PathBuf {
    // SAFETY: all-zero is a valid Dl_info, which dladdr fills in; its name lives as long as the library.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let own: *const () = nvmlInit_v2 as *const ();
        assert_ne!(libc::dladdr(own.cast(), &mut info), 0, "the library is loaded");
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    };
    PathBuf::from(name).with_file_name(SCENARIO)
}

impl Driver {
    fn new() -> Self {
        Self { since: Instant::now(), opened: 0, read: None, scenario: Scenario::default() }
    }

    fn refresh(&mut self) {
        let path = scenario_path();
        let Ok(file) = fs::metadata(&path) else { return };
        let state = Some((file.ino(), file.mtime(), file.mtime_nsec()));
        if self.read != state
            && let Ok(text) = fs::read(&path)
        {
            self.scenario = serde_json::from_slice(&text).expect("the scenario is one");
            self.read = state;
        }
    }
}

/// Runs `answer` on the state, unless `function` is to fail.
fn driver(function: &str, answer: impl FnOnce(&mut Driver) -> Return) -> Return {
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = driver.get_or_insert_with(Driver::new);
    driver.refresh();
    let elapsed_ms = driver.since.elapsed().as_millis() as u64;
    match driver.scenario.at(elapsed_ms).errors.get(function) {
        Some(error) => *error,
        None => answer(driver),
    }
}

/// Runs `answer` on a device and the time since the first opening, unless `function` is to fail there;
/// after it hung, if it is to.
fn gpu(handle: Handle, function: &str, answer: impl FnOnce(&Gpu, Duration) -> Return) -> Return {
    let found = |driver: &mut Driver| {
        let elapsed = driver.since.elapsed();
        let index = (handle as usize).checked_sub(1)?;
        let gpu = driver.scenario.at(elapsed.as_millis() as u64).gpus.get(index)?.clone();
        Some((gpu, elapsed))
    };
    let mut device = None;
    let asked = driver(function, |driver| {
        if driver.opened == 0 {
            return UNINITIALIZED;
        }
        device = found(driver);
        SUCCESS
    });
    let Some((gpu, elapsed)) = device else {
        return if asked == SUCCESS { INVALID_ARGUMENT } else { asked };
    };
    // Out of the lock: only this call hangs.
    if let Some(ms) = gpu.hang_ms.get(function) {
        thread::sleep(Duration::from_millis(*ms));
    }
    match gpu.errors.get(function) {
        Some(error) => *error,
        None => answer(&gpu, elapsed),
    }
}

/// Writes `value` for the caller.
///
/// # Safety
/// `out` is null or may be written to.
unsafe fn give<T>(out: *mut T, value: T) -> Return {
    if out.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: not null, and the caller's word.
    unsafe { out.write(value) };
    SUCCESS
}

/// Writes `text` and its end for the caller.
///
/// # Safety
/// `length` bytes at `out` may be written to.
unsafe fn give_text(out: *mut c_char, length: c_uint, text: &str) -> Return {
    if text.len() >= length as usize {
        return INSUFFICIENT_SIZE;
    }
    // SAFETY: the caller's word; text and its end fit.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, text.len());
        out.add(text.len()).write(0);
    }
    SUCCESS
}

/// Writes `list` for the caller; where it does not fit, says how much room it wants.
///
/// # Safety
/// `count` may be read and written, and as many elements at `out` as it says be written to.
unsafe fn give_list<T: Copy>(count: *mut c_uint, out: *mut T, list: &[T]) -> Return {
    // SAFETY: the caller's word.
    unsafe {
        let room = count.read() as usize;
        count.write(list.len() as c_uint);
        if list.len() > room {
            return INSUFFICIENT_SIZE;
        }
        if !list.is_empty() {
            std::ptr::copy_nonoverlapping(list.as_ptr(), out, list.len());
        }
    }
    SUCCESS
}

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
            let index = (handle as usize).wrapping_sub(1);
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
value!(nvmlDeviceGetPowerUsage() -> c_uint, |gpu, _, _| gpu.power_mw);
value!(nvmlDeviceGetClockInfo(clock: c_uint) -> c_uint, |gpu, _, _| gpu.sm_clock_mhz);
value!(nvmlDeviceGetTemperature(sensor: c_uint) -> c_uint, |gpu, _, _| gpu.temperature);
value!(nvmlDeviceGetTotalEnergyConsumption() -> c_ulonglong, |gpu, elapsed, _| {
    gpu.energy_mj + (f64::from(gpu.power_mw) * elapsed.as_secs_f64()) as u64
});
value!(nvmlDeviceGetUtilizationRates() -> nvmlUtilization_t, |gpu, _, _| nvmlUtilization_t {
    gpu: gpu.utilization,
    memory: gpu.memory_utilization,
});
value!(nvmlDeviceGetMemoryInfo_v2() -> nvmlMemory_v2_t, |gpu, _, _| nvmlMemory_v2_t {
    version: 0,
    total: gpu.memory_total,
    reserved: 0,
    free: gpu.memory_total.saturating_sub(gpu.memory_used),
    used: gpu.memory_used,
});

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> Return {
    driver("nvmlInit_v2", |driver| {
        driver.opened += 1;
        SUCCESS
    })
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> Return {
    nvmlInit_v2()
}

/// As in nvml.h.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> Return {
    driver("nvmlShutdown", |driver| {
        driver.opened = driver.opened.saturating_sub(1);
        SUCCESS
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(out: *mut c_char, length: c_uint) -> Return {
    // SAFETY: the caller's word.
    driver("nvmlSystemGetDriverVersion", |_| unsafe { give_text(out, length, "550.54.15") })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(out: *mut c_uint) -> Return {
    driver("nvmlDeviceGetCount_v2", |driver| {
        let elapsed_ms = driver.since.elapsed().as_millis() as u64;
        // SAFETY: the caller's word.
        unsafe { give(out, driver.scenario.at(elapsed_ms).gpus.len() as c_uint) }
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
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetMigMode", |_, _| unsafe {
        give(current, 0);
        give(pending, 0)
    })
}

fn infos(processes: &[Process]) -> Vec<nvmlProcessInfo_t> {
    let info = |process: &Process| nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: process.memory.unwrap_or(UNKNOWN_MEMORY),
        gpuInstanceId: NO_VALUE,
        computeInstanceId: NO_VALUE,
    };
    processes.iter().map(info).collect()
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeRunningProcesses_v3(
    handle: Handle,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> Return {
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetComputeRunningProcesses_v3", |gpu, _| unsafe {
        give_list(count, out, &infos(&gpu.processes))
    })
}

/// As in nvml.h.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    handle: Handle,
    count: *mut c_uint,
    out: *mut nvmlProcessInfo_t,
) -> Return {
    // SAFETY: the caller's word.
    gpu(handle, "nvmlDeviceGetGraphicsRunningProcesses_v3", |gpu, _| unsafe {
        give_list(count, out, &infos(&gpu.graphics))
    })
}

/// As in nvml.h. Gives all samples of a process of which one is newer, as drivers do whose ring is
/// coarser than their stamps: telling old from new is the caller's part.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    handle: Handle,
    out: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen_us: c_ulonglong,
) -> Return {
    gpu(handle, "nvmlDeviceGetProcessUtilization", |gpu, _| {
        let mut samples: BTreeMap<(u32, u64), nvmlProcessUtilizationSample_t> = BTreeMap::new();
        for process in &gpu.processes {
            let is_new = process.samples.iter().any(|(stamp, ..)| *stamp > last_seen_us);
            for &(stamp, sm, memory) in process.samples.iter().filter(|_| is_new) {
                let sample = nvmlProcessUtilizationSample_t {
                    pid: process.pid,
                    timeStamp: stamp,
                    smUtil: sm,
                    memUtil: memory,
                    encUtil: 0,
                    decUtil: 0,
                };
                samples.insert((process.pid, stamp), sample);
            }
        }
        if samples.is_empty() {
            return NOT_FOUND;
        }
        let samples: Vec<_> = samples.into_values().collect();
        // SAFETY: the caller's word.
        unsafe { give_list(count, out, &samples) }
    })
}
