//! What only some devices tell: activity, throttling, errors.

use std::time::Instant;

use fake_nvml::{Fake, Gpm, Gpu, Scenario};

use super::rig::{
    GIB, ONE, TWO, gpu, groups, mean, process, readings, scenario, start, until, wait,
};
use jobtrace::{
    base::clock::monotonic_ns,
    model::{group::Group, tables},
};

const LOST: u32 = 15;

fn state(change: impl Fn(&mut Gpu)) -> Scenario {
    let mut gpu = gpu("GPU-a", vec![process(ONE, GIB)]);
    change(&mut gpu);
    scenario(vec![gpu])
}

#[test]
fn activity_is_what_the_counters_say_between_two_samples() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 5);
    for (field, ppm) in [
        (tables::Gpu::sm_activity_ratio, 705_000),
        (tables::Gpu::tensor_activity_ratio, 302_500),
        (tables::Gpu::dram_activity_ratio, 120_000),
        (tables::Gpu::sm_occupancy_ratio, 255_000),
        (tables::Gpu::fp64_activity_ratio, 10_000),
        (tables::Gpu::fp32_activity_ratio, 20_000),
        (tables::Gpu::fp16_activity_ratio, 30_000),
    ] {
        assert_eq!(mean(&group, field), Some(ppm), "{field:?}");
        // The first sample alone says nothing.
        let periods = group.hist(tables::Gpu::utilization_ratio).unwrap().count();
        assert_eq!(group.hist(field).unwrap().count(), periods - 1, "{field:?}");
    }
}

#[test]
fn a_counter_that_this_device_lacks_costs_itself() {
    let partly = Gpm { sm: Some(50.0), dram: Some(f64::MAX), ..Gpm::default() };
    let fake = Fake::new(&state(|gpu| gpu.gpm = Some(partly)));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    assert_eq!(mean(&group, tables::Gpu::sm_activity_ratio), Some(500_000));
    assert_eq!(group.hist(tables::Gpu::tensor_activity_ratio), None);
    assert_eq!(mean(&group, tables::Gpu::dram_activity_ratio), Some(1_000_000), "no more than all");
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn time_throttled_counts_by_family() {
    // Bits, and whether each family is meant: power, thermal, other.
    for (bits, families) in [
        (0x0, [false, false, false]),
        (0x1 | 0x2, [false, false, false]), // idle, and clocks that were set so
        (0x4, [true, false, false]),
        (0x8 | 0x80, [true, false, false]),
        (0x20, [false, true, false]),
        (0x8 | 0x40, [false, true, false]),
        (0x8, [false, false, true]),
        (0x10, [false, false, true]),
        (0x100, [false, false, true]),
        (0x4 | 0x20 | 0x10 | 1 << 40, [true, true, true]),
    ] {
        let fake = Fake::new(&state(|gpu| gpu.throttle = bits));
        let begin = Instant::now();
        let sampler = start(&fake);
        let group = wait(&sampler, 1, |group| readings(group) >= 6);
        let most = begin.elapsed().as_nanos() as u64;
        let fields = [
            tables::Gpu::throttled_power_ns,
            tables::Gpu::throttled_thermal_ns,
            tables::Gpu::throttled_other_ns,
        ];
        for (family, is_meant) in fields.into_iter().zip(families) {
            let ns = group.number(family).unwrap();
            let (least, most) = if is_meant { (40_000_000, most) } else { (0, 0) };
            assert!((least..=most).contains(&ns), "{bits:#x} {family:?}: {ns}");
        }
    }
}

#[test]
fn errors_of_memory_are_those_that_came() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    assert_eq!(
        group.number(tables::Gpu::ecc_uncorrected_errors),
        Some(0),
        "three were there before"
    );
    fake.set(&state(|gpu| gpu.ecc = Some(5)));
    wait(&sampler, 1, |group| group.number(tables::Gpu::ecc_uncorrected_errors) == Some(2));
    fake.set(&state(|gpu| gpu.ecc = Some(1)));
    let reset = wait(&sampler, 1, |group| readings(group) >= 20);
    assert_eq!(
        reset.number(tables::Gpu::ecc_uncorrected_errors),
        Some(2),
        "counted anew since a reset"
    );
    fake.set(&state(|gpu| gpu.ecc = Some(2)));
    wait(&sampler, 1, |group| group.number(tables::Gpu::ecc_uncorrected_errors) == Some(3));
}

#[test]
fn an_xid_is_told_of_who_is_on_the_device_or_has_just_left() {
    let with = |xids: &[u64], processes: &[u32]| {
        state(|gpu| {
            gpu.xids = xids.iter().map(|code| (*code, None)).collect();
            gpu.processes = processes.iter().map(|pid| process(*pid, GIB)).collect();
        })
    };
    let fake = Fake::new(&with(&[13], &[ONE]));
    let sampler = start(&fake);
    let xids = |job| {
        let group = groups(&sampler, job).pop();
        group.map(|group| {
            (group.number(tables::Gpu::xid_errors), group.number(tables::Gpu::xid_last))
        })
    };
    wait(&sampler, 1, |group| readings(group) >= 2);
    assert_eq!(xids(1), Some((Some(0), None)), "what came before is nobody's");
    fake.set(&with(&[13, 31], &[ONE, TWO]));
    until(|| (xids(1) == Some((Some(1), Some(31)))).then_some(()));
    until(|| (xids(2) == Some((Some(1), Some(31)))).then_some(()));
    // It ends the process that met it.
    fake.set(&with(&[13, 31, 45, 43], &[TWO]));
    until(|| (xids(2) == Some((Some(2), Some(43)))).then_some(()));
    assert_eq!(xids(1), Some((Some(2), Some(43))));
    fake.set(&with(&[13, 31, 45, 43, 94], &[TWO]));
    until(|| (xids(2) == Some((Some(3), Some(94)))).then_some(()));
    assert_eq!(xids(1), Some((Some(2), Some(43))), "it left long before");
}

