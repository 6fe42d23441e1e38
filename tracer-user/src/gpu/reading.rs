//! One reading of all devices, in the units of the table. Plain data: no driver, no clock.

use std::sync::Arc;

/// All devices that answered at one moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Reading {
    /// CLOCK_MONOTONIC when it ended.
    pub monotonic_ns: u64,
    /// One for each device that answered.
    pub devices: Vec<DeviceReading>,
}

/// What does not change about a device.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Device {
    /// The driver's number for it, which is not its minor number and may change with a boot.
    pub index: u32,
    /// The number of its device file, where that is told.
    pub minor: Option<u32>,
    /// Its name for ever.
    pub uuid: String,
    /// `NVIDIA H100 80GB HBM3`.
    pub model: String,
    /// All of its memory.
    pub memory_total_bytes: Option<u64>,
}

/// One device at one moment. `None` is what the device or its driver does not tell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeviceReading {
    /// Which.
    pub device: Arc<Device>,
    /// How busy it is.
    pub busy: Option<Busy>,
    /// Memory in use, whoever's.
    pub memory_used_bytes: Option<u64>,
    /// Power now, or the driver's short average.
    pub power_milliwatts: Option<u64>,
    /// Energy since the driver was loaded.
    pub energy_millijoules: Option<u64>,
    /// Clock of the multiprocessors.
    pub sm_clock_hz: Option<u64>,
    /// Temperature of the chip.
    pub temperature_celsius: Option<u64>,
    /// The processes that hold it, each once.
    pub processes: Vec<ProcessReading>,
}

/// Shares of the time, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Busy {
    /// A kernel ran.
    pub sm_ppm: u64,
    /// Device memory was read or written.
    pub memory_ppm: u64,
}

/// One process on one device.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcessReading {
    /// Its number in the root namespace.
    pub pid: u32,
    /// Its /proc/PID/cgroup; empty where it had gone before that was read.
    pub cgroups: String,
    /// Device memory it holds.
    pub memory_bytes: Option<u64>,
    /// How busy it kept the device.
    pub busy: Option<Busy>,
}
