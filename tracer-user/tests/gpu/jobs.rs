//! Whose each value is.

use std::time::{Duration, Instant};

use fake_nvml::{Fake, Process};
use jobtrace::model::{group::Group, tables};

use super::rig::{
    GIB, NOBODY, ONE, TWO, gpu, groups, mean, process, readings, scenario, start, until, wait,
};

#[test]
fn a_device_is_told_of_by_the_job_that_is_on_it_alone() {
    let used = gpu("GPU-a", vec![process(ONE, 41 * GIB)]);
    let mut idle = gpu("GPU-b", vec![]);
    idle.utilization = 0;
    let fake = Fake::new(&scenario(vec![idle, used]));
    let begin = Instant::now();
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 5);
    let most = begin.elapsed().as_millis() as u64 * 512;
    assert_eq!(group.tags, ["1", "GPU-a", "NVIDIA H100 80GB HBM3", "nvidia", ""]);
    assert_eq!(mean(&group, tables::Gpu::utilization_ratio), Some(810_000));
    assert_eq!(mean(&group, tables::Gpu::memory_utilization_ratio), Some(400_000));
    assert_eq!(mean(&group, tables::Gpu::power_watts), Some(512_000));
    assert_eq!(mean(&group, tables::Gpu::sm_clock_hz), Some(1_980_000_000));
    assert_eq!(mean(&group, tables::Gpu::memory_clock_hz), Some(2_619_000_000));
    for (field, expected) in [
        (tables::Gpu::memory_used_bytes, 41 * GIB),
        (tables::Gpu::memory_peak_bytes, 41 * GIB),
        (tables::Gpu::memory_total_bytes, 80 * GIB),
        (tables::Gpu::temperature_max_celsius, 61),
        (tables::Gpu::processes, 1),
        (tables::Gpu::readings_shared, 0),
    ] {
        assert_eq!(group.number(field), Some(expected), "{field:?}");
    }
    // 512 W over the time of the readings, from the device's counter; the first begins it.
    let energy = group.number(tables::Gpu::energy_joules).unwrap();
    let least = (readings(&group) - 2) * 10 * 512;
    assert!((least..=most).contains(&energy), "{energy} mJ, not from {least} to {most}");
    assert_eq!(groups(&sampler, 2), []);
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn the_most_that_was_held_is_the_sum_of_the_jobs_processes() {
    let gpu = |processes| scenario(vec![gpu("GPU-a", processes)]);
    let fake = Fake::new(&gpu(vec![process(ONE, 3 * GIB), process(ONE + 1, 5 * GIB)]));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 2);
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(8 * GIB));
    assert_eq!(group.number(tables::Gpu::processes), Some(2));
    assert_eq!(group.number(tables::Gpu::readings_shared), Some(0), "all are of one job");
    assert_eq!(mean(&group, tables::Gpu::utilization_ratio), Some(810_000), "the device's");
    fake.set(&gpu(vec![process(ONE, GIB)]));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(GIB));
    assert_eq!(group.number(tables::Gpu::memory_peak_bytes), Some(8 * GIB));
}

#[test]
fn two_jobs_on_one_device_get_what_their_own_processes_did() {
    let sampled =
        |pid, sm, memory| Process { samples: vec![(1_000, sm, 10)], ..process(pid, memory) };
    let state = |stamp| {
        let mut processes = vec![sampled(ONE, 30, GIB), sampled(TWO, 50, 2 * GIB)];
        processes.iter_mut().for_each(|process| process.samples[0].0 = stamp);
        scenario(vec![gpu("GPU-a", processes)])
    };
    let fake = Fake::new(&state(1_000));
    let sampler = start(&fake);
    for (job, sm, memory) in [(1, 300_000, GIB), (2, 500_000, 2 * GIB)] {
        let group = wait(&sampler, job, |group| readings(group) >= 3);
        assert_eq!(mean(&group, tables::Gpu::utilization_ratio), Some(sm), "job {job}");
        assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(memory), "job {job}");
        assert!(group.number(tables::Gpu::readings_shared) >= Some(3), "job {job}");
        // What only the device tells is told, and that it is not the job's alone.
        assert_eq!(mean(&group, tables::Gpu::power_watts), Some(512_000), "job {job}");
        assert_eq!(
            group.hist(tables::Gpu::sm_activity_ratio),
            None,
            "the device's is not the job's"
        );
    }
    // The driver keeps giving the same sample: it was counted once.
    let samples = |group: &Group| group.hist(tables::Gpu::utilization_ratio).unwrap().count();
    let before = wait(&sampler, 1, |group| readings(group) >= 10);
    assert_eq!(samples(&before), 1);
    fake.set(&state(2_000));
    let after = wait(&sampler, 1, |group| samples(group) > 1);
    let later = wait(&sampler, 1, |group| readings(group) >= readings(&after) + 5);
    assert_eq!(samples(&later), samples(&after), "it was counted, for its time, and not again");
}

#[test]
fn a_process_of_nobody_shares_the_device_too() {
    let processes = vec![process(ONE, GIB), process(NOBODY, 30 * GIB)];
    let fake = Fake::new(&scenario(vec![gpu("GPU-a", processes)]));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(GIB));
    assert!(group.number(tables::Gpu::readings_shared) >= Some(3));
    // The device is busy and no process says with what: unknown, not zero.
    assert_eq!(mean(&group, tables::Gpu::utilization_ratio), None);
}

#[test]
fn a_process_may_come_and_go() {
    let with = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
    let without = scenario(vec![gpu("GPU-a", vec![])]);
    let fake = Fake::new(&without);
    let sampler = start(&fake);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(groups(&sampler, 1), []);
    fake.set(&with);
    wait(&sampler, 1, |group| readings(group) >= 3);
    fake.set(&without);
    let gone = wait(&sampler, 1, |group| group.number(tables::Gpu::processes).is_none());
    assert_eq!(gone.number(tables::Gpu::memory_used_bytes), None);
    assert_eq!(gone.number(tables::Gpu::memory_peak_bytes), Some(GIB));
    assert!(readings(&gone) >= 3);
    std::thread::sleep(Duration::from_millis(100));
    let still = groups(&sampler, 1);
    assert_eq!(still, std::slice::from_ref(&gone), "nothing grows while the job is not there");
    assert!(still[0].since(&gone).is_idle());
    fake.set(&with);
    let back = wait(&sampler, 1, |group| readings(group) > readings(&gone));
    assert_eq!(back.number(tables::Gpu::processes), Some(1));
    sampler.forget(&1);
    // What it does from then on is counted anew.
    until(|| groups(&sampler, 1).first().map(readings).filter(|count| *count < readings(&back)));
}

#[test]
fn memory_that_a_process_does_not_tell_is_the_devices_where_the_job_is_alone() {
    let silent = Process { pid: ONE, ..Process::default() };
    let fake = Fake::new(&scenario(vec![gpu("GPU-a", vec![silent.clone()])]));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 1);
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(42 * GIB));
    fake.set(&scenario(vec![gpu("GPU-a", vec![silent, process(TWO, GIB)])]));
    wait(&sampler, 1, |group| group.number(tables::Gpu::memory_used_bytes).is_none());
}

#[test]
fn one_that_draws_and_computes_is_one_process() {
    let mut both = gpu("GPU-a", vec![process(ONE, 2 * GIB)]);
    both.graphics = vec![process(ONE, 2 * GIB), process(ONE + 1, GIB)];
    let fake = Fake::new(&scenario(vec![both]));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 1);
    assert_eq!(group.number(tables::Gpu::processes), Some(2));
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(3 * GIB));
}
