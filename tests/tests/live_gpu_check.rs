//! Live ring: the check for machines with GPUs (`tests/hardware/gpu.sh`), against a driver made for the test, and
//! against one of which nothing that is said is so.

use std::{
    collections::BTreeSet,
    fs::File,
    os::{fd::AsRawFd, unix::fs::symlink},
    path::Path,
    process::Command,
};

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace_tests::{agree::tried_again, rig::folder, traced::program};
use rustix::io::FdFlags;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hardware/gpu.sh");
const CALLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hardware/nvml_calls.py");
const CHECK: &str = env!("CARGO_BIN_EXE_gpu_check");
const FAKE: &str = env!("CARGO_BIN_EXE_fake_nvidia");
/// Between two samples of a driver's.
const SAMPLE_MS: u64 = 140;

fn scenario(faster: u64) -> Scenario {
    let gpu = Gpu {
        uuid: "GPU-a".into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        memory_total: 80 << 30,
        power_mw: 400_000,
        sample_ms: Some(SAMPLE_MS / faster),
        ..Gpu::default()
    };
    Scenario { gpus: vec![gpu], ..Scenario::default() }
}

/// What the script printed, and its exit status. The programs lie in one folder, as on the machine that is checked.
fn checked(fake: &Fake, faster: u64, more: &[(&str, &str)]) -> (Option<i32>, String) {
    let folder = folder("gpu-check").unwrap();
    let link = |program: &Path, name: &str| symlink(program, folder.path().join(name)).unwrap();
    link(&program().unwrap(), "jobtrace");
    link(Path::new(CHECK), "gpu_check");
    let fakes = ["cuda_work", "nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"];
    fakes.into_iter().for_each(|name| link(Path::new(FAKE), name));
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    // For fakes in a namespace with a /proc of its own.
    let proc = File::open("/proc").unwrap();
    rustix::io::fcntl_setfd(&proc, FdFlags::empty()).unwrap();
    let output = Command::new(SCRIPT)
        .arg(folder.path())
        .env("FAKE_NODES_PROC", proc.as_raw_fd().to_string())
        .env("PATH", path)
        .env("LD_LIBRARY_PATH", fake.folder())
        .env("GPU_CHECK_FASTER", faster.to_string())
        .envs(more.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), printed)
}

/// What each row is of, of those that begin with `begin`.
fn rows<'a>(printed: &'a str, begin: &str) -> BTreeSet<&'a str> {
    let row = |line: &'a str| {
        let (told, _) = line.strip_prefix(begin)?.rsplit_once(" (must be ")?;
        Some(told.trim_start().rsplit_once(": ")?.0)
    };
    printed.lines().filter_map(row).collect()
}

#[test]
fn a_driver_that_is_well_passes_and_one_of_which_all_is_wrong_fails_each_check() {
    // At such speeds a machine that stands still for some 30 ms is told of as the driver's fault.
    tried_again(passes_and_fails);
}

fn passes_and_fails() {
    let faster = 8;
    let (status, printed) = checked(&Fake::new(&scenario(faster)), faster, &[]);
    assert!(status == Some(0) && printed.contains("\n0 wrong, 0 left out\n"), "{printed}");
    assert!(printed.contains("NVIDIA H100 80GB HBM3"), "the doctor's line: {printed}");
    let well = rows(&printed, "ok ");
    assert!(well.len() >= 36, "{well:?}");

    let faster = 20;
    let mut wrong = scenario(faster);
    wrong.gpus[0].awake_mw = 50_000;
    wrong.gpus[0].cpu_ms.insert("nvmlDeviceGetMemoryInfo_v2".into(), 20);
    let more = [("FAKE_WRONG", "1"), ("GPU_CHECK_SECONDS", "20")];
    let (status, printed) = checked(&Fake::new(&wrong), faster, &more);
    assert_eq!(status, Some(1), "{printed}");
    assert_eq!(rows(&printed, "ok "), BTreeSet::new(), "checks that cannot fail: {printed}");
    let told = rows(&printed, "WRONG");
    let missing: Vec<_> = well.difference(&told).collect();
    assert!(missing.is_empty(), "{missing:?} of {printed}");
    assert!(!printed.contains(": unknown ("), "a row that is wrong for want of a value: {printed}");
}

