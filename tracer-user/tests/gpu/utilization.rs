//! How busy a device and the processes on it were, by the driver's rings.

use std::time::Duration;

use fake_nvml::{Fake, Gpu, Process, Turns};
use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{Sampler, SamplerSettings},
    model::{group::Group, hist::Hist, tables},
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

/// Share of the time in which the device was busy, in percent, as each of two ways of telling it.
fn percent(group: &Group) -> [f64; 2] {
    let number = |field| group.number(field).unwrap() as f64;
    let of_time = number(tables::Gpu::busy_ns) / number(tables::Gpu::held_ns) * 100.0;
    let of_readings = group.hist(tables::Gpu::utilization_ratio).and_then(Hist::mean).unwrap();
    [of_time, of_readings / 1e4]
}

fn working(pid: u32, turns: Turns) -> Process {
    Process { turns: Some(turns), ..process(pid, GIB) }
}

/// A device that does nothing else.
fn in_turns(processes: Vec<Process>) -> Gpu {
    Gpu { utilization: 0, sample_ms: Some(SAMPLE_MS), ..gpu("GPU-a", processes) }
}

#[test]
fn work_in_turns_is_seen_whatever_their_length() {
    for turn_ms in [30, 97, 100, 500] {
        let works = working(ONE, Turns { period_ms: turn_ms, from: 0, percent: 40 });
        let fake = Fake::new(&scenario(vec![in_turns(vec![works])]));
        let settings = SamplerSettings { period: PERIOD, ..settings(&fake) };
        let sampler = Sampler::start(settings, owner).unwrap();
        let least_ns = (turn_ms * TURNS).max(2_000) * 1_000_000;
        let group = wait(&sampler, 1, |group| {
            sampler.look(&1, monotonic_ns(), None);
            group.number(tables::Gpu::held_ns) >= Some(least_ns)
        });
        let percent = percent(&group);
        let is_near = |percent: &f64| (percent - 40.0).abs() < 5.0;
        assert!(percent.iter().all(is_near), "{turn_ms} ms: {percent:?} %");
        assert_eq!(mean(&group, tables::Gpu::memory_utilization_ratio), Some(400_000));
    }
}

/// A busy machine keeps the sampler from its turns now and then: a share that is told well in one of three tries.
fn is_near_once(measure: impl Fn() -> Vec<(&'static str, f64, f64)>) {
    let mut tries = Vec::new();
    for _ in 0..3 {
        let shares = measure();
        if shares.iter().all(|(_, percent, expected)| (percent - expected).abs() < 5.0) {
            return;
        }
        tries.push(shares);
    }
    panic!("what, percent, expected: {tries:?}");
}

#[test]
fn what_two_jobs_keep_busy_adds_up() {
    let works = |pid, from, percent| working(pid, Turns { period_ms: 200, from, percent });
    is_near_once(|| {
        let fake =
            Fake::new(&scenario(vec![in_turns(vec![works(ONE, 0, 20), works(TWO, 50, 40)])]));
        let settings = SamplerSettings { period: PERIOD, ..settings(&fake) };
        let sampler = Sampler::start(settings, owner).unwrap();
        let mut told = Vec::new();
        for (job, name, expected) in [(1, "one", 20.0), (2, "the other", 40.0)] {
            let group = wait(&sampler, job, |group| {
                sampler.look(&job, monotonic_ns(), None);
                group.number(tables::Gpu::held_ns) >= Some(3_000_000_000)
                    && group.number(tables::Gpu::busy_ns).is_some()
            });
            let [of_device, of_job] = percent(&group);
            told.extend([(name, of_job, expected), ("both", of_device, 60.0)]);
        }
        told
    });
}

#[test]
fn readings_that_come_late_count_for_their_time() {
    let mut state = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
    // Of two and a half periods each.
    state.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), 250);
    let fake = Fake::new(&state);
    let settings = SamplerSettings { period: PERIOD, ..settings(&fake) };
    let sampler = Sampler::start(settings, owner).unwrap();
    let group = wait(&sampler, 1, |group| readings(group) >= 6);
    let (late, held_ns) = (readings(&group) - 1, group.number(tables::Gpu::held_ns).unwrap());
    let periods = group.hist(tables::Gpu::utilization_ratio).unwrap().count() - 1;
    let passed = held_ns as f64 / PERIOD.as_nanos() as f64;
    // Each is rounded.
    assert!((periods as f64 - passed).abs() <= late as f64 / 2.0, "{periods} of {passed}");
    assert!(periods >= late * 3, "{periods} in {late} readings, three periods apart");
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
    // What comes next counts, for all the garbage, and for as long as nothing came before it.
    for process in &mut state.gpus[0].processes {
        process.samples = vec![(7_400_000, 10, 5)];
    }
    fake.set(&state);
    for (job, first) in [(1, 300_000), (2, 500_000)] {
        let told = |group: &Group| {
            let hist = group.hist(tables::Gpu::utilization_ratio)?;
            (hist.count() > 1).then(|| (hist.sum - first) / (hist.count() - 1))
        };
        let group = wait(&sampler, job, |group| told(group).is_some());
        assert_eq!(told(&group), Some(100_000), "job {job}");
    }
}
