//! The ring of samples of utilisation: one each 139 ms, unless told otherwise, of about the last 10 s. Each is
//! the share of the time since the one before, and the process that worked most in it has all the credit.

use std::{
    collections::BTreeMap,
    ffi::{c_uint, c_ulonglong},
    time::Duration,
};

use nvml_wrapper_sys::bindings::{nvmlProcessUtilizationSample_t, nvmlSample_t, nvmlValue_t};

use crate::{
    driver::{
        Handle, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, Return, SUCCESS,
        give, give_list, gpu,
    },
    scenario::{Gpu, Turns},
};

const SAMPLES: u64 = 72;
const SAMPLE_MS: u64 = 139;
/// Stamps do not begin at zero.
const BOOT_US: u64 = 1_000_000_000;
const UNSIGNED: c_uint = 1;
const OF_GPU: c_uint = 1;
const OF_MEMORY: c_uint = 2;

/// A sample: its stamp and percentage, and who has the credit for it.
struct Sample {
    stamp_us: u64,
    percent: u32,
    pid: Option<u32>,
}

/// Time that the work takes up to `at_us`.
fn busy_us(turns: Turns, at_us: u64) -> u64 {
    let us = |percent: u32| turns.period_ms * 10 * u64::from(percent);
    let (period_us, busy_us) = (turns.period_ms * 1000, us(turns.percent));
    let within_us = (at_us % period_us).saturating_sub(us(turns.from));
    at_us / period_us * busy_us + within_us.min(busy_us)
}

/// The ring as it is so long after the first opening.
fn ring(gpu: &Gpu, elapsed: Duration) -> Vec<Sample> {
    let sample_us = gpu.sample_ms.unwrap_or(SAMPLE_MS) * 1000;
    let last = (BOOT_US + elapsed.as_micros() as u64) / sample_us;
    let sample = |number: u64| {
        let (from_us, stamp_us) = ((number - 1) * sample_us, number * sample_us);
        let work = gpu.processes.iter().chain(&gpu.mps).filter_map(|process| {
            let turns = process.turns?;
            Some((busy_us(turns, stamp_us) - busy_us(turns, from_us), process.pid))
        });
        let work: Vec<_> = work.filter(|(busy_us, _)| *busy_us > 0).collect();
        let busy_us: u64 = work.iter().map(|(busy_us, _)| busy_us).sum();
        let percent = ((busy_us * 100 + sample_us / 2) / sample_us) as u32 + gpu.utilization;
        let pid = work.iter().max().map(|(_, pid)| *pid);
        Sample { stamp_us, percent: percent.min(gpu.utilization.max(100)), pid }
    };
    (last - SAMPLES + 1..=last).map(sample).collect()
}

/// The snapshot that drivers give for utilisation.
pub fn newest(gpu: &Gpu, elapsed: Duration) -> u32 {
    ring(gpu, elapsed).last().map_or(0, |sample| sample.percent)
}

/// As in nvml.h: utilisation alone.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    handle: Handle,
    of: c_uint,
    last_seen_us: c_ulonglong,
    kind: *mut c_uint,
    count: *mut c_uint,
    out: *mut nvmlSample_t,
) -> Return {
    gpu(handle, "nvmlDeviceGetSamples", |gpu, elapsed| {
        if count.is_null() || ![OF_GPU, OF_MEMORY].contains(&of) {
            return if count.is_null() { INVALID_ARGUMENT } else { NOT_SUPPORTED };
        }
        if out.is_null() {
            // SAFETY: not null, and the caller's word.
            return unsafe { give(count, SAMPLES as c_uint) };
        }
        let new = ring(gpu, elapsed).into_iter().filter(|sample| sample.stamp_us > last_seen_us);
        let percent = |percent: u32| if of == OF_GPU { percent } else { gpu.memory_utilization };
        let samples: Vec<_> = new
            .map(|sample| nvmlSample_t {
                timeStamp: sample.stamp_us,
                sampleValue: nvmlValue_t { uiVal: percent(sample.percent) },
            })
            .collect();
        if samples.is_empty() {
            return NOT_FOUND;
        }
        // SAFETY: the caller's word.
        unsafe {
            give(kind, UNSIGNED);
            give_list(count, out, &samples)
        }
    })
}

/// As in nvml.h: of processes that list samples those, all of a process of which one is newer, as drivers
/// do whose ring is coarser than their stamps. Of those that work in turns, one for each that has credit: its
/// part of the time since.
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
    gpu(handle, "nvmlDeviceGetProcessUtilization", |gpu, elapsed| {
        let mut samples = BTreeMap::new();
        let mut put = |pid: u32, stamp: u64, sm: u32, memory: u32| {
            let sample = nvmlProcessUtilizationSample_t {
                pid,
                timeStamp: stamp,
                smUtil: sm,
                memUtil: memory,
                encUtil: 0,
                decUtil: 0,
            };
            samples.insert((pid, stamp), sample);
        };
        for process in gpu.processes.iter().chain(&gpu.graphics) {
            let is_new = process.samples.iter().any(|(stamp, ..)| *stamp > last_seen_us);
            for &(stamp, sm, memory) in process.samples.iter().filter(|_| is_new) {
                put(process.pid, stamp, sm, memory);
            }
        }
        gpu.garbage.iter().for_each(|(pid, stamp, sm)| put(*pid, *stamp, *sm, 0));
        let mut ring = ring(gpu, elapsed);
        ring.retain(|sample| sample.stamp_us > last_seen_us);
        for process in gpu.processes.iter().chain(&gpu.mps) {
            let its = ring.iter().filter(|sample| sample.pid == Some(process.pid));
            if let Some(newest) = its.clone().next_back() {
                let sum: u32 = its.map(|sample| sample.percent).sum();
                put(process.pid, newest.stamp_us, sum / ring.len() as u32, 0);
            }
        }
        if count.is_null() {
            return INVALID_ARGUMENT;
        }
        if out.is_null() {
            // SAFETY: not null, and the caller's word.
            let given = unsafe { give(count, SAMPLES.max(samples.len() as u64) as c_uint) };
            return if given == SUCCESS { INSUFFICIENT_SIZE } else { given };
        }
        if samples.is_empty() {
            return NOT_FOUND;
        }
        let samples: Vec<_> = samples.into_values().collect();
        // SAFETY: the caller's word.
        unsafe { give_list(count, out, &samples) }
    })
}
