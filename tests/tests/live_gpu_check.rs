//! Live ring: the check for machines with GPUs (`tests/hardware/gpu.sh`), against a driver made for the test, and
//! against one of which nothing that is said is so.

use std::{collections::BTreeSet, os::unix::fs::symlink, path::Path, process::Command};

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace_tests::{rig::folder, traced::program};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hardware/gpu.sh");
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

/// What the script printed, and whether all was well. The programs lie in one folder, as on the machine that is
/// checked.
fn checked(scenario: &Scenario, faster: u64, more: &[(&str, &str)]) -> (bool, String) {
    let fake = Fake::new(scenario);
    let folder = folder("gpu-check").unwrap();
    let link = |program: &Path, name: &str| symlink(program, folder.path().join(name)).unwrap();
    link(&program().unwrap(), "jobtrace");
    link(Path::new(CHECK), "gpu_check");
    let fakes = ["cuda_work", "nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"];
    fakes.into_iter().for_each(|name| link(Path::new(FAKE), name));
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new(SCRIPT)
        .arg(folder.path())
        .env("PATH", path)
        .env("LD_LIBRARY_PATH", fake.folder())
        .env("GPU_CHECK_FASTER", faster.to_string())
        .envs(more.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    (output.status.success(), printed)
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
    let faster = 8;
    let (is_well, printed) = checked(&scenario(faster), faster, &[]);
    assert!(is_well && printed.contains("\n0 wrong\n"), "{printed}");
    assert!(printed.contains("NVIDIA H100 80GB HBM3"), "the doctor's line: {printed}");
    assert!(!printed.contains("left out"), "{printed}");
    let well = rows(&printed, "ok ");
    assert!(well.len() >= 25, "{well:?}");

    let faster = 20;
    let mut wrong = scenario(faster);
    wrong.gpus[0].awake_mw = 50_000;
    wrong.gpus[0].most_listed = Some(3);
    wrong.gpus[0].cpu_ms.insert("nvmlDeviceGetMemoryInfo_v2".into(), 20);
    let more = [("FAKE_WRONG", "1"), ("GPU_CHECK_SECONDS", "20")];
    let (is_well, printed) = checked(&wrong, faster, &more);
    assert!(!is_well, "{printed}");
    assert_eq!(rows(&printed, "ok "), BTreeSet::new(), "checks that cannot fail: {printed}");
    let told = rows(&printed, "WRONG");
    let missing: Vec<_> = well.difference(&told).collect();
    assert!(missing.is_empty(), "{missing:?} of {printed}");
}
