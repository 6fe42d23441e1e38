//! Libraries and devices that do not open.

use std::{fs, time::Duration};

use fake_nvml::{Fake, Scenario};
use jobtrace::gpu::{Sampler, SamplerSettings};

use super::rig::{
    GIB, ONE, TWO, gpu, groups, owner, process, readings, scenario, settings, start, until, wait,
};

const NO_PERMISSION: u32 = 4;
const DRIVER_NOT_LOADED: u32 = 9;
const VERSION_MISMATCH: u32 = 18;
const NOT_READY: u32 = 27;
const GPU_NOT_FOUND: u32 = 28;
const UNKNOWN: u32 = 999;

fn state() -> Scenario {
    scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])])
}

fn opening(function: &str, error: u32) -> Scenario {
    let mut state = state();
    state.errors.insert(function.into(), error);
    state
}

#[test]
fn without_library_driver_or_device_nothing_is_said_and_no_thread_stays() {
    let fakes = [
        Fake::without_library(),
        Fake::new(&opening("nvmlInit_v2", DRIVER_NOT_LOADED)),
        Fake::new(&opening("nvmlInit_v2", GPU_NOT_FOUND)),
        Fake::lacking(&state(), &["nvmlInit_v2"]),
        Fake::new(&scenario(vec![])),
    ];
    for fake in &fakes {
        let sampler = start(fake);
        until(|| {
            assert_eq!(sampler.notes(), [""; 0]);
            (!sampler.is_running()).then_some(())
        });
        assert_eq!(groups(&sampler, 1), []);
    }
}

#[test]
fn a_library_that_is_broken_is_not_taken_for_none() {
    let fake = Fake::without_library();
    fs::write(fake.library(), b"\x7fELF, but for its beginning").unwrap();
    let sampler = start(&fake);
    let notes = until(|| Some(sampler.notes()).filter(|notes| !notes.is_empty()));
    assert!(notes[0].starts_with("GPU values are unknown: NVML reports: "), "{notes:?}");
    fake.set(&state());
    fake.install();
    wait(&sampler, 1, |group| readings(group) >= 1);
}

#[test]
fn a_driver_that_is_loaded_later_is_found() {
    let fake = Fake::without_library();
    fake.set(&opening("nvmlInit_v2", DRIVER_NOT_LOADED));
    let retry = Some(Duration::from_millis(20));
    let sampler = Sampler::start(SamplerSettings { retry, ..settings(&fake) }, owner).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    fake.install();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(groups(&sampler, 1), []);
    assert_eq!(sampler.cost().readings, 0, "what finds no device is no reading");
    fake.set(&state());
    wait(&sampler, 1, |group| readings(group) >= 1);
    // It counts right after its values are there.
    until(|| (sampler.cost().readings > 0).then_some(()));
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn a_library_that_fails_is_said_and_tried_again() {
    for (function, error) in [
        ("nvmlInit_v2", VERSION_MISMATCH),
        ("nvmlInit_v2", NOT_READY),
        ("nvmlDeviceGetCount_v2", UNKNOWN),
    ] {
        let fake = Fake::new(&opening(function, error));
        let sampler = start(&fake);
        let notes = until(|| Some(sampler.notes()).filter(|notes| !notes.is_empty()));
        assert!(notes[0].starts_with("GPU values are unknown: NVML reports: "), "{notes:?}");
        fake.set(&state());
        wait(&sampler, 1, |group| readings(group) >= 1);
        assert_eq!(sampler.notes().len(), 1, "once");
    }
}

#[test]
fn a_device_that_cannot_be_opened_leaves_the_others() {
    for (error, said) in [(NO_PERMISSION, 0), (UNKNOWN, 1)] {
        let mut both = state();
        both.gpus.insert(0, gpu("GPU-z", vec![process(TWO, GIB)]));
        both.gpus[0].errors.insert("nvmlDeviceGetHandleByIndex_v2".into(), error);
        let fake = Fake::new(&both);
        let sampler = start(&fake);
        wait(&sampler, 1, |group| readings(group) >= 3);
        assert_eq!(groups(&sampler, 2), []);
        assert_eq!(sampler.notes().len(), said, "{:?}", sampler.notes());
    }
}
