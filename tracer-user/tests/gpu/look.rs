//! The look that `doctor` takes.

use std::fs;

use fake_nvml::{Fake, Scenario};
use jobtrace::gpu::{FoundGpus, look};

use super::rig::{gpu, scenario};

fn found(fake: &Fake) -> FoundGpus {
    look(Some(fake.library()), "/nonexistent".into())
}

#[test]
fn devices_and_what_they_lack_are_named() {
    let mut state = scenario(vec![gpu("GPU-a", vec![]), gpu("GPU-b", vec![])]);
    state.gpus[1].errors.insert("nvmlDeviceGetTotalEnergyConsumption".into(), 3);
    let FoundGpus::Gpus { driver, names, lacking, lost, refused } = found(&Fake::new(&state))
    else {
        panic!("no devices");
    };
    assert_eq!(driver, "550.54.15");
    assert_eq!(names, ["GPU 0 (NVIDIA H100 80GB HBM3)", "GPU 1 (NVIDIA H100 80GB HBM3)"]);
    assert_eq!((lost, refused), (vec![], 0));
    assert_eq!(lacking.len(), 1, "{lacking:?}");
    assert!(lacking[0].starts_with("GPU 1 (NVIDIA H100 80GB HBM3) does not report its energy ("));
}

#[test]
fn what_several_lack_is_said_once() {
    let lacking = |errors: &[usize]| {
        let mut state = scenario(["GPU-a", "GPU-b", "GPU-c"].map(|uuid| gpu(uuid, vec![])).into());
        for at in errors {
            state.gpus[*at].errors.insert("nvmlDeviceGetTotalEnergyConsumption".into(), 3);
        }
        let FoundGpus::Gpus { lacking, .. } = found(&Fake::new(&state)) else { panic!("none") };
        lacking
    };
    let why = "(the requested operation is not available on the target device)";
    let names = [0, 2].map(|at| format!("GPU {at} (NVIDIA H100 80GB HBM3)")).join(" and ");
    assert_eq!(lacking(&[0, 2]), [format!("{names} do not report their energy {why}")]);
    assert_eq!(lacking(&[0, 1, 2]), [format!("no GPU of the 3 reports its energy {why}")]);
}

#[test]
fn a_lost_device_and_one_that_is_not_the_callers_are_told_apart_from_what_is_lacking() {
    let told = |function: &str, error| {
        let mut state = scenario(vec![gpu("GPU-a", vec![]), gpu("GPU-b", vec![])]);
        state.gpus[1].errors.insert(function.into(), error);
        let FoundGpus::Gpus { names, lacking, lost, refused, .. } = found(&Fake::new(&state))
        else {
            panic!("no devices");
        };
        (names.len(), lacking, lost, refused)
    };
    let why = "the device fell off the bus or cannot be reached";
    let lost = format!("GPU 1 (NVIDIA H100 80GB HBM3) was lost for a time or for good ({why})");
    assert_eq!(told("nvmlDeviceGetPowerUsage", 15), (1, vec![], vec![lost], 0));
    let unopened = format!("GPU 1 could not be opened ({why})");
    assert_eq!(told("nvmlDeviceGetHandleByIndex_v2", 15), (1, vec![], vec![unopened], 0));
    assert_eq!(told("nvmlDeviceGetHandleByIndex_v2", 4), (1, vec![], vec![], 1));
}

#[test]
fn nothing_and_failure_are_told_apart() {
    assert_eq!(found(&Fake::without_library()), FoundGpus::Nothing);
    assert_eq!(found(&Fake::new(&scenario(vec![]))), FoundGpus::Nothing);
    let failing = |error| Scenario {
        errors: [("nvmlInit_v2".to_owned(), error)].into(),
        ..Scenario::default()
    };
    assert_eq!(found(&Fake::new(&failing(9))), FoundGpus::Nothing);
    let FoundGpus::Failure(why) = found(&Fake::new(&failing(18))) else { panic!("no failure") };
    let answer = "RM detects a driver/library version mismatch";
    assert_eq!(why, format!("GPU values are unknown: NVML reports: {answer} (see nvidia-smi)"));
    let broken = Fake::without_library();
    fs::write(broken.library(), b"\x7fELF, but for its beginning").unwrap();
    let FoundGpus::Failure(why) = found(&broken) else { panic!("a library that is there") };
    assert!(why.contains(&broken.library().display().to_string()), "{why}");
}
