//! What looking for the processes on a card costs: alone in its process, so that the thread's time is that of
//! one sampler. The processes are this machine's own.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use fake_nvml::Tree;
use jobtrace::gpu::{Sampler, SamplerSettings};

const READINGS: u64 = 100;
/// One percent of a core at one reading a second, for so many processes; more cost as much more.
const MOST: Duration = Duration::from_millis(10);
const PROCESSES: u32 = 500;

#[test]
fn looking_for_the_processes_on_a_card_costs_less_than_one_percent_of_a_core() {
    let tree = Tree::new();
    tree.card(0, "i915", "8086:56C0", "0000:4d:00.0", 128);
    symlink("/proc", tree.path("proc")).unwrap();
    let settings = SamplerSettings {
        period: Duration::from_millis(20),
        library: Some(tree.path("no library")),
        root: tree.root().to_owned(),
        ..SamplerSettings::default()
    };
    let sampler = Sampler::start(settings, |_| Some(1)).unwrap();
    let wait_for = |readings| {
        let start = Instant::now();
        while sampler.cost().readings < readings {
            assert!(start.elapsed() < Duration::from_secs(60), "{:?}", sampler.cost());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    // All processes are new at first, and looked at.
    wait_for(10);
    let before = sampler.cost();
    wait_for(before.readings + READINGS);
    let after = sampler.cost();
    let each = Duration::from_nanos(after.cpu_ns - before.cpu_ns) / READINGS as u32;
    let is_process = |name: std::ffi::OsString| name.to_str()?.parse::<u32>().ok();
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let processes = names.filter_map(is_process).count() as u32;
    println!("{each:?} of CPU for each reading of one card among {processes} processes");
    assert!(each < MOST * processes.div_ceil(PROCESSES), "{each:?} for each reading");
}
