//! NVML counts references: as long as somebody has one, devices cannot be reset, and what was lost stays so.

use std::{
    process,
    time::{Duration, Instant},
};

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace::gpu::{Sampler, SamplerSettings};

use super::rig::{
    GIB, ONE, gpu, groups, owner, process, readings, scenario, settings, until, wait,
};

const LOST: u32 = 15;
const HANGS: Duration = Duration::from_secs(2);

fn state(change: impl Fn(&mut Gpu)) -> Scenario {
    let mut gpu = gpu("GPU-a", vec![process(ONE, GIB)]);
    change(&mut gpu);
    scenario(vec![gpu])
}

/// A lost device is not looked for again while the test runs.
fn patient(fake: &Fake) -> SamplerSettings {
    SamplerSettings { back_off: Duration::from_secs(3600), ..settings(fake) }
}

fn seen(sampler: &Sampler<u32>) {
    wait(sampler, 1, |group| readings(group) >= 2);
}

#[test]
fn a_sampler_that_ends_gives_its_reference_back() {
    let fake = Fake::new(&state(|_| {}));
    let references = || fake.references(process::id());
    let mut sampler = Sampler::start(settings(&fake), owner).unwrap();
    for _ in 0..5 {
        seen(&sampler);
        assert_eq!(references(), 1);
        sampler = Sampler::start_after(Some(sampler.end()), settings(&fake), owner).unwrap();
    }
    seen(&sampler);
    assert_eq!(references(), 1, "after five reloads");
    drop(sampler);
    until(|| (references() == 0).then_some(()));
}

#[test]
fn what_was_lost_is_found_by_the_next_sampler() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = Sampler::start(patient(&fake), owner).unwrap();
    seen(&sampler);
    fake.set(&state(|gpu| _ = gpu.errors.insert("nvmlDeviceGetPowerUsage".into(), LOST)));
    until(|| sampler.notes_for(&1).pop());
    fake.set(&state(|_| {}));
    let sampler = Sampler::start_after(Some(sampler.end()), patient(&fake), owner).unwrap();
    seen(&sampler);
}

#[test]
fn one_that_ends_while_it_waits_lets_nobody_pass() {
    let fake = Fake::new(&state(|_| {}));
    let first = Sampler::start(patient(&fake), owner).unwrap();
    seen(&first);
    let ms = HANGS.as_millis() as u64;
    fake.set(&state(|gpu| _ = gpu.hang_ms.insert("nvmlDeviceGetPowerUsage".into(), ms)));
    std::thread::sleep(Duration::from_millis(100));
    let ending = first.end();
    fake.set(&state(|_| {}));
    let second = Sampler::start_after(Some(ending), patient(&fake), owner).unwrap();
    let third = Sampler::start_after(Some(second.end()), patient(&fake), owner).unwrap();
    until(|| {
        assert!(fake.references(process::id()) <= 1, "the third opened before the first had ended");
        (!groups(&third, 1).is_empty()).then_some(())
    });
}

#[test]
fn a_driver_that_hangs_holds_up_the_next_sampler_and_nobody_else() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = Sampler::start(patient(&fake), owner).unwrap();
    seen(&sampler);
    let ms = HANGS.as_millis() as u64;
    fake.set(&state(|gpu| _ = gpu.hang_ms.insert("nvmlDeviceGetPowerUsage".into(), ms)));
    std::thread::sleep(Duration::from_millis(100));
    let begin = Instant::now();
    let ending = sampler.end();
    fake.set(&state(|_| {}));
    let sampler = Sampler::start_after(Some(ending), patient(&fake), owner).unwrap();
    assert_eq!(groups(&sampler, 1), [], "it waits");
    assert!(begin.elapsed() < HANGS / 2, "{:?}", begin.elapsed());
    until(|| {
        assert!(fake.references(process::id()) <= 1, "the first opening after the last end");
        (!groups(&sampler, 1).is_empty()).then_some(())
    });
    assert!(begin.elapsed() > HANGS / 2, "{:?}", begin.elapsed());
}
