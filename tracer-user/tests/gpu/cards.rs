//! GPUs that the kernel's files tell of, in trees made for the test.

use std::{thread, time::Duration};

use fake_nvml::Tree;
use jobtrace::{
    gpu::{Sampler, SamplerSettings},
    model::tables,
};

use super::rig::{GIB, ONE, TWO, groups, mean, owner, readings, until, wait};

pub const INTEL: &str = "0000:4d:00.0";

pub fn settings(tree: &Tree) -> SamplerSettings {
    SamplerSettings {
        period: Duration::from_millis(10),
        library: Some(tree.path("no library")),
        root: tree.root().to_owned(),
        ..SamplerSettings::default()
    }
}

pub fn start(tree: &Tree) -> Sampler<u32> {
    Sampler::start(settings(tree), owner).unwrap()
}

#[test]
fn amds_cards_tell_of_themselves_and_of_who_computes() {
    let tree = Tree::new();
    tree.amd(0, "5df8f2c7a2a1c3e2", 4711);
    tree.amd(1, "5df8f2c7a2a1c3e3", 815);
    tree.computes(ONE, 815, GIB, 26);
    // The runtime opens all cards.
    tree.computes(ONE, 4711, 0, 0);
    let sampler = start(&tree);
    let group = wait(&sampler, 1, |group| readings(group) >= 5);
    assert_eq!(group.tags, ["1", "GPU-5df8f2c7a2a1c3e3", "AMD Instinct MI210", "amd", ""]);
    for (field, expected) in [
        (tables::Gpu::utilization_ratio, 730_000),
        (tables::Gpu::memory_utilization_ratio, 210_000),
        (tables::Gpu::sm_activity_ratio, 250_000),
        (tables::Gpu::power_watts, 231_000),
        (tables::Gpu::sm_clock_hz, 1_700_000_000),
        (tables::Gpu::memory_clock_hz, 1_600_000_000),
    ] {
        assert_eq!(mean(&group, field), Some(expected), "{field:?}");
    }
    for (field, expected) in [
        (tables::Gpu::memory_used_bytes, Some(GIB)),
        (tables::Gpu::memory_total_bytes, Some(68_702_699_520)),
        (tables::Gpu::temperature_max_celsius, Some(58)),
        (tables::Gpu::processes, Some(1)),
        (tables::Gpu::energy_joules, None),
        (tables::Gpu::xid_errors, None),
    ] {
        assert_eq!(group.number(field), expected, "{field:?}");
    }
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn jobs_on_one_card_of_amds_have_their_own_memory_and_compute_units() {
    let tree = Tree::new();
    tree.amd(0, "1", 7);
    tree.computes(ONE, 7, GIB, 52);
    tree.computes(TWO, 7, 2 * GIB, 26);
    let sampler = start(&tree);
    for (job, bytes, ppm) in [(1, GIB, 500_000), (2, 2 * GIB, 250_000)] {
        let group = wait(&sampler, job, |group| readings(group) >= 3);
        assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(bytes), "job {job}");
        assert_eq!(mean(&group, tables::Gpu::sm_activity_ratio), Some(ppm), "job {job}");
        assert_eq!(
            mean(&group, tables::Gpu::utilization_ratio),
            None,
            "whose part is whose is not told"
        );
        assert!(group.number(tables::Gpu::readings_shared) >= Some(3), "job {job}");
    }
}

#[test]
fn a_card_without_a_unique_id_is_known_by_its_address() {
    let tree = Tree::new();
    tree.amd(3, "0", 7);
    tree.take("sys/class/drm/card3/device/product_name");
    tree.computes(ONE, 7, GIB, 0);
    let group = wait(&start(&tree), 1, |group| readings(group) >= 1);
    assert_eq!(group.tags, ["0", "PCI-0000:03:00.0", "AMD 0x740f", "amd", ""]);
}

