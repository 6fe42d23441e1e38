//! A driver in a known state, and a sampler on it for the jobs 1 and 2.

use std::time::{Duration, Instant};

use fake_nvml::{Fake, Gpm, Gpu, Process, Scenario};
use jobtrace::{
    base::clock::monotonic_ns,
    gpu::{ProcessReading, Sampler, SamplerSettings},
    model::{group::Group, tables},
};
use tracer_ebpf::handle::{Handle, Histogram};

pub const GIB: u64 = 1 << 30;
/// Processes of job 1, of job 2 and of nobody. No such processes run: pids end at 2^22.
pub const ONE: u32 = 100_000_001;
pub const TWO: u32 = 200_000_001;
pub const NOBODY: u32 = 300_000_001;

/// The job that a process is of, by its number.
pub fn owner(process: &ProcessReading) -> Option<u32> {
    [(ONE, 1), (ONE + 1, 1), (TWO, 2)]
        .into_iter()
        .find(|(pid, _)| *pid == process.pid)
        .map(|of| of.1)
}

/// A process that holds some memory.
pub fn process(pid: u32, memory: u64) -> Process {
    Process { pid, memory: Some(memory), ..Process::default() }
}

/// A busy device with these processes.
pub fn gpu(uuid: &str, processes: Vec<Process>) -> Gpu {
    Gpu {
        uuid: uuid.into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        utilization: 81,
        memory_utilization: 40,
        memory_used: 42 * GIB,
        memory_total: 80 * GIB,
        power_mw: 512_000,
        energy_mj: 7_000_000,
        sm_clock_mhz: 1980,
        memory_clock_mhz: 2619,
        temperature: 61,
        ecc: Some(3),
        gpm: Some(Gpm {
            sm: Some(70.5),
            tensor: Some(30.25),
            dram: Some(12.0),
            occupancy: Some(25.5),
            fp: Some([1.0, 2.0, 3.0]),
            pcie: Some([100.0, 200.0]),
            nvlink: Some([300.0, 400.0]),
        }),
        power_limit_mw: Some(700_000),
        video: Some((5, 6)),
        // Memory's temperature, corrected errors, remapped rows, replays of PCIe, errors of NVLink.
        fields: [(82, 71), (3, 10), (142, 2), (143, 1), (94, 20), (38, 30), (52, 40)].into(),
        processes,
        ..Gpu::default()
    }
}

pub fn scenario(gpus: Vec<Gpu>) -> Scenario {
    Scenario { gpus, ..Scenario::default() }
}

/// Fast, so that tests need not wait.
pub fn settings(fake: &Fake) -> SamplerSettings {
    SamplerSettings {
        period: Duration::from_millis(10),
        library: Some(fake.library()),
        // Neither devices nor processes of this machine.
        root: "/nonexistent".into(),
        retry: None,
        back_off: Duration::from_millis(100),
    }
}

pub fn start(fake: &Fake) -> Sampler<u32> {
    Sampler::start(settings(fake), owner).unwrap()
}

/// What a job did up to now, by device.
pub fn groups(sampler: &Sampler<u32>, job: u32) -> Vec<Group> {
    let mut groups = sampler.groups_for(&job, monotonic_ns());
    groups.retain(|group| group.is(&tables::GPU));
    groups
}

/// The job's only group, once `is_so` of it; fails where that takes longer than any machine needs.
pub fn wait(sampler: &Sampler<u32>, job: u32, is_so: impl Fn(&Group) -> bool) -> Group {
    until(|| {
        let groups = groups(sampler, job);
        assert!(groups.len() <= 1, "{groups:?}");
        groups.into_iter().find(|group| is_so(group))
    })
}

/// Waits for `answer` to give one.
pub fn until<T>(answer: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Readings in which the job was on the device.
pub fn readings(group: &Group) -> u64 {
    group.hist(tables::Gpu::power_watts).map_or(0, |hist| hist.count())
}

/// Mean of a histogram, in the unit it is held in.
pub fn mean(group: &Group, field: Handle<Histogram>) -> Option<u64> {
    group.hist(field).and_then(|hist| hist.mean()).map(|mean| mean as u64)
}
