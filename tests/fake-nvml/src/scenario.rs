//! What the driver is to answer, as a test writes it and the library reads it: JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The state of the driver; by the C name of a function, what it does instead of answering.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Version of the driver; `None`: 550.54.15. Those from 535.43 to 535.86 write longer records of processes.
    pub driver: Option<String>,
    /// Whether a driver of another version writes those, too.
    pub long_records: bool,
    /// The devices, by their index.
    pub gpus: Vec<Gpu>,
    /// `nvmlReturn_t` of functions that ask for no device.
    pub errors: BTreeMap<String, u32>,
    /// Other scenarios, each from so many milliseconds after the first opening on; the last that has come
    /// counts.
    pub later: Vec<(u64, Scenario)>,
}

/// One device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gpu {
    /// `GPU-…`
    pub uuid: String,
    /// Its model.
    pub name: String,
    /// Percent of the time busy, beside what its processes do in turns.
    pub utilization: u32,
    /// Milliseconds between two samples of the driver's; `None`: 139.
    pub sample_ms: Option<u64>,
    /// Percent of the time in which memory was accessed.
    pub memory_utilization: u32,
    /// Memory in use, bytes.
    pub memory_used: u64,
    /// All memory, bytes.
    pub memory_total: u64,
    /// Milliwatts; the energy grows by them from the first opening on.
    pub power_mw: u32,
    /// Milliwatts more while the driver is initialised; in the energy alone.
    pub awake_mw: u32,
    /// Millijoules at the first opening.
    pub energy_mj: u64,
    /// Megahertz.
    pub sm_clock_mhz: u32,
    /// Megahertz.
    pub memory_clock_mhz: u32,
    /// Degrees Celsius.
    pub temperature: u32,
    /// Bits of what throttles it, as nvml.h names them.
    pub throttle: u64,
    /// Uncorrected errors of its memory so far; `None`: not offered.
    pub ecc: Option<u64>,
    /// XID errors so far: code, and the GPU instance that it is of. Append to it.
    pub xids: Vec<(u64, Option<u32>)>,
    /// Values by nvml.h's number of the field; others are not offered.
    pub fields: BTreeMap<u32, u64>,
    /// Who may compute, as nvml.h numbers it: 0 everybody, 3 one process.
    pub compute_mode: u32,
    /// Milliwatts it may take; `None`: not offered.
    pub power_limit_mw: Option<u32>,
    /// Percent of the time in which it encoded and decoded video; `None`: not offered.
    pub video: Option<(u32, u32)>,
    /// What its counters measure; `None`: it has none.
    pub gpm: Option<Gpm>,
    /// Whether it is divided into instances, even into none.
    pub mig: bool,
    /// Its MIG instances, by their number; one without a uuid is a gap.
    pub parts: Vec<Gpu>,
    /// Of an instance: the id of its GPU instance.
    pub instance: Option<u32>,
    /// What computes on it.
    pub processes: Vec<Process>,
    /// Clients of an MPS server on it, which are in no other list.
    pub mps: Vec<Process>,
    /// Samples of utilisation by process that are made up: pid, time stamp (µs), percent of the multiprocessors.
    pub garbage: Vec<(u32, u64, u32)>,
    /// What draws on it.
    pub graphics: Vec<Process>,
    /// `nvmlReturn_t` by function.
    pub errors: BTreeMap<String, u32>,
    /// Milliseconds that a function takes.
    pub hang_ms: BTreeMap<String, u64>,
    /// Milliseconds of CPU time that a function takes.
    pub cpu_ms: BTreeMap<String, u64>,
}

/// Percentages by GPM; `None`: this one is not offered.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gpm {
    /// Of the multiprocessors' time.
    pub sm: Option<f64>,
    /// Of their tensor units'.
    pub tensor: Option<f64>,
    /// Of the memory's bandwidth.
    pub dram: Option<f64>,
    /// Of the room for warps.
    pub occupancy: Option<f64>,
    /// Of the time of units for 64, 32 and 16 bits.
    pub fp: Option<[f64; 3]>,
    /// MiB per second over PCIe, sent and received.
    pub pcie: Option<[f64; 2]>,
    /// MiB per second over NVLink, sent and received.
    pub nvlink: Option<[f64; 2]>,
}

/// One process on a device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Memory it holds, bytes; `None`: not told.
    pub memory: Option<u64>,
    /// Its samples of utilisation: time stamp (µs), percent of the multiprocessors, percent of memory. They
    /// stay, as in the driver's ring, until the scenario is replaced.
    pub samples: Vec<(u64, u32, u32)>,
    /// The work that it does, of which the driver makes samples of its own.
    pub turns: Option<Turns>,
}

/// Work that comes again with each period.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Milliseconds from one to the next.
    pub period_ms: u64,
    /// Percent of the period that pass before it.
    pub from: u32,
    /// Percent of the period that it takes: both together, 100 at most.
    pub percent: u32,
}

impl Scenario {
    /// The driver's version.
    pub fn version(&self) -> &str {
        self.driver.as_deref().unwrap_or("550.54.15")
    }

    /// What counts so long after the first opening.
    pub fn at(&self, elapsed_ms: u64) -> &Self {
        let come = self.later.iter().filter(|(from_ms, _)| *from_ms <= elapsed_ms);
        come.max_by_key(|(from_ms, _)| *from_ms).map_or(self, |(_, scenario)| scenario)
    }
}
