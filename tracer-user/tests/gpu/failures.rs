//! What a failure costs: its own value, or the device until it is back.

use super::rig::{GIB, ONE, TWO, gpu, groups, process, readings, scenario, start, until, wait};
use fake_nvml::{Fake, Scenario};
use jobtrace::{
    base::clock::monotonic_ns,
    model::{
        group::{Group, Value},
        tables,
    },
};

const NO_PERMISSION: u32 = 4;
const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;
const LOST: u32 = 15;
const UNKNOWN: u32 = 999;

/// Functions and the fields that are unknown without them, on a device that only job 1 is on.
const COST: [(&str, &[&str]); 7] = [
    ("nvmlDeviceGetUtilizationRates", &["utilization_ratio", "memory_utilization_ratio"]),
    ("nvmlDeviceGetMemoryInfo_v2", &["memory_total_bytes"]),
    ("nvmlDeviceGetPowerUsage", &["power_watts"]),
    ("nvmlDeviceGetTotalEnergyConsumption", &["energy_joules"]),
    ("nvmlDeviceGetClockInfo", &["sm_clock_hz", "memory_clock_hz"]),
    ("nvmlDeviceGetTemperature", &["temperature_max_celsius"]),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", &[]),
];

/// A function under all the names that drivers have for it, and those that tell the same.
fn all_names(function: &'static str) -> Vec<&'static str> {
    match function {
        "nvmlDeviceGetGraphicsRunningProcesses_v3" => vec![
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v2",
            "nvmlDeviceGetGraphicsRunningProcesses",
        ],
        "nvmlDeviceGetMemoryInfo_v2" => vec![function, "nvmlDeviceGetMemoryInfo"],
        // Either stands in for the other.
        "nvmlDeviceGetUtilizationRates" => vec![function, "nvmlDeviceGetSamples"],
        _ => vec![function],
    }
}

fn state() -> Scenario {
    scenario(vec![gpu("GPU-a", vec![process(ONE, GIB)])])
}

fn failing(function: &'static str, error: u32) -> Scenario {
    let mut state = state();
    for name in all_names(function) {
        state.gpus[0].errors.insert(name.into(), error);
    }
    state
}

/// Names of the fields that are unknown, but for the code of an error where there was none, and for what
/// needs a look at the kernel's counters.
fn unknown(group: &Group) -> Vec<&'static str> {
    let unknown = group.fields().filter(|(_, value)| value.is_none()).map(|(field, _)| field.name);
    let is_other = |name: &str| {
        ["xid_first", "xid_last", "busy_ns"].contains(&name)
            || name.starts_with("idle_")
            || name.starts_with("mig_")
    };
    unknown.filter(|name| !is_other(name)).collect()
}

/// Values of the field's histogram, where it is one: what cannot grow from one reading alone.
fn has_enough(group: &Group) -> bool {
    group.values.iter().flatten().all(|value| match value {
        Value::Histogram(hist) => hist.count() >= 3,
        Value::Number(_) => true,
    })
}

#[test]
fn a_value_that_is_not_offered_costs_itself() {
    for error in [NOT_SUPPORTED, NO_PERMISSION, 25] {
        for (function, fields) in COST {
            let fake = Fake::new(&failing(function, error));
            let sampler = start(&fake);
            let group = wait(&sampler, 1, has_enough);
            assert_eq!(unknown(&group), fields, "{function}: {error}");
            let notes = sampler.notes_for(&1);
            assert_eq!(notes.len(), 1, "{function}: {notes:?}");
            assert!(
                notes[0].starts_with("GPU 0 (NVIDIA H100 80GB HBM3) does not report"),
                "{notes:?}"
            );
            assert_eq!(sampler.notes_for(&2), [""; 0], "it was never on that device");
            // It is not asked for again: once given up, better answers change nothing.
            fake.set(&state());
            let later = wait(&sampler, 1, |later| {
                let field = match function.contains("Clock") {
                    true => tables::Gpu::power_watts,
                    false => tables::Gpu::sm_clock_hz,
                };
                later.hist(field).unwrap().count() > group.hist(field).unwrap().count() + 3
            });
            let given_up: Vec<_> =
                fields.iter().filter(|field| **field != "memory_total_bytes").copied().collect();
            assert!(given_up.iter().all(|field| unknown(&later).contains(field)), "{function}");
        }
    }
}

