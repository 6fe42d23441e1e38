//! One device of an opened library, or its MIG instances where it is divided: asked for all they tell.

use std::{
    collections::{HashMap, VecDeque},
    ffi::c_uint,
    sync::Arc,
};

use nvml_wrapper::{
    Nvml,
    bitmasks::device::ThrottleReasons,
    enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor},
    error::{NvmlError, nvml_try},
};

use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlReturn_t};

use super::{
    asker::{Asker, Known, Value},
    fields::{self, Fields},
    gpm::Gpm,
    holders::{holders, processes},
    lists::Lists,
    memory,
    pace::FOR_READINGS,
    procs::Procs,
    utilization::{Asked, busy},
    xids::{Xid, Xids},
};
use crate::gpu::{
    failure::Failure,
    reading::{Counters, Device, DeviceReading, Throttled, ppm},
    source::Answers,
};

type Handle = nvml_wrapper::Device<'static>;

/// One device, whole.
pub struct Gpu {
    handle: Handle,
    device: Arc<Device>,
    lists: Lists,
    /// Whether it was when that was told last.
    is_divided: bool,
    /// Readings up to the next question whether it is.
    until_parts: u32,
    xids: Xids,
    /// Of the device, or of its instances by uuid.
    gpm: HashMap<String, Gpm>,
}

/// A MIG instance as it is now.
struct MigInstance {
    handle: Handle,
    device: Arc<Device>,
    /// Id of its GPU instance.
    id: Option<u32>,
}

impl Gpu {
    /// The device of that index; `lists` as this driver writes them.
    ///
    /// # Errors
    /// When it cannot be had, or has no uuid.
    pub fn open(nvml: &'static Nvml, index: u32, lists: Lists) -> Result<Self, NvmlError> {
        let handle = nvml.device_by_index(index)?;
        let device = describe(&handle, Device { index, ..Device::default() })?;
        let (xids, gpm) = (Xids::default(), HashMap::new());
        Ok(Self { handle, device, lists, is_divided: false, until_parts: 0, xids, gpm })
    }

    /// Its name for ever.
    pub fn uuid(&self) -> &str {
        &self.device.uuid
    }

    /// Its number and model, as a note names it.
    pub fn name(&self) -> String {
        name(&self.device)
    }

    /// Asks for everything; what `procs` tells of each process is told with it.
    ///
    /// # Errors
    /// When the device is lost. Its errors are told in `answers` even then.
    pub fn read(
        &mut self,
        known: &mut Known,
        procs: &Procs,
        answers: &mut Answers,
    ) -> Result<(), NvmlError> {
        let Self { handle, device, lists, is_divided, until_parts, xids, gpm } = self;
        let mut asker = asker(known, device, false);
        let told = asker.ask(Value::Xids, || xids.read(handle));
        // Instances come and go while it is divided; whether it is seldom changes, and the question is dear.
        let is_asked = *is_divided || *until_parts == 0;
        *until_parts = until_parts.checked_sub(1).unwrap_or(FOR_READINGS - 1);
        let parts = match is_asked {
            true => asker.ask(Value::Parts, || parts(handle, device)),
            false => Ok(Some(None)),
        };
        asker.tell(&device.uuid, answers);
        let told = told?;
        let (parts, mut read) = match parts {
            // Nothing now of what may be divided: as a whole it would be another device.
            Ok(None) if *is_divided => (Some(Vec::new()), Ok(())),
            Ok(parts) => (parts.flatten(), Ok(())),
            Err(error) => (None, Err(error)),
        };
        *is_divided = parts.is_some();
        let mut rest: VecDeque<(&Arc<Device>, Option<&MigInstance>)> = match &parts {
            Some(parts) => parts.iter().map(|part| (&part.device, Some(part))).collect(),
            None => [(&*device, None)].into(),
        };
        gpm.retain(|uuid, _| rest.iter().any(|(device, _)| device.uuid == *uuid));
        while read.is_ok()
            && let Some((device, part)) = rest.front().copied()
        {
            let mut reader = Reader { handle, device, lists: *lists, gpm, part, procs };
            read = reader.read(known, told.as_deref(), answers).map(|reading| {
                answers.devices.push(reading);
                rest.pop_front();
            });
        }
        // The device is lost with these; why it is may be what was reported.
        if told.as_ref().is_some_and(|told| !told.is_empty()) {
            answers.devices.extend(rest.into_iter().map(|(device, part)| DeviceReading {
                device: Arc::clone(device),
                xids: codes(told.as_deref(), part),
                ..DeviceReading::default()
            }));
        }
        read
    }
}

