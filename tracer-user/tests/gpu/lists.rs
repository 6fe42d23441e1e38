//! Lists of processes as drivers write them: layouts, MPS, and who does not count.

use std::{fs, os::unix::fs::symlink};

use fake_nvml::{Fake, Scenario, Tree};
use jobtrace::{
    gpu::{Sampler, SamplerSettings},
    model::{group::Group, tables},
};

use super::rig::{
    GIB, NOBODY, ONE, TWO, gpu, groups, owner, process, readings, scenario, settings, start, until,
    wait,
};

const NEWEST: [&str; 3] = [
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
];
const MIDDLE: [&str; 3] = [
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
];

fn of_driver(driver: &str) -> Scenario {
    let mut gpu = gpu("GPU-a", vec![process(ONE, GIB), process(NOBODY, 3 * GIB)]);
    gpu.graphics = vec![process(ONE, GIB), process(ONE + 1, GIB)];
    gpu.mps = vec![process(TWO, 2 * GIB), process(NOBODY + 1, 2 * GIB)];
    Scenario { driver: Some(driver.into()), ..scenario(vec![gpu]) }
}

fn memory(group: &Group) -> Option<u64> {
    group.number(tables::Gpu::memory_used_bytes)
}

#[test]
fn every_drivers_lists_are_read_as_it_writes_them() {
    for (driver, lacks) in [
        ("550.54.15", &[][..]),
        ("535.54.03", &[]),
        ("535.86.10", &[]),
        ("535.98", &NEWEST),
        ("470.57.02", &NEWEST),
        ("418.87", &[NEWEST, MIDDLE].concat()),
    ] {
        let fake = Fake::lacking(&of_driver(driver), lacks);
        let sampler = start(&fake);
        let group = wait(&sampler, 1, |group| readings(group) >= 2);
        assert_eq!(
            (group.number(tables::Gpu::processes), memory(&group)),
            (Some(2), Some(2 * GIB))
        );
        let group = wait(&sampler, 2, |group| readings(group) >= 2);
        assert_eq!(memory(&group), Some(2 * GIB), "{driver}: it is known to MPS alone");
        assert_eq!(sampler.notes(), [""; 0], "{driver}");
    }
}

#[test]
fn more_processes_than_there_was_room_for() {
    for driver in ["550.54.15", "535.54.03"] {
        let mut state = of_driver(driver);
        state.gpus[0].processes = (0..999).map(|more| process(NOBODY + more, 1)).collect();
        state.gpus[0].processes.push(process(ONE, GIB));
        let fake = Fake::new(&state);
        wait(&start(&fake), 1, |group| memory(group) == Some(2 * GIB));
    }
}

#[test]
fn a_list_in_another_form_is_refused_and_that_is_said() {
    // Long records of a driver whose version does not tell.
    let mut state = of_driver("999.1");
    state.long_records = true;
    let fake = Fake::new(&state);
    let sampler = start(&fake);
    let notes = until(|| Some(sampler.notes()).filter(|notes| !notes.is_empty()));
    assert!(notes.iter().all(|note| note.contains("form that is not known")), "{notes:?}");
    assert_eq!((groups(&sampler, 1), groups(&sampler, 2)), (vec![], vec![]), "nobody's");
}

/// A folder with a /proc of the whole node, where these run.
fn proc(tree: &Tree, stats: &[(u32, &str)]) {
    tree.put("proc/1/stat", "1 (systemd) S 0 1");
    fs::create_dir_all(tree.path("proc/self/ns")).unwrap();
    symlink("pid:[4026531836]", tree.path("proc/self/ns/pid")).unwrap();
    for (pid, stat) in stats {
        tree.put(&format!("proc/{pid}/stat"), format!("{pid} {stat} 1 1"));
    }
}

#[test]
fn who_has_gone_and_who_serves_others_shares_no_device() {
    let mut gpu =
        gpu("GPU-a", [ONE, NOBODY, NOBODY + 1, NOBODY + 2].map(|pid| process(pid, GIB)).into());
    gpu.mps = vec![process(ONE + 1, GIB)];
    let tree = Tree::new();
    let (zombie, server) = ((NOBODY, "(python) Z"), (NOBODY + 1, "(nvidia-cuda-mps) S"));
    proc(&tree, &[(ONE, "(python) R"), (ONE + 1, "(python) R"), zombie, server]);
    let fake = Fake::new(&scenario(vec![gpu]));
    let settings = || SamplerSettings { root: tree.root().into(), ..settings(&fake) };
    let sampler = Sampler::start(settings(), owner).unwrap();
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    assert_eq!((group.number(tables::Gpu::processes), memory(&group)), (Some(2), Some(2 * GIB)));
    assert_eq!(group.number(tables::Gpu::readings_shared), Some(0));
    // Somebody does come.
    proc_more(&tree, NOBODY + 2);
    wait(&sampler, 1, |group| group.number(tables::Gpu::readings_shared) >= Some(1));
}

fn proc_more(tree: &Tree, pid: u32) {
    tree.put(&format!("proc/{pid}/stat"), format!("{pid} (python) S 1 1"));
}

#[test]
fn a_display_server_that_has_nothing_to_do_shares_no_device() {
    let state = |of_server| {
        let mut gpu = gpu("GPU-a", vec![process(ONE, GIB)]);
        gpu.processes[0].samples = (1..2000).map(|stamp| (stamp * 1_000_000, 50, 10)).collect();
        gpu.graphics = vec![process(NOBODY, GIB)];
        gpu.graphics[0].samples = of_server;
        gpu.utilization = 0;
        scenario(vec![gpu])
    };
    let fake = Fake::new(&state(Vec::new()));
    let sampler = start(&fake);
    let group = wait(&sampler, 1, |group| readings(group) >= 3);
    assert_eq!(group.number(tables::Gpu::readings_shared), Some(0));
}
