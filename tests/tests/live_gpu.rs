//! Live ring: the GPUs of a traced command, told by a driver made for the test.

use std::{
    fs,
    io::Read,
    process::Command,
    time::{Duration, Instant},
};

use fake_nvml::{Fake, Gpu, Process, Scenario};
use jobtrace_tests::{
    stalls::Stalls,
    traced::{Traced, program},
};
use tempfile::TempDir;

const GIB: u64 = 1 << 30;
/// Stands for the command's number in what the driver is to say, until the command puts its own there.
const PLACEHOLDER: u32 = 4_242_424_242;

fn gpu(uuid: &str, pid: u32) -> Gpu {
    Gpu {
        uuid: uuid.into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        utilization: 81,
        memory_used: 41 * GIB,
        memory_total: 80 * GIB,
        power_mw: 512_000,
        sm_clock_mhz: 1980,
        temperature: 61,
        processes: vec![Process { pid, memory: Some(40 * GIB), ..Process::default() }],
        ..Gpu::default()
    }
}

/// Another's GPU, and the command's.
fn scenario() -> Scenario {
    let gpus = vec![gpu("GPU-other", std::process::id()), gpu("GPU-own", PLACEHOLDER)];
    Scenario { gpus, ..Scenario::default() }
}

/// jobtrace, with the test's driver.
fn with(fake: &Fake) -> Command {
    let mut command = Command::new(program().unwrap());
    command.env("LD_LIBRARY_PATH", fake.folder());
    command
}

#[test]
fn the_commands_gpu_is_told_and_no_other() {
    let fake = Fake::new(&Scenario::default());
    fake.set(&scenario());
    let template = fake.folder().join("template");
    fs::copy(fake.scenario(), &template).unwrap();
    let script = format!(
        "sed s/{PLACEHOLDER}/$$/ {0} > {0}.new && mv {0}.new {1} && exec sleep 6.5",
        template.display(),
        fake.scenario().display()
    );
    let out = TempDir::new().unwrap();
    let options = ["--out", out.path().to_str().unwrap()];
    let traced = Traced::run_by(with(&fake), &options, &["sh", "-c", &script]);
    assert!(traced.output.status.success(), "{:?}", traced.output);

    let gpus = traced.json["gpu"].as_array().unwrap_or_else(|| panic!("no gpu: {}", traced.json));
    let [gpu] = &gpus[..] else { panic!("not one gpu: {gpus:?}") };
    assert_eq!((&gpu["gpu"], &gpu["uuid"]), (&"1".into(), &"GPU-own".into()));
    assert_eq!(gpu["model"], "NVIDIA H100 80GB HBM3");
    // One reading a second, after the command named itself, and fewer where the machine stands still.
    let count = gpu["power_watts"]["count"].as_u64().unwrap();
    let most = traced.json["elapsed_ns"].as_u64().unwrap() / 1_000_000_000 + 1;
    assert!((3..=most).contains(&count), "{count} of {most} readings: {gpu}");
    let number = |field: &str, key: &str| gpu[field][key].as_f64().unwrap();
    // One that is late stands for as many seconds.
    let mean = |field: &str| number(field, "sum") / number(field, "count");
    assert!((mean("utilization_ratio") - 0.81).abs() < 1e-9, "{gpu}");
    assert!((mean("power_watts") - 512.0).abs() < 1e-9, "{gpu}");
    assert_eq!(gpu["sm_clock_hz"]["max"], 1_980_000_000_u64);
    assert_eq!(gpu["memory_peak_bytes"], 40 * GIB);
    assert_eq!(gpu["memory_total_bytes"], 80 * GIB);
    assert_eq!(gpu["temperature_max_celsius"], 61);
    let energy = gpu["energy_joules"].as_f64().unwrap();
    assert!((512.0 * 2.0..512.0 * most as f64).contains(&energy), "{energy} J");

    let files = fs::read_dir(out.path()).unwrap().map(|file| file.unwrap().path());
    let mut text = String::new();
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "gz")) {
        let mut lines = flate2::read::MultiGzDecoder::new(fs::File::open(file).unwrap());
        lines.read_to_string(&mut text).unwrap();
    }
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("job_gpu,")).collect();
    assert!(lines.len() as u64 >= count, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains(",uuid=GPU-own")), "{lines:?}");
    let bucket = |line: &str| line.starts_with("job_hist,") && line.contains("le=524.287,");
    assert!(text.lines().any(bucket), "no bucket of 512 W");
}

#[test]
fn a_command_that_uses_no_gpu_hears_of_none() {
    for fake in [Fake::new(&scenario()), Fake::without_library()] {
        let traced = Traced::run_by(with(&fake), &[], &["sleep", "1.3"]);
        assert!(traced.output.status.success(), "{:?}", traced.output);
        assert!(traced.json["gpu"].is_null(), "{}", traced.json);
        assert!(!traced.json["notes"].to_string().contains("GPU"), "{}", traced.json["notes"]);
    }
}

#[test]
fn a_driver_that_hangs_holds_up_no_run() {
    let mut scenario = scenario();
    scenario.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), 120_000);
    let fake = Fake::new(&scenario);
    let (stalls, start) = (Stalls::watch(), Instant::now());
    let traced = Traced::run_by(with(&fake), &[], &["sleep", "1.3"]);
    assert!(traced.output.status.success(), "{:?}", traced.output);
    let took = start.elapsed().saturating_sub(stalls.longest());
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(traced.number("sched", "execs") >= 1);
}
