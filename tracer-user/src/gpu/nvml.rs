//! NVIDIA's devices, each asked for what it tells; what it does not is not asked again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use nvml_wrapper::{
    Nvml,
    enum_wrappers::device::{Clock, TemperatureSensor},
    enums::device::UsedGpuMemory,
    error::NvmlError,
    struct_wrappers::device::{ProcessInfo, ProcessUtilizationSample},
};

use super::{
    failure::Failure,
    member::read_cgroups,
    reading::{Busy, Device, DeviceReading, ProcessReading},
};

/// The values of a device, as a note names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Value {
    Utilization,
    Memory,
    Power,
    Energy,
    Clock,
    Temperature,
    ComputeProcesses,
    GraphicsProcesses,
    ProcessUtilization,
}

impl Value {
    const fn name(self) -> &'static str {
        match self {
            Self::Utilization => "utilisation",
            Self::Memory => "memory in use",
            Self::Power => "power",
            Self::Energy => "energy",
            Self::Clock => "clock",
            Self::Temperature => "temperature",
            Self::ComputeProcesses => "which processes compute",
            Self::GraphicsProcesses => "which processes draw",
            Self::ProcessUtilization => "utilisation by process",
        }
    }
}

/// What is known of devices beyond one opening of the library, by uuid.
#[derive(Default)]
pub struct Known(HashMap<String, Memory>);

#[derive(Default)]
struct Memory {
    given_up: Vec<Value>,
    /// Stamp of the newest utilisation sample of any process, as the driver counts.
    last_sample_us: Option<u64>,
}

/// One device of an opened library.
pub struct Gpu<'nvml> {
    handle: nvml_wrapper::Device<'nvml>,
    device: Arc<Device>,
}

/// What one device answered, and what is to be said of it from now on.
pub type Answer = (DeviceReading, Vec<String>);

impl<'nvml> Gpu<'nvml> {
    /// The device of that index.
    ///
    /// # Errors
    /// When it cannot be had, or has no uuid.
    pub fn open(nvml: &'nvml Nvml, index: u32) -> Result<Self, NvmlError> {
        let handle = nvml.device_by_index(index)?;
        let uuid = handle.uuid()?;
        let model = handle.name().unwrap_or_default();
        let memory = handle.memory_info().ok();
        let memory_total_bytes = memory.map(|memory| memory.total).filter(|total| *total > 0);
        let minor = handle.minor_number().ok();
        let device = Arc::new(Device { index, minor, uuid, model, memory_total_bytes });
        Ok(Self { handle, device })
    }

    /// Its name for ever.
    pub fn uuid(&self) -> &str {
        &self.device.uuid
    }

    /// Its number and model, as a note names it.
    pub fn name(&self) -> String {
        format!("GPU {} ({})", self.device.index, self.device.model)
    }

    /// Asks for everything.
    ///
    /// # Errors
    /// When the device is lost.
    pub fn read(&self, known: &mut Known) -> Result<Answer, NvmlError> {
        let memory = known.0.entry(self.device.uuid.clone()).or_default();
        let mut asker = Asker { gpu: self, memory, notes: Vec::new() };
        let utilization = asker.ask(Value::Utilization, |gpu| gpu.utilization_rates())?;
        let busy = utilization.map(|rates| busy(rates.gpu, rates.memory));
        let reading = DeviceReading {
            device: Arc::clone(&self.device),
            busy,
            memory_used_bytes: asker.ask(Value::Memory, |gpu| Ok(gpu.memory_info()?.used))?,
            power_milliwatts: asker.ask(Value::Power, |gpu| Ok(gpu.power_usage()?.into()))?,
            energy_millijoules: asker.ask(Value::Energy, |gpu| gpu.total_energy_consumption())?,
            sm_clock_hz: asker
                .ask(Value::Clock, |gpu| Ok(u64::from(gpu.clock_info(Clock::SM)?) * 1_000_000))?,
            temperature_celsius: asker.ask(Value::Temperature, |gpu| {
                Ok(gpu.temperature(TemperatureSensor::Gpu)?.into())
            })?,
            processes: asker.processes(busy)?,
        };
        Ok((reading, asker.notes))
    }
}

struct Asker<'a, 'nvml> {
    gpu: &'a Gpu<'nvml>,
    memory: &'a mut Memory,
    notes: Vec<String>,
}

