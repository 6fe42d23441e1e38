//! MIG: each instance is a device of its own.

use fake_nvml::{Fake, Gpm, Gpu, Scenario};
use jobtrace::model::{group::Group, tables};

use super::rig::{
    GIB, ONE, TWO, gpu, groups, mean, process, readings, scenario, start, until, wait,
};

/// An instance of 10 GiB, with the id of its GPU instance.
fn part(uuid: &str, id: u32, pid: u32) -> Gpu {
    Gpu {
        uuid: uuid.into(),
        name: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".into(),
        memory_used: 5 * GIB,
        memory_total: 10 * GIB,
        gpm: Some(Gpm {
            sm: Some(f64::from(id)),
            tensor: Some(1.0),
            dram: Some(2.0),
            ..Gpm::default()
        }),
        processes: vec![process(pid, 4 * GIB)],
        instance: Some(id),
        ..Gpu::default()
    }
}

/// A whole GPU, and one that is divided.
fn state(parts: Vec<Gpu>) -> Scenario {
    let divided = Gpu { mig: true, gpm: None, parts, ..gpu("GPU-b", vec![process(ONE, GIB)]) };
    scenario(vec![gpu("GPU-a", vec![]), divided])
}

/// Readings of what has no power: those of its activity.
fn seen(group: &Group) -> u64 {
    group.hist(tables::Gpu::sm_activity_ratio).map_or(0, |hist| hist.count())
}

#[test]
fn an_instance_tells_what_nvml_offers_and_the_rest_is_absent() {
    // Number 1 was destroyed: numbers have gaps.
    let gap = Gpu::default();
    let parts = vec![part("MIG-a", 9, ONE), gap, part("MIG-c", 11, TWO)];
    let fake = Fake::new(&state(parts));
    let sampler = start(&fake);
    let model = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
    for (job, tags, sm_ppm, id) in [
        (1, ["1:0", "MIG-a", model, "nvidia", "GPU-b"], 90_000, 9),
        (2, ["1:2", "MIG-c", model, "nvidia", "GPU-b"], 110_000, 11),
    ] {
        let group = wait(&sampler, job, |group| seen(group) >= 3);
        assert_eq!(group.tags, tags);
        assert_eq!(mean(&group, tables::Gpu::sm_activity_ratio), Some(sm_ppm));
        assert_eq!(mean(&group, tables::Gpu::tensor_activity_ratio), Some(10_000));
        for (field, number) in [
            (tables::Gpu::memory_used_bytes, 4 * GIB),
            (tables::Gpu::memory_total_bytes, 10 * GIB),
            (tables::Gpu::processes, 1),
            (tables::Gpu::readings_shared, 0),
            (tables::Gpu::xid_errors, 0),
            (tables::Gpu::mig_gpu_instance, id),
            (tables::Gpu::mig_compute_instance, 0),
        ] {
            assert_eq!(group.number(field), Some(number), "{field:?}");
        }
        for field in [
            tables::Gpu::utilization_ratio,
            tables::Gpu::memory_utilization_ratio,
            tables::Gpu::power_watts,
            tables::Gpu::sm_clock_hz,
        ] {
            assert_eq!(group.hist(field), None, "{field:?}");
        }
        for field in [
            tables::Gpu::energy_joules,
            tables::Gpu::temperature_max_celsius,
            tables::Gpu::throttled_power_ns,
        ] {
            assert_eq!(group.number(field), None, "{field:?}");
        }
    }
    assert_eq!(sampler.notes(), [""; 0], "nobody expects it");
}

#[test]
fn instances_come_and_go_while_it_runs() {
    let fake = Fake::new(&state(vec![]));
    let sampler = start(&fake);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(groups(&sampler, 1), [], "a divided device is nobody's as a whole");
    fake.set(&state(vec![part("MIG-a", 9, ONE)]));
    let before = wait(&sampler, 1, |group| seen(group) >= 3);
    fake.set(&state(vec![]));
    wait(&sampler, 1, |group| group.number(tables::Gpu::processes).is_none());
    fake.set(&state(vec![part("MIG-a", 9, ONE)]));
    wait(&sampler, 1, |group| seen(group) > seen(&before) + 3);
    // Undivided again, the job is on the whole.
    let mut whole = state(vec![]);
    whole.gpus[1].mig = false;
    fake.set(&whole);
    let all = until(|| Some(groups(&sampler, 1)).filter(|groups| groups.len() == 2));
    assert!(all.iter().any(|group| group.tags[..2] == ["1", "GPU-b"]), "{all:?}");
    assert_eq!(sampler.notes(), [""; 0]);
}

#[test]
fn an_xid_of_one_instance_is_not_the_others() {
    let parts = || vec![part("MIG-a", 9, ONE), part("MIG-b", 10, TWO)];
    let fake = Fake::new(&state(parts()));
    let sampler = start(&fake);
    for job in [1, 2] {
        wait(&sampler, job, |group| seen(group) >= 2);
    }
    let mut after = state(parts());
    after.gpus[1].xids = vec![(31, Some(10)), (63, None)];
    fake.set(&after);
    let two = wait(&sampler, 2, |group| group.number(tables::Gpu::xid_errors) >= Some(2));
    assert_eq!(
        (two.number(tables::Gpu::xid_errors), two.number(tables::Gpu::xid_last)),
        (Some(2), Some(63))
    );
    let one = wait(&sampler, 1, |group| group.number(tables::Gpu::xid_errors) >= Some(1));
    assert_eq!(
        (one.number(tables::Gpu::xid_errors), one.number(tables::Gpu::xid_last)),
        (Some(1), Some(63))
    );
}

#[test]
fn a_failure_of_one_instance_costs_its_value() {
    let mut failing = part("MIG-a", 9, ONE);
    failing.errors.insert("nvmlDeviceGetGpuInstanceId".into(), 3);
    let mut state = state(vec![failing, part("MIG-b", 10, TWO)]);
    state.gpus[0].processes = vec![process(ONE, GIB)];
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    wait(&sampler, 2, |group| seen(group) >= 3);
    let all = until(|| Some(groups(&sampler, 1)).filter(|groups| groups.len() == 2));
    let of = |uuid| all.iter().find(|group| group.tags[1] == uuid).unwrap();
    assert_eq!(of("MIG-a").number(tables::Gpu::memory_used_bytes), Some(4 * GIB));
    assert_eq!(of("MIG-a").hist(tables::Gpu::sm_activity_ratio), None);
    assert!(readings(of("GPU-a")) >= 1);
}
