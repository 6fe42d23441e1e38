//! How busy a device and the processes on it were, by the driver's rings.

use std::time::Duration;

use fake_nvml::{Fake, Gpu, Process};
use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{Sampler, SamplerSettings},
    model::{group::Group, tables},
};

use super::rig::{
    GIB, NOBODY, ONE, TWO, gpu, mean, owner, process, readings, scenario, settings, start, wait,
};

/// A tenth of what they are of a driver and an agent.
const SAMPLE_MS: u64 = 14;
const PERIOD: Duration = Duration::from_millis(100);
const NOT_SUPPORTED: u32 = 3;

/// Turns that are watched: the last one is cut short.
const TURNS: u64 = 10;

/// Share of the time in which the device was busy, in percent. Of readings that come late each still counts once
/// in the histogram: their mean is no share of the time.
fn percent(group: &Group) -> f64 {
    let number = |field| group.number(field).unwrap() as f64;
    number(tables::Gpu::busy_ns) / number(tables::Gpu::held_ns) * 100.0
}

#[test]
fn work_in_turns_is_seen_whatever_their_length() {
    for turn_ms in [30, 97, 100, 500] {
        let busy = Gpu {
            turns: Some((turn_ms, 40)),
            sample_ms: Some(SAMPLE_MS),
            ..gpu("GPU-a", vec![process(ONE, GIB)])
        };
        let fake = Fake::new(&scenario(vec![busy]));
        let settings = SamplerSettings { period: PERIOD, ..settings(&fake) };
        let sampler = Sampler::start(settings, owner).unwrap();
        let least_ns = (turn_ms * TURNS).max(2_000) * 1_000_000;
        let group = wait(&sampler, 1, |group| {
            sampler.look(&1, monotonic_ns(), None);
            group.number(tables::Gpu::held_ns) >= Some(least_ns)
        });
        assert!((percent(&group) - 40.0).abs() < 5.0, "{turn_ms} ms: {} %", percent(&group));
        assert_eq!(mean(&group, tables::Gpu::memory_utilization_ratio), Some(400_000));
    }
}

#[test]
fn without_a_ring_the_snapshot_counts() {
    for lacks_all in [false, true] {
        let mut state = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
        state.gpus[0].errors.insert("nvmlDeviceGetSamples".into(), NOT_SUPPORTED);
        let fake = match lacks_all {
            true => Fake::lacking(&state, &["nvmlDeviceGetSamples"]),
            false => Fake::new(&state),
        };
        let sampler = start(&fake);
        let group = wait(&sampler, 1, |group| readings(group) >= 3);
        assert_eq!(mean(&group, tables::Gpu::utilization_ratio), Some(810_000));
        assert_eq!(sampler.notes(), [""; 0]);
    }
}

#[test]
fn what_drivers_make_up_of_processes_is_nobodys() {
    let sampled = |pid, sm| Process { samples: vec![(7_000_000, sm, 5)], ..process(pid, GIB) };
    let mut state = scenario(vec![gpu("GPU-a", vec![sampled(ONE, 30), sampled(TWO, 50)])]);
    // More than all, a stamp of nowhere, one that is on no device.
    state.gpus[0].garbage = vec![
        (ONE, 7_500_000, 4_000_000),
        (TWO, u64::MAX, 90),
        (NOBODY, 7_000_000, 90),
        (ONE, 0, 90),
    ];
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    for (job, ppm) in [(1, 300_000), (2, 500_000)] {
        let group = wait(&sampler, job, |group| readings(group) >= 5);
        assert_eq!(mean(&group, tables::Gpu::utilization_ratio), Some(ppm), "job {job}");
        assert_eq!(group.hist(tables::Gpu::utilization_ratio).unwrap().count(), 1, "job {job}");
    }
    // What comes next counts, for all the garbage.
    for process in &mut state.gpus[0].processes {
        process.samples = vec![(7_400_000, 10, 5)];
    }
    fake.set(&state);
    wait(&sampler, 1, |group| mean(group, tables::Gpu::utilization_ratio) == Some(200_000));
    wait(&sampler, 2, |group| mean(group, tables::Gpu::utilization_ratio) == Some(300_000));
}
