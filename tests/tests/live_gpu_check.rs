//! Live ring: the check for machines with GPUs (`tests/hardware/gpu.sh`), against a driver made for the test.

use std::{
    path::Path,
    process::{Command, Output},
};

use fake_nvml::{Fake, Gpu, Scenario};
use jobtrace_tests::traced::program;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hardware/gpu.sh");
const CHECK: &str = env!("CARGO_BIN_EXE_gpu_check");
const WORK: &str = env!("CARGO_BIN_EXE_fake_cuda_work");
const NOT_SUPPORTED: u32 = 3;

fn fake(change: impl Fn(&mut Gpu)) -> Fake {
    let mut gpu = Gpu {
        uuid: "GPU-a".into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        memory_total: 80 << 30,
        power_mw: 400_000,
        ..Gpu::default()
    };
    change(&mut gpu);
    Fake::new(&Scenario { gpus: vec![gpu], ..Scenario::default() })
}

/// What it printed, with whole turns of five seconds or next to none.
fn checked(fake: &Fake, command: &mut Command, seconds: u32) -> (Output, String) {
    let output = command
        .arg(fake.library())
        .env("LD_LIBRARY_PATH", fake.folder())
        .env("FAKE_NVML", fake.folder())
        .env("GPU_CHECK_WORK", WORK)
        .env("GPU_CHECK_SECONDS", seconds.to_string())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
    (output, printed)
}

#[test]
fn a_driver_that_is_well_passes() {
    let fake = fake(|_| {});
    // The programs lie in one folder, as they do on the machine that is checked.
    let folder = tempfile::tempdir().unwrap();
    let link = |program: &Path, name: &str| {
        std::os::unix::fs::symlink(program, folder.path().join(name)).unwrap();
    };
    link(&program().unwrap(), "jobtrace");
    link(Path::new(CHECK), "gpu_check");
    let (output, printed) = checked(&fake, Command::new(SCRIPT).arg(folder.path()), 10);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("0 wrong"), "{printed}");
    assert!(printed.contains("NVIDIA H100 80GB HBM3"), "the doctor's line: {printed}");
    assert!(printed.lines().filter(|line| line.starts_with("ok ")).count() >= 15, "{printed}");
}

#[test]
fn what_is_wrong_is_said_and_fails() {
    let fake = fake(|gpu| {
        gpu.errors.insert("nvmlDeviceGetTotalEnergyConsumption".into(), NOT_SUPPORTED);
    });
    let (output, printed) = checked(&fake, Command::new(CHECK).arg(WORK), 2);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let energy = printed.lines().find(|line| line.contains(" energy: "));
    assert!(energy.is_some_and(|line| line.starts_with("WRONG")), "{printed}");
}
