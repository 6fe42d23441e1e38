//! One reading of all devices, in the units of the table. Plain data: no driver, no clock.

use std::{array::from_fn, sync::Arc};

/// Up to which a percentage is believed.
const MOST_PERCENT: u64 = 110;

/// All devices that answered at one moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GpuReading {
    /// CLOCK_MONOTONIC when it ended.
    pub monotonic_ns: u64,
    /// The time between two readings that come as they should; zero where that is not known.
    pub period_ns: u64,
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
    /// Of a part of a device (MIG): its number there, which may change when parts are made anew.
    pub instance: Option<u32>,
    /// Of a part of a device (MIG): the ids of its GPU instance and of its compute instance.
    pub instance_ids: Option<[u32; 2]>,
    /// Who made it: `nvidia`, `amd`, `intel`; of others the name of the kernel's driver.
    pub vendor: String,
    /// Of a part of a device (MIG): the uuid of the whole. Else empty.
    pub parent: String,
    /// Its name for ever.
    pub uuid: String,
    /// `NVIDIA H100 80GB HBM3`.
    pub model: String,
    /// All of its memory.
    pub memory_total_bytes: Option<u64>,
}

impl Device {
    /// Its number as text: `0`; `0:2` for part 2 of device 0, as `nvidia-smi -L` counts them.
    pub fn number(&self) -> String {
        match self.instance {
            None => self.index.to_string(),
            Some(instance) => format!("{}:{instance}", self.index),
        }
    }
}

/// One device at one moment. `None` is what the device or its driver does not tell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DeviceReading {
    /// Which.
    pub device: Arc<Device>,
    /// How busy it is.
    pub busy: Option<Busy>,
    /// What its parts do, where the hardware counts that.
    pub activity: Activity,
    /// Memory in use, whoever's.
    pub memory_used_bytes: Option<u64>,
    /// Power now, or the driver's short average.
    pub power_milliwatts: Option<u64>,
    /// Energy since the driver was loaded.
    pub energy_millijoules: Option<u64>,
    /// Clock of the multiprocessors.
    pub sm_clock_hz: Option<u64>,
    /// Clock of the memory.
    pub memory_clock_hz: Option<u64>,
    /// Temperature of the chip.
    pub temperature_celsius: Option<u64>,
    /// What holds its clocks down now.
    pub throttled: Option<Throttled>,
    /// Temperature of its memory.
    pub memory_temperature_celsius: Option<u64>,
    /// Power that it may take.
    pub power_limit_milliwatts: Option<u64>,
    /// Rows of its memory that spare ones replace.
    pub remapped_rows: Option<u64>,
    /// Share of the time in which its video encoders worked, in millionths.
    pub encoder_ppm: Option<u64>,
    /// The same of its video decoders.
    pub decoder_ppm: Option<u64>,
    /// What it moved since the last reading, for whomever.
    pub traffic: Traffic,
    /// What it counts.
    pub counters: Counters,
    /// XID codes reported since the last reading, in their order; `None` where nobody tells them.
    pub xids: Option<Vec<u64>>,
    /// The processes that hold it, each once.
    pub processes: Vec<ProcessReading>,
}

/// Shares of the time, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Busy {
    /// A kernel ran.
    pub sm_ppm: u64,
    /// Device memory was read or written; not every maker tells.
    pub memory_ppm: Option<u64>,
}

/// A percentage as a share in millionths. Drivers overshoot a little at full load; much more than all of it is no
/// answer.
pub fn ppm(percent: u64) -> Option<u64> {
    (percent <= MOST_PERCENT).then_some(percent.min(100) * 10_000)
}

/// Shares that counters in the hardware measure, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Activity {
    /// Of the multiprocessors' time: some work was on them.
    pub sm_ppm: Option<u64>,
    /// Of the multiprocessors' time: their tensor units worked.
    pub tensor_ppm: Option<u64>,
    /// Of the memory's bandwidth: in use.
    pub dram_ppm: Option<u64>,
    /// Of the warps that the multiprocessors have room for: there.
    pub occupancy_ppm: Option<u64>,
    /// Of the multiprocessors' time: their units for numbers of 64 bits worked.
    pub fp64_ppm: Option<u64>,
    /// The same for numbers of 32 bits.
    pub fp32_ppm: Option<u64>,
    /// The same for numbers of 16 bits, but for tensors.
    pub fp16_ppm: Option<u64>,
}

/// Bytes between a device and the rest of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Traffic {
    /// From it, over PCIe.
    pub pcie_sent_bytes: Option<u64>,
    /// To it, over PCIe.
    pub pcie_received_bytes: Option<u64>,
    /// From it, over all its NVLinks.
    pub nvlink_sent_bytes: Option<u64>,
    /// To it, over all its NVLinks.
    pub nvlink_received_bytes: Option<u64>,
}

/// What a device counted since its driver was loaded; the difference of two, what came between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Errors of its memory that could not be corrected.
    pub ecc_uncorrected: Option<u64>,
    /// Errors of its memory that were corrected.
    pub ecc_corrected: Option<u64>,
    /// Packets that had to be sent again over PCIe.
    pub pcie_replays: Option<u64>,
    /// Errors of its NVLinks, of all kinds.
    pub nvlink_errors: Option<u64>,
    /// Time in which its power limit held its clocks down, by reason. Several may hold at once.
    pub throttled_power_ns: [Option<u64>; 2],
    /// The same of its temperature.
    pub throttled_thermal_ns: [Option<u64>; 3],
    /// The same of anything else.
    pub throttled_other_ns: Option<u64>,
    /// From it, over PCIe.
    pub pcie_sent_bytes: Option<u64>,
    /// To it, over PCIe.
    pub pcie_received_bytes: Option<u64>,
}

impl Counters {
    /// What came since `older`; of a counter that fell, nothing is known: it began anew with its driver.
    pub fn since(&self, older: &Self) -> Self {
        let grown = |of: &dyn Fn(&Self) -> Option<u64>| of(self)?.checked_sub(of(older)?);
        Self {
            ecc_uncorrected: grown(&|of| of.ecc_uncorrected),
            ecc_corrected: grown(&|of| of.ecc_corrected),
            pcie_replays: grown(&|of| of.pcie_replays),
            nvlink_errors: grown(&|of| of.nvlink_errors),
            throttled_power_ns: from_fn(|reason| grown(&|of| of.throttled_power_ns[reason])),
            throttled_thermal_ns: from_fn(|reason| grown(&|of| of.throttled_thermal_ns[reason])),
            throttled_other_ns: grown(&|of| of.throttled_other_ns),
            pcie_sent_bytes: grown(&|of| of.pcie_sent_bytes),
            pcie_received_bytes: grown(&|of| of.pcie_received_bytes),
        }
    }
}

/// What holds the clocks down. What the administrator set, and having nothing to do, is none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Throttled {
    /// The power limit, or the supply's brake.
    pub power: bool,
    /// Too hot.
    pub thermal: bool,
    /// Anything else: a slow peer, a slowdown of the hardware without a reason.
    pub other: bool,
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
    /// It computes nothing, as a display server.
    pub only_draws: bool,
    /// Its share of the multiprocessors, in millionths, where that is told by process.
    pub sm_activity_ppm: Option<u64>,
}

impl ProcessReading {
    /// Whether it takes nobody's time, as a display server that has nothing to do.
    pub fn is_idle_display(&self) -> bool {
        self.only_draws && self.busy.is_some_and(|busy| busy.sm_ppm == 0)
    }
}