#[test]
fn a_function_that_the_library_lacks_costs_its_value() {
    for (function, fields) in COST {
        let fake = Fake::lacking(&state(), &all_names(function));
        let sampler = start(&fake);
        let group = wait(&sampler, 1, has_enough);
        assert_eq!(unknown(&group), fields, "{function}");
        assert_eq!(sampler.notes_for(&1).len(), 1, "{function}");
    }
}

/// The same of what only some models have.
const RARE: [(&str, &[&str]); 14] = [
    ("nvmlDeviceGetFieldValues", &FIELDS),
    ("nvmlDeviceGetEnforcedPowerLimit", &["power_limit_watts"]),
    ("nvmlDeviceGetEncoderUtilization", &["encoder_ratio"]),
    ("nvmlDeviceGetDecoderUtilization", &["decoder_ratio"]),
    ("nvmlGpmQueryDeviceSupport", &ACTIVITY),
    ("nvmlGpmSampleAlloc", &ACTIVITY),
    ("nvmlGpmSampleGet", &ACTIVITY),
    ("nvmlGpmMetricsGet", &ACTIVITY),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", &THROTTLING),
    ("nvmlDeviceGetTotalEccErrors", &["ecc_uncorrected_errors"]),
    ("nvmlEventSetCreate", &XIDS),
    ("nvmlDeviceRegisterEvents", &XIDS),
    ("nvmlEventSetWait_v2", &XIDS),
    ("nvmlDeviceGetMigMode", &[]),
];
const ACTIVITY: [&str; 11] = [
    "sm_activity_ratio",
    "tensor_activity_ratio",
    "dram_activity_ratio",
    "sm_occupancy_ratio",
    "fp64_activity_ratio",
    "fp32_activity_ratio",
    "fp16_activity_ratio",
    "pcie_sent_bytes",
    "pcie_received_bytes",
    "nvlink_sent_bytes",
    "nvlink_received_bytes",
];
const FIELDS: [&str; 5] = [
    "memory_temperature_max_celsius",
    "ecc_corrected_errors",
    "remapped_rows",
    "pcie_replays",
    "nvlink_errors",
];
const VIDEO: [&str; 2] = ["encoder_ratio", "decoder_ratio"];
const XIDS: [&str; 2] = ["xid_errors", "xid_cleanups"];
const THROTTLING: [&str; 3] = ["throttled_power_ns", "throttled_thermal_ns", "throttled_other_ns"];

#[test]
fn a_value_that_only_some_models_have_is_missing_in_silence() {
    for (function, fields) in RARE {
        let mut state = failing(function, NOT_SUPPORTED);
        // These two ask for no device.
        state.errors.insert(function.into(), NOT_SUPPORTED);
        for fake in [Fake::new(&state), Fake::lacking(&self::state(), &[function])] {
            let sampler = start(&fake);
            let group = wait(&sampler, 1, has_enough);
            assert_eq!(unknown(&group), fields, "{function}");
            assert_eq!(sampler.notes(), [""; 0], "{function}");
        }
    }
    // What frees what was taken: without it nothing is taken.
    for (function, fields) in
        [("nvmlGpmSampleFree", &ACTIVITY[..]), ("nvmlEventSetFree", &XIDS[..])]
    {
        let fake = Fake::lacking(&state(), &all_names(function));
        let group = wait(&start(&fake), 1, has_enough);
        assert_eq!(unknown(&group), fields, "{function}");
    }
}

