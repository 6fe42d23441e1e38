//! A driver that hangs holds up nobody but the sampler itself.

use std::time::{Duration, Instant};

use fake_nvml::Fake;
use jobtrace::{base::clock::monotonic_ns, model::tables};

use super::rig::{GIB, ONE, gpu, process, readings, scenario, start, until, wait};

#[test]
fn nobody_waits_for_a_driver_that_hangs() {
    let mut state = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    let before = wait(&sampler, 1, |group| readings(group) >= 3);
    state.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), 3_000);
    fake.set(&state);
    // Until two looks, far enough apart, see the same: the call hangs.
    let stuck = until(|| {
        let count = || sampler.groups_for(&1, monotonic_ns()).first().map(readings);
        let first = count();
        std::thread::sleep(Duration::from_millis(300));
        first.filter(|first| Some(*first) == count())
    });
    assert!(stuck >= readings(&before));
    let start = Instant::now();
    let group = sampler.groups_for(&1, monotonic_ns()).remove(0);
    assert_eq!(group.number(tables::Gpu::processes), Some(1), "the last state stands for a while");
    let later = sampler.groups_for(&1, monotonic_ns() + 6_000_000_000).remove(0);
    assert_eq!(later.number(tables::Gpu::processes), None, "then it is unknown");
    assert_eq!(readings(&later), stuck);
    let notes = sampler.notes_for(&1);
    assert!(start.elapsed() < Duration::from_millis(50), "{:?}", start.elapsed());
    assert_eq!(notes, ["the GPU driver took more than 5 s to answer: GPU values have gaps"]);
    sampler.groups_for(&1, monotonic_ns() + 6_000_000_000);
    assert_eq!(sampler.notes_for(&1).len(), 1, "said once");
    state.gpus[0].hang_ms.clear();
    fake.set(&state);
    let back = wait(&sampler, 1, |group| readings(group) > stuck + 3);
    assert_eq!(back.number(tables::Gpu::processes), Some(1));
}

/// Each call answers in time, and all of them together do not.
#[test]
fn a_driver_that_is_slow_is_said_to_leave_gaps() {
    let mut state = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 3);
    for function in
        ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo"]
    {
        state.gpus[0].hang_ms.insert(function.into(), 1_300);
    }
    fake.set(&state);
    let before = sampler.cost().readings;
    // Nobody asks for values meanwhile.
    until(|| (sampler.cost().readings >= before + 2).then_some(()));
    let notes = sampler.notes_for(&1);
    assert_eq!(notes, ["the GPU driver took more than 5 s to answer: GPU values have gaps"]);
}

#[test]
fn the_end_waits_for_no_driver() {
    let mut state = scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])]);
    state.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), 2_000);
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    std::thread::sleep(Duration::from_millis(200));
    let start = Instant::now();
    drop(sampler);
    assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
}