#[test]
fn whatever_is_in_the_files_costs_that_value() {
    let tree = Tree::new();
    let device = "sys/class/drm/card0/device";
    let occupancy = format!("sys/class/kfd/kfd/proc/{ONE}/stats_7/cu_occupancy");
    for (file, field) in [
        (format!("{device}/gpu_busy_percent"), tables::Gpu::utilization_ratio),
        (format!("{device}/mem_busy_percent"), tables::Gpu::memory_utilization_ratio),
        (format!("{device}/hwmon/hwmon4/power1_average"), tables::Gpu::power_watts),
        (format!("{device}/hwmon/hwmon4/freq1_input"), tables::Gpu::sm_clock_hz),
        (occupancy, tables::Gpu::sm_activity_ratio),
    ] {
        for bytes in
            [&b""[..], b"N/A\n", b"-5\n", b"\xff\xfe\0", b"99999999999999999999\n", &[b'7'; 99999]]
        {
            tree.amd(0, "1", 7);
            tree.computes(ONE, 7, GIB, 26);
            tree.put(&file, bytes);
            let sampler = start(&tree);
            let group = wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
            assert_eq!(group.hist(field), None, "{file} {bytes:?}");
            assert_eq!(group.number(tables::Gpu::memory_peak_bytes), Some(GIB));
        }
    }
    // A folder in place of a file, and no files at all but these.
    tree.amd(0, "1", 7);
    tree.take(&format!("{device}/gpu_busy_percent"));
    tree.put(&format!("{device}/gpu_busy_percent/x"), "");
    tree.take(&format!("{device}/hwmon"));
    let group = wait(&start(&tree), 1, |group| group.number(tables::Gpu::processes) == Some(1));
    assert_eq!(
        (group.hist(tables::Gpu::utilization_ratio), group.hist(tables::Gpu::power_watts)),
        (None, None)
    );
}

#[test]
fn a_card_that_sleeps_is_left_asleep() {
    let tree = Tree::new();
    tree.amd(0, "1", 7);
    tree.computes(ONE, 7, GIB, 0);
    let sampler = start(&tree);
    wait(&sampler, 1, |group| readings(group) >= 1);
    tree.put("sys/class/drm/card0/device/power/runtime_status", "suspended\n");
    thread::sleep(Duration::from_millis(50));
    let before = groups(&sampler, 1);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(readings(&groups(&sampler, 1)[0]), readings(&before[0]), "nothing is read");
}

#[test]
fn a_card_that_goes_is_said_and_one_that_comes_is_found() {
    let tree = Tree::new();
    let retry = Some(Duration::from_millis(20));
    let sampler = Sampler::start(SamplerSettings { retry, ..settings(&tree) }, owner).unwrap();
    thread::sleep(Duration::from_millis(60));
    assert_eq!((groups(&sampler, 1), sampler.notes()), (vec![], vec![]));
    // The driver is loaded later.
    tree.amd(0, "1", 7);
    tree.computes(ONE, 7, GIB, 0);
    let before = wait(&sampler, 1, |group| readings(group) >= 2);
    tree.take("sys/class/drm/card0");
    let notes = until(|| Some(sampler.notes_for(&1)).filter(|notes| !notes.is_empty()));
    assert_eq!(
        notes,
        ["GPU 0 (AMD Instinct MI210) was lost for a time or for good (its files were gone)"]
    );
    tree.amd(0, "1", 7);
    wait(&sampler, 1, |group| readings(group) > readings(&before) + 2);
    assert_eq!(sampler.notes()[1..], ["GPU 0 (AMD Instinct MI210) is back"]);
}

#[test]
fn without_cards_no_thread_stays() {
    let tree = Tree::new();
    let sampler = start(&tree);
    until(|| (!sampler.is_running()).then_some(()));
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn a_card_of_a_later_make_tells_its_hottest_place_and_energy_elsewhere() {
    let tree = Tree::new();
    tree.amd(0, "1", 7);
    tree.computes(ONE, 7, GIB, 0);
    let device = "sys/class/drm/card0/device";
    tree.take(&format!("{device}/hwmon/hwmon4/temp1_input"));
    tree.put(&format!("{device}/hwmon/hwmon4/temp2_input"), "77000\n");
    let metrics = |joules: u64| {
        let mut table = vec![0_u8; 64];
        table[..4].copy_from_slice(&[64, 0, 1, 7]);
        table[24..32].copy_from_slice(&(joules << 16).to_le_bytes());
        tree.put(&format!("{device}/gpu_metrics"), table);
    };
    metrics(500);
    let sampler = start(&tree);
    let group = wait(&sampler, 1, |group| readings(group) >= 2);
    assert_eq!(group.number(tables::Gpu::temperature_max_celsius), Some(77));
    metrics(507);
    wait(&sampler, 1, |group| group.number(tables::Gpu::energy_joules) == Some(7_000));
}

#[test]
fn sensors_of_a_part_of_a_card_are_not_the_cards() {
    let tree = Tree::new();
    tree.amd(0, "1", 7);
    tree.computes(ONE, 7, GIB, 0);
    let hwmon = "sys/class/drm/card0/device/hwmon";
    tree.put(&format!("{hwmon}/hwmon4/name"), "i915\n");
    tree.put(&format!("{hwmon}/hwmon5/name"), "i915_gt0\n");
    tree.put(&format!("{hwmon}/hwmon5/temp1_input"), "1000\n");
    let group = wait(&start(&tree), 1, |group| readings(group) >= 2);
    assert_eq!(group.number(tables::Gpu::temperature_max_celsius), Some(58));
}