#[test]
fn a_value_that_fails_costs_itself_and_is_asked_for_again() {
    // What the essential one costs, `a_lost_device_comes_back_and_the_others_go_on` shows.
    let single = COST.into_iter().filter(|(function, _)| *function != "nvmlDeviceGetMemoryInfo_v2");
    for (function, fields) in single.chain(RARE) {
        let fake = Fake::new(&failing(function, UNKNOWN));
        let sampler = start(&fake);
        let group = wait(&sampler, 1, has_enough);
        let missing = unknown(&group);
        assert!(missing.iter().all(|name| fields.contains(name)), "{function}: {missing:?}");
        assert_eq!(sampler.notes(), [""; 0], "{function}");
        assert_eq!(sampler.cost().failures, 0, "{function}");
        fake.set(&state());
        wait(&sampler, 1, |group| unknown(group).is_empty());
    }
}

#[test]
fn drivers_before_510_tell_memory_by_the_older_call() {
    const NEWER: &str = "nvmlDeviceGetMemoryInfo_v2";
    let mut well = state();
    // What a process holds is not told, so that the device's own value counts.
    well.gpus[0].processes[0].memory = None;
    let mut fails = well.clone();
    fails.gpus[0].errors.insert(NEWER.into(), UNKNOWN);
    for fake in [Fake::lacking(&well, &[NEWER]), Fake::new(&fails)] {
        let sampler = start(&fake);
        let group = wait(&sampler, 1, has_enough);
        assert_eq!(unknown(&group), [""; 0]);
        assert_eq!(group.number(tables::Gpu::memory_total_bytes), Some(80 * GIB));
        assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(42 * GIB));
        assert_eq!((sampler.notes(), sampler.cost().failures), (vec![], 0));
    }
}

#[test]
fn what_was_given_up_is_asked_again_of_the_next_driver() {
    let fake = Fake::new(&failing("nvmlDeviceGetTemperature", NOT_SUPPORTED));
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 2);
    fake.set(&failing("nvmlDeviceGetPowerUsage", LOST));
    until(|| (sampler.notes_for(&1).len() == 2).then_some(()));
    fake.set(&state());
    wait(&sampler, 1, |group| group.number(tables::Gpu::temperature_max_celsius).is_some());
    assert_eq!(sampler.notes_for(&1).len(), 3, "{:?}", sampler.notes());
}

#[test]
fn a_value_that_is_not_there_for_a_moment_comes_back() {
    for error in [NOT_FOUND, 10, 21] {
        let fake = Fake::new(&failing("nvmlDeviceGetUtilizationRates", error));
        let sampler = start(&fake);
        let group = wait(&sampler, 1, |group| readings(group) >= 3);
        assert_eq!(unknown(&group), ["utilization_ratio", "memory_utilization_ratio"]);
        fake.set(&state());
        wait(&sampler, 1, |group| unknown(group).is_empty());
        assert_eq!(sampler.notes(), [""; 0]);
    }
}

#[test]
fn without_processes_nothing_is_anybodys() {
    let fake = Fake::new(&failing("nvmlDeviceGetComputeRunningProcesses_v3", NOT_SUPPORTED));
    let sampler = start(&fake);
    until(|| (!sampler.notes().is_empty()).then_some(()));
    assert_eq!(groups(&sampler, 1), []);
    assert!(sampler.notes()[0].contains("processes that compute"), "{:?}", sampler.notes());
    assert_eq!(sampler.notes_for(&1), sampler.notes(), "it may have been on it");
}

#[test]
fn a_device_that_told_nothing_is_said_to_everybody() {
    for (function, error, expected) in [
        ("nvmlDeviceGetPowerUsage", 15, "was lost for a time or for good"),
        ("nvmlDeviceGetHandleByIndex_v2", 15, "GPU 0 could not be opened"),
    ] {
        let fake = Fake::new(&failing(function, error));
        let sampler = start(&fake);
        let notes = until(|| Some(sampler.notes_for(&1)).filter(|notes| !notes.is_empty()));
        assert!(notes.len() == 1 && notes[0].contains(expected), "{function}: {notes:?}");
    }
}

