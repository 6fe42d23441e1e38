//! The processes on a device: those in the driver's lists that count, and what each keeps busy.

use std::{collections::BTreeMap, time::Instant};

use nvml_wrapper::error::NvmlError;

use super::{
    asker::{Asker, Value},
    lists::{Kind, Listed, Lists},
    processes::{by_pid, shares},
    procs::Procs,
};
use crate::gpu::{
    member::read_cgroups,
    reading::{Busy, ProcessReading},
};

type Handle = nvml_wrapper::Device<'static>;

/// Who is on a device: memory of each by process id, and those that do nothing but draw.
pub struct Holders {
    pub memory_bytes: BTreeMap<u32, Option<u64>>,
    drawing: Vec<u32>,
}

/// The processes on `gpu`, each once.
///
/// # Errors
/// When the device is lost.
pub fn holders(
    asker: &mut Asker,
    gpu: &Handle,
    lists: Lists,
    procs: &Procs,
) -> Result<Holders, NvmlError> {
    let mut list = |value, kind| {
        let listed = asker.ask(value, || lists.read(gpu, kind))?;
        Ok::<_, NvmlError>(listed.map(|listed| believed(asker, value, listed)).unwrap_or_default())
    };
    let compute = list(Value::ComputeProcesses, Kind::Compute)?;
    let clients = list(Value::MpsClients, Kind::MpsClients)?;
    let graphics = by_pid(&list(Value::GraphicsProcesses, Kind::Graphics)?);
    let mut processes = by_pid(&compute);
    let drawing: Vec<u32> =
        graphics.keys().copied().filter(|pid| !processes.contains_key(pid)).collect();
    // One that is in several lists is there with all of its memory in each.
    for (pid, memory) in by_pid(&clients).into_iter().chain(graphics) {
        let known = processes.entry(pid).or_default();
        *known = (*known).max(memory);
    }
    processes.retain(|pid, _| procs.counts(*pid));
    Ok(Holders { memory_bytes: processes, drawing })
}

/// What each of the `holders` of `gpu` does there. `device` is how busy it is as a whole.
///
/// # Errors
/// When the device is lost.
pub fn processes(
    asker: &mut Asker,
    gpu: &Handle,
    holders: Holders,
    device: Option<Busy>,
    procs: &Procs,
) -> Result<Vec<ProcessReading>, NvmlError> {
    let Holders { memory_bytes: processes, drawing } = holders;
    // With one process the device's own figure is better, and the question is spared.
    let shares =
        if processes.len() > 1 { own_shares(asker, gpu, device, &processes)? } else { None };
    // A sample is of the whole time since the stamp that is asked for: the next one's is to begin now, even if no
    // process had a part in what came last.
    let of_gpu = asker.memory.of_gpu;
    asker.memory.of_processes.follow(&of_gpu);
    let process = |(pid, memory_bytes)| ProcessReading {
        pid,
        cgroups: read_cgroups(procs.path(), pid).unwrap_or_default(),
        memory_bytes,
        busy: shares.as_ref().map(|shares| shares.get(&pid).copied().unwrap_or_default()),
        only_draws: drawing.contains(&pid),
        ..ProcessReading::default()
    };
    Ok(processes.into_iter().map(process).collect())
}

/// A list, unless it names instances on a device that has none: then its records are not what they seem.
fn believed(asker: &mut Asker, value: Value, listed: Vec<Listed>) -> Vec<Listed> {
    if asker.is_part || listed.iter().all(|process| !process.is_on_instance) {
        return listed;
    }
    asker.say(value, "its driver writes lists of processes in a form that is not known");
    Vec::new()
}

/// How busy each of the `listed` processes was since the last reading; `None` where that is not told or nothing new is.
fn own_shares(
    asker: &mut Asker,
    gpu: &Handle,
    device: Option<Busy>,
    listed: &BTreeMap<u32, Option<u64>>,
) -> Result<Option<BTreeMap<u32, Busy>>, NvmlError> {
    let now = Instant::now();
    let since_us = asker.memory.of_processes.since_us(now);
    let samples =
        asker.ask(Value::ProcessUtilization, || match gpu.process_utilization_stats(since_us) {
            Err(NvmlError::NotFound) => Ok(Vec::new()),
            samples => samples,
        })?;
    let Some(mut samples) = samples else { return Ok(None) };
    // What the driver fills in where it has nothing, and what it makes up.
    samples.retain(|of| of.sm_util.max(of.mem_util) <= 100 && listed.contains_key(&of.pid));
    let new = asker.memory.of_processes.take(samples, now, |of| of.timestamp);
    let shares = shares(new, since_us.is_none());
    // No sample is no work, if the device says so too; else there is none yet.
    let is_idle = device.is_some_and(|device| device.sm_ppm == 0);
    Ok((!shares.is_empty() || is_idle).then_some(shares))
}