fn name(device: &Device) -> String {
    format!("GPU {} ({})", device.number(), device.model)
}

fn asker<'a>(known: &'a mut Known, device: &Device, is_part: bool) -> Asker<'a> {
    Asker::new(name(device), is_part, known.of(&device.uuid))
}

/// Fills in what does not change about a device.
fn describe(handle: &Handle, device: Device) -> Result<Arc<Device>, NvmlError> {
    let memory = memory::read(handle).ok();
    Ok(Arc::new(Device {
        uuid: handle.uuid()?,
        model: handle.name().unwrap_or_default(),
        vendor: "nvidia".into(),
        minor: handle.minor_number().ok(),
        memory_total_bytes: memory.map(|memory| memory.total_bytes).filter(|total| *total > 0),
        ..device
    }))
}

/// The instances there are now; `None` for a device that is not divided. They come and go while it runs.
fn parts(whole: &Handle, device: &Device) -> Result<Option<Vec<MigInstance>>, NvmlError> {
    if whole.mig_mode()?.current == 0 {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for number in 0..whole.mig_device_count()? {
        let handle = match whole.mig_device_by_index(number) {
            Err(NvmlError::NotFound | NvmlError::InvalidArg) => continue,
            handle => handle?,
        };
        let id = instance_id(&handle, |lib| lib.nvmlDeviceGetGpuInstanceId.as_ref().ok()).ok();
        let within =
            instance_id(&handle, |lib| lib.nvmlDeviceGetComputeInstanceId.as_ref().ok()).ok();
        let part = Device {
            index: device.index,
            instance: Some(number),
            instance_ids: id.zip(within).map(<[u32; 2]>::from),
            parent: device.uuid.clone(),
            ..Device::default()
        };
        match describe(&handle, part) {
            Ok(device) => parts.push(MigInstance { id, handle, device }),
            Err(error) if Failure::of(&error) == Failure::Lost => return Err(error),
            // Destroyed since it was listed.
            Err(_) => {}
        }
    }
    Ok(Some(parts))
}

/// A function that the wrapper does not offer: an instance's id.
type AskId = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint) -> nvmlReturn_t;

/// One of an instance's ids.
fn instance_id(part: &Handle, ask: fn(&NvmlLib) -> Option<&AskId>) -> Result<u32, NvmlError> {
    let ask = ask(part.nvml().lib()).ok_or(NvmlError::NotSupported)?;
    let mut id = 0;
    // SAFETY: the handle is of this library, which writes one number.
    nvml_try(unsafe { ask(part.handle(), &mut id) })?;
    Ok(id)
}

/// The codes that concern an instance, or the whole device.
fn codes(xids: Option<&[Xid]>, part: Option<&MigInstance>) -> Option<Vec<u64>> {
    let concerns = |xid: &&Xid| match (part, xid.instance) {
        (Some(part), Some(instance)) => part.id == Some(instance),
        _ => true,
    };
    xids.map(|xids| xids.iter().filter(concerns).map(|xid| xid.code).collect())
}

/// One reading of a device or an instance.
struct Reader<'a> {
    /// Of the whole device.
    handle: &'a Handle,
    device: &'a Arc<Device>,
    lists: Lists,
    gpm: &'a mut HashMap<String, Gpm>,
    part: Option<&'a MigInstance>,
    procs: &'a Procs,
}

