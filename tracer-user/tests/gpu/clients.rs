//! What processes do on cards, by the files that they have open there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fake_nvml::Tree;
use jobtrace::{
    gpu::{Sampler, SamplerSettings},
    model::{group::Group, tables},
};

use super::{
    cards::{INTEL, settings, start},
    rig::{NOBODY, ONE, TWO, groups, mean, owner, wait},
};

/// What a driver like i915 tells of a client.
fn client(address: &str, id: u32, render_ns: u64, local_kib: u64) -> String {
    format!(
        "pos:\t0\nflags:\t02\ndrm-driver:\ti915\ndrm-client-id:\t{id}\ndrm-pdev:\t{address}\n\
         drm-resident-local0:\t{local_kib} KiB\ndrm-engine-render:\t{render_ns} ns\n"
    )
}

#[test]
fn a_client_is_as_busy_as_its_busiest_engine() {
    let tree = Arc::new(Tree::new());
    tree.card(0, "i915", "8086:56C0", INTEL, 128);
    tree.put("sys/class/drm/card0/gt/gt0/rps_act_freq_mhz", "1550\n");
    tree.put("sys/class/drm/card0/device/hwmon/hwmon2/energy1_input", "5000000\n");
    let begin = Instant::now();
    // Half of the time, in two descriptors of one client; a child holds it, too.
    let write = move |tree: &Tree| {
        let text = client(INTEL, 7, begin.elapsed().as_nanos() as u64 / 2, 2048);
        for (pid, descriptor) in [(ONE, 3), (ONE, 9), (ONE + 1, 3)] {
            tree.opens(pid, descriptor, "/dev/dri/renderD128", &text);
        }
    };
    write(&tree);
    let sampler = Sampler::start(
        SamplerSettings { period: Duration::from_millis(50), ..settings(&tree) },
        owner,
    )
    .unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let (tree, done) = (Arc::clone(&tree), Arc::clone(&done));
        move || {
            while !done.load(Ordering::Relaxed) {
                write(&tree);
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let busy =
        |group: &Group| group.hist(tables::Gpu::utilization_ratio).map_or(0, |hist| hist.count());
    let group = wait(&sampler, 1, |group| busy(group) >= 20);
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(group.tags, ["0", "PCI-0000:4d:00.0", "Intel 0x56c0", "intel", ""]);
    let share = mean(&group, tables::Gpu::utilization_ratio).unwrap();
    // A busy machine writes late: a reading has too little, the next one what was left.
    assert!((350_000..600_000).contains(&share), "{share}");
    assert_eq!(group.number(tables::Gpu::memory_used_bytes), Some(2 << 20), "once");
    assert_eq!(group.number(tables::Gpu::processes), Some(2));
    assert_eq!(mean(&group, tables::Gpu::sm_clock_hz), Some(1_550_000_000));
    assert_eq!(group.number(tables::Gpu::energy_joules), Some(0), "the counter stands");
    assert_eq!(mean(&group, tables::Gpu::memory_utilization_ratio), None);
}

#[test]
fn a_clients_counter_that_steps_back_and_catches_up_is_no_work() {
    let tree = Tree::new();
    tree.card(0, "i915", "8086:56C0", INTEL, 128);
    let put = |ns| tree.opens(ONE, 3, "/dev/dri/renderD128", &client(INTEL, 7, ns, 2048));
    put(10_000_000_000);
    let sampler = start(&tree);
    let busy =
        |group: &Group| group.hist(tables::Gpu::utilization_ratio).cloned().unwrap_or_default();
    let mut enough = 5;
    for ns in [5_000_000_000, 10_000_000_000] {
        let group = wait(&sampler, 1, |group| busy(group).count() >= enough);
        enough = busy(&group).count() + 5;
        put(ns);
    }
    let group = wait(&sampler, 1, |group| busy(group).count() >= enough);
    assert_eq!(busy(&group).max, 0);
}

#[test]
fn what_only_opened_a_card_is_not_on_it() {
    let tree = Tree::new();
    tree.card(0, "i915", "8086:56C0", INTEL, 128);
    tree.card(1, "nvidia", "10DE:2330", "0000:01:00.0", 129);
    tree.put("sys/class/drm/card2/device/uevent", "DRIVER=ast\nPCI_ID=1A03:2000\n");
    tree.opens(ONE, 3, "/dev/dri/renderD128", &client(INTEL, 1, 0, 0));
    tree.opens(ONE, 4, "/dev/nvidia0", "pos: 0\n");
    tree.opens(ONE, 5, "/dev/dri/renderD129", &client("0000:01:00.0", 1, 5, 5));
    tree.opens(ONE, 6, "/tmp/renderD128", &client(INTEL, 9, 5, 5));
    tree.opens(TWO, 3, "/dev/dri/renderD128", &client(INTEL, 2, 0, 4));
    let sampler = start(&tree);
    wait(&sampler, 2, |group| group.number(tables::Gpu::processes) == Some(1));
    thread::sleep(Duration::from_millis(200));
    assert_eq!(groups(&sampler, 1), []);
    tree.opens(ONE, 3, "/dev/dri/renderD128", &client(INTEL, 1, 1, 0));
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
    assert_eq!(group.tags[1], "PCI-0000:4d:00.0");
}

#[test]
fn a_process_that_opens_a_card_late_is_found() {
    let tree = Tree::new();
    tree.card(0, "panfrost", "", "", 128);
    for pid in [ONE, TWO, NOBODY] {
        tree.opens(pid, 1, "/dev/null", "pos: 0\n");
    }
    let sampler = start(&tree);
    thread::sleep(Duration::from_millis(300));
    // A device of another bus is known by its node.
    let text = "drm-driver: panfrost\ndrm-client-id: 3\ndrm-engine-fragment: 5 ns\n";
    tree.opens(ONE, 3, "/dev/dri/renderD128", text);
    let group = wait(&sampler, 1, |group| group.number(tables::Gpu::processes) == Some(1));
    assert_eq!(group.tags, ["0", "DRM-panfrost128", "panfrost", "panfrost", ""]);
    tree.take(&format!("proc/{ONE}"));
    wait(&sampler, 1, |group| group.number(tables::Gpu::processes).is_none());
}