#[test]
fn what_stands_for_no_answer_is_none() {
    let mut state = state();
    let gpu = &mut state.gpus[0];
    (gpu.power_mw, gpu.temperature, gpu.utilization) = (u32::MAX, u32::MAX, 250);
    gpu.errors.insert("nvmlDeviceGetSamples".into(), NOT_SUPPORTED);
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| {
        group.hist(tables::Gpu::sm_clock_hz).is_some_and(|hist| hist.count() >= 3)
    });
    for field in ["utilization_ratio", "power_watts", "temperature_max_celsius"] {
        assert!(unknown(&group).contains(&field), "{field}: {:?}", unknown(&group));
    }
}

#[test]
fn utilisation_by_process_may_be_missing() {
    let mut shared = state();
    shared.gpus[0].processes.push(process(TWO, GIB));
    shared.gpus[0].errors.insert("nvmlDeviceGetProcessUtilization".into(), NOT_SUPPORTED);
    let fake = Fake::new(&shared);
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    let fields =
        [&["utilization_ratio", "memory_utilization_ratio"][..], &ACTIVITY[..7], &VIDEO].concat();
    assert_eq!(unknown(&group), fields, "and what is the whole device's");
    assert_eq!(sampler.notes_for(&1).len(), 1);
}

#[test]
fn a_lost_device_comes_back_and_the_others_go_on() {
    for (function, error) in
        [("nvmlDeviceGetPowerUsage", LOST), ("nvmlDeviceGetMemoryInfo_v2", UNKNOWN)]
    {
        let both = |error: Option<u32>| {
            let mut lost = gpu("GPU-a", vec![process(ONE, GIB)]);
            if let Some(error) = error {
                lost.errors.extend(all_names(function).into_iter().map(|of| (of.into(), error)));
            }
            scenario(vec![lost, gpu("GPU-b", vec![process(TWO, GIB)])])
        };
        let fake = Fake::new(&both(None));
        let sampler = start(&fake);
        let before = wait(&sampler, 1, |group| readings(group) >= 3);
        fake.set(&both(Some(error)));
        until(|| sampler.notes_for(&1).pop());
        let during = groups(&sampler, 1);
        assert!(readings(&during[0]) >= readings(&before), "what was counted stays");
        let other = groups(&sampler, 2);
        wait(&sampler, 2, |group| readings(group) >= readings(&other[0]) + 3);
        assert_eq!(readings(&groups(&sampler, 1)[0]), readings(&during[0]));
        fake.set(&both(None));
        let after = wait(&sampler, 1, |group| readings(group) > readings(&during[0]) + 3);
        assert!(
            after.number(tables::Gpu::energy_joules) > before.number(tables::Gpu::energy_joules)
        );
        let notes = sampler.notes_for(&1);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("was lost for a time or for good"), "{notes:?}");
        assert_eq!(notes[1], "GPU 0 (NVIDIA H100 80GB HBM3) is back");
        assert_eq!(sampler.notes_for(&2), [""; 0]);
    }
}

#[test]
fn a_state_is_unknown_while_the_device_is_lost() {
    let fake = Fake::new(&state());
    let sampler = start(&fake);
    wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
    fake.set(&failing("nvmlDeviceGetTemperature", LOST));
    until(|| sampler.notes_for(&1).pop());
    let in_ten_seconds = monotonic_ns() + 10_000_000_000;
    let group = sampler.groups_for(&1, in_ten_seconds).remove(0);
    assert_eq!(
        (group.number(tables::Gpu::processes), group.number(tables::Gpu::memory_used_bytes)),
        (None, None)
    );
    assert_eq!(group.number(tables::Gpu::memory_peak_bytes), Some(GIB));
}