impl Reader<'_> {
    fn read(
        &mut self,
        known: &mut Known,
        xids: Option<&[Xid]>,
        answers: &mut Answers,
    ) -> Result<DeviceReading, NvmlError> {
        let (whole, part) = (self.handle, self.part);
        let gpu = part.map_or(whole, |part| &part.handle);
        let mut asker = asker(known, self.device, part.is_some());
        let gpm = self.gpm.entry(self.device.uuid.clone()).or_default();
        let holders = holders(&mut asker, gpu, self.lists, self.procs)?;
        let pids = holders.memory_bytes.keys().copied().collect();
        let is_due = asker.memory.pace.is_due(pids);
        let is_held = !holders.memory_bytes.is_empty();
        let hertz = |megahertz| Some(told(megahertz)? * 1_000_000);
        let instance = part.map(|part| part.id.ok_or(NvmlError::NotSupported));
        let (activity, traffic) = asker
            .ask(Value::Activity, || match &instance {
                Some(Err(_)) => Err(NvmlError::NotSupported),
                Some(Ok(id)) => gpm.read(whole, Some(*id)),
                None => gpm.read(whole, None),
            })?
            .unwrap_or_default();
        let memory_by_snapshot = activity.dram_ppm.is_some();
        let busy = busy(&mut asker, gpu, Asked { is_held, memory_by_snapshot })?;
        let mut silent = std::mem::take(&mut asker.memory.silent);
        let fields = asker.ask(Value::Fields, || {
            let of_links = traffic.pcie_sent_bytes.is_none();
            fields::read(gpu, fields::Asked { is_held, is_due, of_links }, &mut silent)
        });
        asker.memory.silent = silent;
        let Fields { memory_celsius, remapped_rows, counters } = fields?.unwrap_or_default();
        let ecc_uncorrected = asker.ask(Value::Ecc, || {
            gpu.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile)
        })?;
        let reading = DeviceReading {
            device: Arc::clone(self.device),
            busy,
            activity,
            memory_used_bytes: asker.ask(Value::Memory, || Ok(memory::read(gpu)?.used_bytes))?,
            power_milliwatts: asker.ask(Value::Power, || gpu.power_usage())?.and_then(told),
            energy_millijoules: match is_due {
                true => asker.ask(Value::Energy, || gpu.total_energy_consumption())?,
                false => None,
            },
            sm_clock_hz: asker.ask(Value::Clock, || gpu.clock_info(Clock::SM))?.and_then(hertz),
            memory_clock_hz: asker
                .ask(Value::MemoryClock, || gpu.clock_info(Clock::Memory))?
                .and_then(hertz),
            temperature_celsius: asker
                .ask(Value::Temperature, || gpu.temperature(TemperatureSensor::Gpu))?
                .and_then(told),
            throttled: asker
                .ask(Value::Throttling, || Ok(throttled(gpu.current_throttle_reasons()?)))?,
            memory_temperature_celsius: memory_celsius,
            power_limit_milliwatts: asker
                .ask(Value::PowerLimit, || gpu.enforced_power_limit())?
                .and_then(told),
            remapped_rows,
            encoder_ppm: asker
                .ask(Value::Encoder, || gpu.encoder_utilization())?
                .and_then(|of| ppm(of.utilization.into())),
            decoder_ppm: asker
                .ask(Value::Decoder, || gpu.decoder_utilization())?
                .and_then(|of| ppm(of.utilization.into())),
            traffic,
            counters: Counters { ecc_uncorrected, ..counters },
            xids: codes(xids, part),
            processes: processes(&mut asker, gpu, holders, busy, self.procs)?,
        };
        asker.tell(&self.device.uuid, answers);
        Ok(reading)
    }
}

/// A number; the largest stands for one that is not available (NVML_VALUE_NOT_AVAILABLE).
fn told(number: u32) -> Option<u64> {
    (number != u32::MAX).then_some(number.into())
}

/// Families of reasons. A slowdown of the hardware that comes with its cause is of that family.
fn throttled(reasons: ThrottleReasons) -> Throttled {
    use ThrottleReasons as R;
    let power = reasons.intersects(R::SW_POWER_CAP | R::HW_POWER_BRAKE_SLOWDOWN);
    let thermal = reasons.intersects(R::SW_THERMAL_SLOWDOWN | R::HW_THERMAL_SLOWDOWN);
    let caused = reasons.intersects(R::HW_THERMAL_SLOWDOWN | R::HW_POWER_BRAKE_SLOWDOWN);
    let other = reasons.intersects(R::SYNC_BOOST | R::DISPLAY_CLOCK_SETTING)
        || reasons.contains(R::HW_SLOWDOWN) && !caused;
    Throttled { power, thermal, other }
}