#[test]
fn an_xid_is_told_even_where_the_device_is_lost_with_it() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 2);
    fake.set(&state(|gpu| {
        gpu.xids = vec![(79, None)];
        gpu.errors = [("nvmlDeviceGetPowerUsage".to_owned(), LOST)].into();
    }));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::xid_last) == Some(79));
    assert_eq!(group.number(tables::Gpu::xid_errors), Some(1));
    assert_eq!(group.number(tables::Gpu::processes), None, "what is lost has no state");
    fake.set(&state(|gpu| gpu.xids = vec![(79, None)]));
    wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
}

#[test]
fn the_first_error_is_kept_beside_hundreds_that_follow_it() {
    let fake = Fake::new(&state(|_| {}));
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 2);
    // The first and the last that are told are neither.
    let codes = [45, 31].into_iter().chain([45; 2998]).chain([31, 43, 45]);
    fake.set(&state(|gpu| gpu.xids = codes.clone().map(|code| (code, None)).collect()));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::xid_last) == Some(43));
    for (field, expected) in [
        (tables::Gpu::xid_first, 31),
        (tables::Gpu::xid_errors, 3),
        (tables::Gpu::xid_cleanups, 3000),
    ] {
        assert_eq!(group.number(field), Some(expected), "{field:?}");
    }
    let mut codes = sampler.groups_for(&1, monotonic_ns());
    codes.retain(|group| group.is(&tables::XID));
    let told = codes.iter().map(|group| (group.tags.join(" "), group.number(tables::Xid::errors)));
    let expected = [("0 GPU-a 31", 2), ("0 GPU-a 43", 1), ("0 GPU-a 45", 3000)];
    assert!(told.eq(expected.map(|(tags, errors)| (tags.to_owned(), Some(errors)))), "{codes:?}");
}

#[test]
fn sensors_and_links_are_told() {
    let fake = Fake::new(&state(|_| {}));
    let begin = Instant::now();
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 10);
    let seconds = begin.elapsed().as_secs_f64();
    for (field, expected) in [
        (tables::Gpu::memory_temperature_max_celsius, 71),
        (tables::Gpu::power_limit_watts, 700_000),
        (tables::Gpu::remapped_rows, 3),
        (tables::Gpu::ecc_corrected_errors, 0),
        (tables::Gpu::pcie_replays, 0),
        (tables::Gpu::nvlink_errors, 0),
    ] {
        assert_eq!(group.number(field), Some(expected), "{field:?}");
    }
    assert_eq!(mean(&group, tables::Gpu::encoder_ratio), Some(50_000));
    assert_eq!(mean(&group, tables::Gpu::decoder_ratio), Some(60_000));
    // Rates of 100, 200, 300 and 400 MiB/s, for the time between the first sample and the last.
    let bytes = |field| group.number(field).unwrap() as f64;
    let sent = bytes(tables::Gpu::pcie_sent_bytes);
    assert!((0.08..seconds).contains(&(sent / 104_857_600.0)), "{sent} bytes in {seconds} s");
    for (field, times) in [
        (tables::Gpu::pcie_received_bytes, 2.0),
        (tables::Gpu::nvlink_sent_bytes, 3.0),
        (tables::Gpu::nvlink_received_bytes, 4.0),
    ] {
        assert!((bytes(field) / sent - times).abs() < 1e-3, "{field:?}");
    }
    fake.set(&state(|gpu| gpu.fields = [(3, 11), (94, 22), (38, 33), (52, 40)].into()));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::nvlink_errors) == Some(3));
    assert_eq!(group.number(tables::Gpu::ecc_corrected_errors), Some(1));
    assert_eq!(group.number(tables::Gpu::pcie_replays), Some(2));
    assert_eq!(group.number(tables::Gpu::remapped_rows), Some(3), "as last told");
}

#[test]
fn bytes_over_pcie_are_the_drivers_where_the_hardware_counts_none() {
    let at = |sent, received| {
        state(|gpu| {
            gpu.gpm = None;
            gpu.fields = [(197, sent), (198, received)].into();
        })
    };
    let fake = Fake::new(&at(1_000, 5_000));
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 3);
    fake.set(&at(1_007, 5_009));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::pcie_sent_bytes) == Some(7));
    assert_eq!(group.number(tables::Gpu::pcie_received_bytes), Some(9));
    assert_eq!(group.number(tables::Gpu::nvlink_sent_bytes), None);
}

#[test]
fn time_throttled_is_the_drivers_where_it_counts() {
    const POWER: u32 = 74;
    const POWER_BRAKE: u32 = 253;
    const MS: u64 = 1_000_000;
    // The bits say that it is held down all the time, the counters that it was for 1 ms: by the reason that held it
    // for less before.
    let at = |ns| {
        state(|gpu| {
            gpu.throttle = 0x4 | 0x20;
            gpu.fields = [(POWER, 500 * MS), (POWER_BRAKE, ns)].into();
        })
    };
    let fake = Fake::new(&at(0));
    let sampler = start(&fake);
    wait(&sampler, 1, |group| readings(group) >= 10);
    fake.set(&at(MS));
    let power = |group: &Group| group.number(tables::Gpu::throttled_power_ns);
    wait(&sampler, 1, |group| power(group) == Some(MS));
    let group = wait(&sampler, 1, |group| readings(group) >= 30);
    assert_eq!(power(&group), Some(MS));
    assert!(group.number(tables::Gpu::throttled_thermal_ns) >= Some(40 * MS), "by its bits");
}
