//! What sampling costs: alone in its process, so that the thread's time is that of one sampler.

use std::{
    fs,
    time::{Duration, Instant},
};

use fake_nvml::{Fake, Gpu, Process, Scenario};
use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{Sampler, SamplerSettings},
    model::tables,
};

const GPUS: u32 = 8;
const READINGS: u64 = 100;
/// Half a percent of a core at one reading a second.
const MOST: Duration = Duration::from_millis(5);

/// CPU time of the sampler's thread.
fn cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_sampler = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "gpu")
    };
    let task = tasks.into_iter().find(is_sampler).expect("the sampler's thread");
    let schedstat = fs::read_to_string(task.join("schedstat")).unwrap();
    Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn eight_gpus_once_a_second_cost_less_than_half_a_percent_of_a_core() {
    let pid = std::process::id();
    let gpu = |index: u32| Gpu {
        uuid: format!("GPU-{index}"),
        // Two processes, one of them there: all questions are asked and all files read.
        processes: vec![
            Process {
                pid,
                memory: Some(1 << 30),
                samples: vec![(u64::MAX / 2, 50, 5)],
                ..Process::default()
            },
            Process { pid: u32::MAX - index, ..Process::default() },
        ],
        power_mw: 1000,
        ..Gpu::default()
    };
    let gpus = (0..GPUS).map(gpu).collect();
    let fake = Fake::new(&Scenario { gpus, ..Scenario::default() });
    let period = Duration::from_millis(2);
    let settings =
        SamplerSettings { period, library: Some(fake.library()), ..SamplerSettings::default() };
    let sampler =
        Sampler::start(settings, move |process| (process.pid == pid).then_some(1)).unwrap();
    let readings = || {
        let groups = sampler.groups_for(&1, monotonic_ns());
        groups
            .first()
            .and_then(|group| group.hist(tables::Gpu::power_watts))
            .map_or(0, |hist| hist.count())
    };
    let wait_for = |count| {
        let start = Instant::now();
        while readings() < count {
            assert!(start.elapsed() < Duration::from_secs(60), "{} readings", readings());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for(1);
    let (before, first) = (cpu(), readings());
    wait_for(first + READINGS);
    let (used, count) = (cpu() - before, readings() - first);
    let each = used / count as u32;
    println!("{each:?} of CPU for each reading of {GPUS} GPUs: {count} readings took {used:?}");
    assert!(each < MOST, "{each:?} for each reading");
}
