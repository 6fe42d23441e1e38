//! The driver behind the functions: its state, and how they answer or fail. A device's handle is its index
//! plus one; of a MIG instance, that of the whole and its own number plus one in the upper half.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString, c_char, c_uint},
    fs::{self, File},
    os::unix::{ffi::OsStringExt, fs::MetadataExt},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    place::{REFERENCE, SCENARIO},
    scenario::{Gpu, Scenario},
};

pub type Return = u32;
pub type Handle = *mut std::ffi::c_void;

pub const SUCCESS: Return = 0;
pub const UNINITIALIZED: Return = 1;
pub const INVALID_ARGUMENT: Return = 2;
pub const NOT_SUPPORTED: Return = 3;
pub const NOT_FOUND: Return = 6;
pub const INSUFFICIENT_SIZE: Return = 7;
pub const TIMEOUT: Return = 10;
const LOST: Return = 15;
pub const NO_VALUE: u32 = u32::MAX;
pub const UNKNOWN_MEMORY: u64 = u64::MAX;

/// What drivers do not tell of a MIG instance.
const WHOLE_ONLY: [&str; 13] = [
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetEnforcedPowerLimit",
    "nvmlDeviceGetEncoderUtilization",
    "nvmlDeviceGetDecoderUtilization",
    "nvmlDeviceGetSamples",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetProcessUtilization",
    "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption",
    "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetTemperature",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetTotalEccErrors",
];

/// The driver of this copy of the library.
pub struct Driver {
    /// When it was opened first.
    since: Instant,
    /// One file for each reference, so that a test can count them from outside.
    references: Vec<Option<File>>,
    /// How long somebody had one up to the last end, and since when somebody does again.
    held: (Duration, Option<Instant>),
    /// Indices of devices that fell off the bus: lost until the last reference is given back.
    lost: BTreeSet<usize>,
    /// File and state that the scenario was read from, so that it is read anew only when replaced.
    read: Option<(u64, i64, i64)>,
    scenario: Scenario,
    /// What callers allocated, by its handle: a device that it was filled from, and a number.
    pub samples: BTreeMap<usize, (usize, u32)>,
    /// Sets of events: the device, and how many of its errors were told.
    pub sets: BTreeMap<usize, (usize, usize)>,
    allocated: usize,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// This very copy of the library.
fn own_path() -> PathBuf {
    // SAFETY: all-zero is a valid Dl_info, which dladdr fills in; its name lives as long as the library.
    let name = unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        let own = &raw const DRIVER;
        assert_ne!(libc::dladdr(own.cast(), &mut info), 0, "the library is loaded");
        CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned()
    };
    PathBuf::from(name)
}

/// The file beside it.
fn scenario_path() -> PathBuf {
    own_path().with_file_name(SCENARIO)
}

/// Keeps the library where it is when it is closed: what a device counts goes on.
fn stay() {
    let path = CString::new(own_path().into_os_string().into_vec()).expect("a path has no zero");
    // SAFETY: the library is loaded already, so nothing of it runs anew; the path lives as long as the call.
    unsafe {
        libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
    };
}

impl Driver {
    fn new() -> Self {
        stay();
        Self {
            since: Instant::now(),
            references: Vec::new(),
            held: (Duration::ZERO, None),
            lost: BTreeSet::new(),
            read: None,
            scenario: Scenario::default(),
            samples: BTreeMap::new(),
            sets: BTreeMap::new(),
            allocated: 0,
        }
    }

    /// One reference more. The first initialises everything, so that what was lost is looked for anew.
    pub fn open(&mut self) -> Return {
        if self.references.is_empty() {
            self.lost.clear();
            self.held.1 = Some(Instant::now());
        }
        self.references.push(File::create(scenario_path().with_file_name(REFERENCE)).ok());
        SUCCESS
    }

    /// One reference less.
    pub fn close(&mut self) -> Return {
        if self.references.len() == 1 {
            self.held = (self.held(), None);
        }
        self.references.pop().map_or(UNINITIALIZED, |_| SUCCESS)
    }

    /// How long somebody had a reference, all such times together.
    fn held(&self) -> Duration {
        let (before, since) = self.held;
        before + since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// A handle that no other call got.
    pub fn allocate(&mut self) -> usize {
        self.allocated += 1;
        self.allocated
    }

    /// The state as of now.
    pub fn now(&self) -> &Scenario {
        self.scenario.at(self.since.elapsed().as_millis() as u64)
    }

    /// The device or instance of that handle.
    pub fn device(&self, handle: usize) -> Option<&Gpu> {
        let whole = self.now().gpus.get((handle & 0xffff).checked_sub(1)?)?;
        match (handle >> 16).checked_sub(1) {
            None => Some(whole),
            Some(part) => whole.parts.get(part).filter(|_| whole.mig),
        }
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
pub fn driver(function: &str, answer: impl FnOnce(&mut Driver) -> Return) -> Return {
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = driver.get_or_insert_with(Driver::new);
    driver.refresh();
    match driver.now().errors.get(function) {
        Some(error) => *error,
        None => answer(driver),
    }
}

/// Runs `answer` on a device and the time since the first opening, unless `function` is to fail there;
/// after it hung, if it is to.
pub fn gpu(
    handle: Handle,
    function: &str,
    answer: impl FnOnce(&Gpu, Duration) -> Return,
) -> Return {
    let found = |driver: &mut Driver| {
        let mut gpu = driver.device(handle as usize)?.clone();
        gpu.energy_mj += (f64::from(gpu.awake_mw) * driver.held().as_secs_f64()) as u64;
        Some((gpu, driver.since.elapsed()))
    };
    let mut device = None;
    let asked = driver(function, |driver| {
        if driver.references.is_empty() {
            return UNINITIALIZED;
        }
        if driver.lost.contains(&(handle as usize & 0xffff)) {
            return LOST;
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
    if let Some(ms) = gpu.cpu_ms.get(function) {
        let end = thread_cpu() + Duration::from_millis(*ms);
        while thread_cpu() < end {}
    }
    let is_part = handle as usize >> 16 != 0;
    match gpu.errors.get(function) {
        Some(error) => {
            if *error == LOST {
                lose(handle);
            }
            *error
        }
        None if is_part && WHOLE_ONLY.contains(&function) => NOT_SUPPORTED,
        None => answer(&gpu, elapsed),
    }
}

/// CPU time of this thread, which grows as slowly as others on its CPU let it.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place lies on this stack.
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(told, 0, "every thread has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The device falls off the bus.
fn lose(handle: Handle) {
    let mut driver = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(driver) = driver.as_mut() {
        driver.lost.insert(handle as usize & 0xffff);
    }
}

/// Writes `value` for the caller.
///
/// # Safety
/// `out` is null or may be written to.
pub unsafe fn give<T>(out: *mut T, value: T) -> Return {
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
pub unsafe fn give_text(out: *mut c_char, length: c_uint, text: &str) -> Return {
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
pub unsafe fn give_list<T: Copy>(count: *mut c_uint, out: *mut T, list: &[T]) -> Return {
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
