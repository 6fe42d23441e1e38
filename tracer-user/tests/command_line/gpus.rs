//! What `doctor` says of GPUs: a driver's library made for the test, and trees of the kernel's files.

use std::{path::Path, process::Command};

use fake_nvml::{Fake, Gpu, Scenario, Tree};
use serde_json::Value;

use super::program::{end, jobtrace};

/// The findings about GPUs.
fn findings(library: &Path, root: &Path) -> Vec<(String, String, String)> {
    let mut command = jobtrace();
    command.args(["doctor", "--json", "--sysfs-root"]).arg(root);
    command.env("LD_LIBRARY_PATH", library);
    let ended = end(&mut command);
    let found: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let text = |found: &Value, key: &str| found[key].as_str().unwrap_or_default().to_owned();
    let finding = |found| ["subject", "state", "detail"].map(|key| text(found, key)).into();
    let found = found.as_array().unwrap().iter().map(finding);
    found.filter(|(subject, ..): &(String, _, _)| subject.ends_with("GPUs")).collect()
}

fn finding(subject: &str, state: &str, detail: &str) -> (String, String, String) {
    (subject.to_owned(), state.to_owned(), detail.to_owned())
}

#[test]
fn doctor_tells_of_every_makers_gpus() {
    let gpu = Gpu { uuid: "GPU-a".into(), name: "NVIDIA A100".into(), ..Gpu::default() };
    let fake = Fake::new(&Scenario { gpus: vec![gpu], ..Scenario::default() });
    let tree = Tree::new();
    tree.amd(0, "5df8f2c7a2a1c3e2", 4711);
    tree.amd(1, "5df8f2c7a2a1c3e3", 4712);
    tree.take("sys/class/drm/card1/device/gpu_busy_percent");
    tree.card(2, "i915", "8086:56C0", "0000:4d:00.0", 130);
    tree.card(3, "nvidia", "10DE:2330", "0000:01:00.0", 131);
    let activity = "activity of multiprocessors, tensor units and memory";
    let lacks =
        |what: &str, why: &str| format!("GPU 0 (NVIDIA A100) does not report its {what} ({why})");
    let unsupported = "the requested operation is not available on the target device";
    let expected = [
        finding("NVIDIA GPUs", "ok", "1, driver 550.54.15: GPU 0 (NVIDIA A100)"),
        finding("NVIDIA GPUs", "missing", &lacks(activity, unsupported)),
        finding("NVIDIA GPUs", "missing", &lacks("ECC errors", unsupported)),
        finding("NVIDIA GPUs", "missing", &lacks("power limit", unsupported)),
        finding("NVIDIA GPUs", "missing", &lacks("encoder", unsupported)),
        finding("NVIDIA GPUs", "missing", &lacks("decoder", unsupported)),
        finding("AMD GPUs", "ok", "2: GPU 0 (AMD Instinct MI210), GPU 1 (AMD Instinct MI210)"),
        finding(
            "AMD GPUs",
            "missing",
            "GPU 1 (AMD Instinct MI210) does not report its utilisation",
        ),
        finding("Intel GPUs", "ok", "1: GPU 0 (Intel 0x56c0)"),
    ];
    assert_eq!(findings(fake.folder(), tree.root()), expected);
}

#[test]
fn doctor_leaves_cards_asleep_and_waits_for_no_file_that_does_not_answer() {
    let (fake, tree) = (Fake::without_library(), Tree::new());
    tree.amd(0, "5df8f2c7a2a1c3e2", 4711);
    tree.put("sys/class/drm/card0/device/power/runtime_status", "suspended\n");
    let found = findings(fake.folder(), tree.root());
    let name = "GPU 0 (AMD Instinct MI210)";
    assert_eq!(found[1], finding("AMD GPUs", "ok", &format!("1: {name}")));
    let asleep = format!("{name} sleeps, and is not read until it wakes");
    assert_eq!(found[2], finding("AMD GPUs", "ok", &asleep));
    assert_eq!(found.len(), 4, "{found:?}");

    tree.put("sys/class/drm/card0/device/power/runtime_status", "active\n");
    let busy = tree.path("sys/class/drm/card0/device/gpu_busy_percent");
    std::fs::remove_file(&busy).unwrap();
    let status = Command::new("mkfifo").arg(&busy).status().unwrap();
    assert!(status.success());
    let silent = "the kernel's files about them do not answer, so job_gpu is unknown";
    let found = findings(fake.folder(), tree.root());
    assert_eq!(found[1..], [finding("AMD, Intel and other GPUs", "missing", silent)]);
}

#[test]
fn doctor_says_that_there_are_none() {
    let (fake, tree) = (Fake::without_library(), Tree::new());
    let none = "none (no card with a render node)";
    let expected = [
        finding("NVIDIA GPUs", "ok", "none (no libnvidia-ml.so.1, driver or device)"),
        finding("AMD GPUs", "ok", none),
        finding("Intel GPUs", "ok", none),
    ];
    assert_eq!(findings(fake.folder(), tree.root()), expected);
    let mismatch = [("nvmlInit_v2".to_owned(), 18)].into();
    let fake = Fake::new(&Scenario { errors: mismatch, ..Scenario::default() });
    let found = findings(fake.folder(), tree.root());
    assert_eq!(found[0].1, "missing");
    assert!(found[0].2.contains("driver/library version mismatch"), "{found:?}");
}
