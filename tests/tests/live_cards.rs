//! Live ring: the GPUs of a traced command that the kernel's files tell of, in a tree made for the test.

use fake_nvml::Tree;
use jobtrace_tests::traced::Traced;

const GIB: u64 = 1 << 30;

#[test]
fn the_commands_card_is_told_and_no_other() {
    let tree = Tree::new();
    tree.amd(0, "5df8f2c7a2a1c3e2", 4711);
    tree.amd(1, "5df8f2c7a2a1c3e3", 815);
    // Another's, on the first.
    let other = std::process::id();
    tree.computes(other, 4711, GIB, 52);
    tree.put(&format!("proc/{other}/cgroup"), std::fs::read("/proc/self/cgroup").unwrap());
    let root = tree.root().display();
    let script = format!(
        "proc={root}/proc/$$ kfd={root}/sys/class/kfd/kfd/proc/$$
        mkdir -p $proc $kfd/stats_815 && cp /proc/$$/cgroup $proc/cgroup &&
        echo 26 > $kfd/stats_815/cu_occupancy && echo {GIB} > $kfd/vram_815 && exec sleep 6.5"
    );
    let options = ["--sysfs-root", &root.to_string()];
    let traced = Traced::run(&options, &["sh", "-c", &script]);
    assert!(traced.output.status.success(), "{:?}", traced.output);

    let gpus = traced.json["gpu"].as_array().unwrap_or_else(|| panic!("no gpu: {}", traced.json));
    let [gpu] = &gpus[..] else { panic!("not one gpu: {gpus:?}") };
    for (key, expected) in [
        ("gpu", "1"),
        ("uuid", "GPU-5df8f2c7a2a1c3e3"),
        ("vendor", "amd"),
        ("model", "AMD Instinct MI210"),
    ] {
        assert_eq!(gpu[key], expected, "{gpu}");
    }
    // One reading a second, after the command named itself, and fewer where the machine stands still.
    let count = gpu["power_watts"]["count"].as_u64().unwrap();
    let most = traced.json["elapsed_ns"].as_u64().unwrap() / 1_000_000_000 + 1;
    assert!((3..=most).contains(&count), "{count} of {most} readings: {gpu}");
    let number = |field: &str, key: &str| gpu[field][key].as_f64().unwrap();
    // One that is late stands for as many seconds.
    let mean = |field: &str| number(field, "sum") / number(field, "count");
    for (field, expected) in
        [("utilization_ratio", 0.73), ("sm_activity_ratio", 0.25), ("power_watts", 231.0)]
    {
        assert!((mean(field) - expected).abs() < 1e-9, "{field}: {gpu}");
    }
    assert_eq!((&gpu["memory_peak_bytes"], &gpu["readings_shared"]), (&GIB.into(), &0.into()));
}