/// What each call costs, by Python and the driver alone.
#[test]
fn the_costs_of_calls_are_printed_and_add_up_to_a_readings() {
    let mut scenario = scenario(8);
    scenario.gpus[0].cpu_ms.insert("nvmlDeviceGetPowerUsage".into(), 20);
    scenario.gpus[0].cpu_ms.insert("nvmlDeviceGetTotalEnergyConsumption".into(), 20);
    let fake = Fake::new(&scenario);
    let output = Command::new("python3").arg(CALLS).arg("1").arg(fake.library()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let of = |what: &str| {
        let line =
            printed.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{printed}"));
        line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap()
    };
    assert!((18_000.0..60_000.0).contains(&of("nvmlDeviceGetPowerUsage")), "{printed}");
    // All of the power and a tenth of the energy.
    assert!((20.0..70.0).contains(&of("a reading costs")), "{printed}");
    assert!(
        printed.contains("open after five openings with a wait for events: nothing more\n"),
        "{printed}"
    );
}

#[test]
fn what_cannot_be_checked_is_said_and_is_no_success() {
    let of = |change: fn(&mut Gpu)| {
        let mut scenario = scenario(8);
        change(&mut scenario.gpus[0]);
        scenario
    };
    for (scenario, why) in [
        (Scenario::default(), "no NVIDIA GPU here: the driver has none"),
        (of(|gpu| gpu.mig = true), "MIG is on; nvidia-smi -i 0 -mig 0 turns it off"),
        (
            of(|gpu| gpu.compute_mode = 3),
            "its compute mode is ExclusiveProcess; nvidia-smi -i 0 -c 0 resets it",
        ),
    ] {
        let (status, printed) = checked(&Fake::new(&scenario), 8, &[]);
        assert_eq!(status, Some(2), "{printed}");
        assert!(printed.contains(&format!("\nleft out: all of it ({why})\n")), "{printed}");
        assert!(printed.contains("\n0 wrong, 1 left out\n"), "{printed}");
    }
}

#[test]
fn a_driver_that_does_not_work_is_wrong_and_so_is_wrong_use() {
    for (function, error, why) in [
        ("nvmlInit_v2", 18, "the driver does not work: "),
        ("nvmlDeviceGetHandleByIndex_v2", 15, "GPU 0 cannot be used: "),
    ] {
        let mut scenario = scenario(8);
        scenario.errors.insert(function.into(), error);
        let (status, printed) = checked(&Fake::new(&scenario), 8, &[]);
        assert_eq!(status, Some(1), "{printed}");
        assert!(printed.contains(&format!("\nWRONG all of it: {why}")), "{printed}");
    }
    for words in [&[][..], &["/nonexistent"]] {
        let output = Command::new(SCRIPT).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: gpu.sh FOLDER"));
    }
    let output = Command::new(CHECK).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64));
    assert!(said.starts_with("usage: gpu_check FOLDER [PART...], of idle utilisation "), "{said}");
}

#[test]
fn without_a_counter_of_energy_the_rows_about_it_are_left_out() {
    const NOT_SUPPORTED: u32 = 3;
    let mut scenario = scenario(8);
    scenario.gpus[0].errors.insert("nvmlDeviceGetTotalEnergyConsumption".into(), NOT_SUPPORTED);
    let (status, printed) = checked(&Fake::new(&scenario), 8, &[]);
    assert_eq!(status, Some(2), "{printed}");
    for what in [
        "more power of an idle GPU while it is sampled",
        "energy, of what the device's counter says",
    ] {
        let line = format!("left out: {what} (the GPU has no counter of energy)\n");
        assert!(printed.contains(&line), "{printed}");
    }
    assert!(printed.contains("\n0 wrong, 2 left out\n"), "{printed}");
}
