//! The look that `doctor` takes.

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
    let FoundGpus::Gpus { driver, names, lacking } = found(&Fake::new(&state)) else {
        panic!("no devices");
    };
    assert_eq!(driver, "550.54.15");
    assert_eq!(names, ["GPU 0 (NVIDIA H100 80GB HBM3)", "GPU 1 (NVIDIA H100 80GB HBM3)"]);
    assert_eq!(lacking.len(), 1, "{lacking:?}");
    assert!(lacking[0].starts_with("GPU 1 (NVIDIA H100 80GB HBM3) does not report its energy ("));
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
}