impl<'nvml> Asker<'_, 'nvml> {
    /// The value, unless the device does not tell it.
    fn ask<T>(
        &mut self,
        value: Value,
        call: impl Fn(&nvml_wrapper::Device<'nvml>) -> Result<T, NvmlError>,
    ) -> Result<Option<T>, NvmlError> {
        if self.memory.given_up.contains(&value) {
            return Ok(None);
        }
        let answer = match call(&self.gpu.handle) {
            // A process came between the question for their number and that for them.
            Err(NvmlError::InsufficientSize(_)) => call(&self.gpu.handle),
            answer => answer,
        };
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => match Failure::of(&error) {
                Failure::Lost => Err(error),
                Failure::NotNow => Ok(None),
                Failure::Never => {
                    self.memory.given_up.push(value);
                    self.notes.push(format!(
                        "{} does not tell its {} ({error})",
                        self.gpu.name(),
                        value.name()
                    ));
                    Ok(None)
                }
            },
        }
    }

    fn processes(&mut self, device: Option<Busy>) -> Result<Vec<ProcessReading>, NvmlError> {
        let compute = self.ask(Value::ComputeProcesses, |gpu| gpu.running_compute_processes())?;
        let graphics =
            self.ask(Value::GraphicsProcesses, |gpu| gpu.running_graphics_processes())?;
        let mut processes = by_pid(&compute.unwrap_or_default());
        for (pid, memory) in by_pid(&graphics.unwrap_or_default()) {
            // One that does both is in both lists, with all of its memory in each.
            let known = processes.entry(pid).or_default();
            *known = (*known).max(memory);
        }
        // With one process the device's own figure is better, and the question is spared.
        let shares = if processes.len() > 1 { self.shares(device)? } else { None };
        let process = |(pid, memory_bytes)| ProcessReading {
            pid,
            cgroups: read_cgroups(pid).unwrap_or_default(),
            memory_bytes,
            busy: shares.as_ref().map(|shares| shares.get(&pid).copied().unwrap_or_default()),
        };
        Ok(processes.into_iter().map(process).collect())
    }

    /// How busy each process was since the last reading; `None` where that is not told or nothing new is.
    fn shares(&mut self, device: Option<Busy>) -> Result<Option<BTreeMap<u32, Busy>>, NvmlError> {
        let last_us = self.memory.last_sample_us;
        let samples = self.ask(Value::ProcessUtilization, |gpu| {
            match gpu.process_utilization_stats(last_us) {
                Err(NvmlError::NotFound) => Ok(Vec::new()),
                samples => samples,
            }
        })?;
        let Some(samples) = samples else { return Ok(None) };
        let newest = samples.iter().map(|sample| sample.timestamp).max();
        self.memory.last_sample_us = last_us.max(newest);
        let shares = shares(samples, last_us);
        // No sample is no work, if the device says so too; else there is none yet.
        let is_idle = device.is_some_and(|device| device.sm_ppm == 0);
        Ok((!shares.is_empty() || is_idle).then_some(shares))
    }
}

/// Memory of each process; the parts of one that is on several instances of a device are added.
fn by_pid(processes: &[ProcessInfo]) -> BTreeMap<u32, Option<u64>> {
    let mut memory: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for process in processes {
        let known = memory.entry(process.pid).or_default();
        if let UsedGpuMemory::Used(bytes) = process.used_gpu_memory {
            *known = Some(known.unwrap_or(0).saturating_add(bytes));
        }
    }
    memory
}

/// Mean of each process's samples that are newer than `last_us`; of all the driver still has, the newest
/// of each.
fn shares(mut samples: Vec<ProcessUtilizationSample>, last_us: Option<u64>) -> BTreeMap<u32, Busy> {
    samples.retain(|sample| sample.timestamp > last_us.unwrap_or(0));
    samples.sort_by_key(|sample| (sample.pid, sample.timestamp));
    samples.dedup_by_key(|sample| (sample.pid, sample.timestamp));
    let of_one = |samples: &[ProcessUtilizationSample]| {
        let new = if last_us.is_some() { samples } else { &samples[samples.len() - 1..] };
        let mean = |share: fn(&ProcessUtilizationSample) -> u32| {
            let sum: u64 = new.iter().map(|sample| u64::from(share(sample).min(100))).sum();
            sum * 10_000 / new.len() as u64
        };
        let (sm_ppm, memory_ppm) = (mean(|sample| sample.sm_util), mean(|sample| sample.mem_util));
        (samples[0].pid, Busy { sm_ppm, memory_ppm })
    };
    samples.chunk_by(|a, b| a.pid == b.pid).map(of_one).collect()
}

/// Percentages as shares.
fn busy(sm_percent: u32, memory_percent: u32) -> Busy {
    let ppm = |percent: u32| u64::from(percent.min(100)) * 10_000;
    Busy { sm_ppm: ppm(sm_percent), memory_ppm: ppm(memory_percent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: u32, timestamp: u64, sm_util: u32) -> ProcessUtilizationSample {
        ProcessUtilizationSample { pid, timestamp, sm_util, mem_util: 1, enc_util: 0, dec_util: 0 }
    }

    fn sm(samples: Vec<ProcessUtilizationSample>, last_us: Option<u64>) -> Vec<(u32, u64)> {
        shares(samples, last_us).into_iter().map(|(pid, busy)| (pid, busy.sm_ppm)).collect()
    }

    #[test]
    fn samples_count_once() {
        let samples = || vec![sample(1, 10, 20), sample(2, 20, 50), sample(1, 20, 60)];
        assert_eq!(sm(samples(), None), [(1, 600_000), (2, 500_000)], "the newest of each");
        assert_eq!(sm(samples(), Some(9)), [(1, 400_000), (2, 500_000)], "the mean of what came");
        assert_eq!(sm(samples(), Some(10)), [(1, 600_000), (2, 500_000)]);
        assert_eq!(sm(samples(), Some(20)), []);
        assert_eq!(sm([samples(), samples()].concat(), Some(9)), [(1, 400_000), (2, 500_000)]);
        // What the driver fills in where it has nothing.
        assert_eq!(sm(vec![sample(0, 0, 0), sample(3, 30, 4_000_000)], Some(9)), [(3, 1_000_000)]);
    }
}
