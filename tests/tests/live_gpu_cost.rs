//! Live ring: what the sampling of eight GPUs costs the whole agent, its looks at the jobs' slots included.

use std::{
    fs,
    process::Command,
    thread::{self, sleep},
    time::Duration,
};

use fake_nvml::{Fake, Gpu, Process, Scenario};
use jobtrace_tests::{
    agent::Agent,
    rig::shaped::{Running, Shaped},
    traced::program,
};

const GPUS: u32 = 8;
const USER: u32 = 65_534;
/// One interval of the agent's, with a whole number of readings.
const SPAN: Duration = Duration::from_secs(10);
/// Of a core. The debug build that other tests use takes five times as long as the release build.
const MOST: f64 = if cfg!(debug_assertions) { 0.025 } else { 0.005 };

/// CPU time of all threads of a process.
fn cpu(pid: i32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
    };
    Duration::from_nanos(tasks.map(of).sum())
}

#[test]
fn eight_gpus_once_a_second_cost_the_agent_less_than_half_a_percent_of_a_core() {
    let shaped = Shaped::make(&[""]);
    let jobs: Vec<_> = (0..GPUS).map(|index| shaped.job(USER, 100 + index, "step_0")).collect();
    // Of the readings alone, and with them: the difference is what GPUs cost.
    let measure = |sample: bool| {
        let fake = Fake::new(&Scenario::default());
        // Two processes on each GPU, as with a program and its helper: all questions are asked.
        let running: Vec<_> = jobs
            .iter()
            .flat_map(|job| [job, job])
            .map(|job| Running(job.command("sleep").arg("600").spawn().unwrap()))
            .collect();
        let gpus = running.chunks(2).enumerate().map(|(index, pair)| Gpu {
            uuid: format!("GPU-{index}"),
            utilization: 50,
            power_mw: 1_000,
            processes: pair
                .iter()
                .map(|of| Process {
                    pid: of.0.id(),
                    memory: Some(1 << 30),
                    samples: vec![(u64::MAX / 2, 50, 5)],
                    ..Process::default()
                })
                .collect(),
            ..Gpu::default()
        });
        fake.set(&Scenario { gpus: gpus.collect(), ..Scenario::default() });
        // The driver has its devices before the agent looks: without any it would look again minutes later.
        let mut command = Command::new(program().unwrap());
        command.env("LD_LIBRARY_PATH", fake.folder());
        let settings =
            format!("hierarchy = \"v2\"\ninterval = \"10s\"\ngpu.sample = {sample}\nslots = 256");
        let agent = Agent::start_by(command, &settings).unwrap();
        // What the beginning takes is over.
        sleep(Duration::from_secs(6));
        let before = cpu(agent.pid());
        sleep(SPAN);
        let used = cpu(agent.pid()) - before;
        drop(running);
        let points = agent.stop().unwrap();
        let told = points.0.iter().filter(|of| of.measurement == "job_gpu").count();
        assert_eq!(told > 0, sample, "{told} lines of GPUs");
        used
    };
    // At once, each with the processes of both to look at.
    let [without, with] = thread::scope(|scope| {
        [false, true]
            .map(|sample| scope.spawn(move || measure(sample)))
            .map(|used| used.join().unwrap())
    });
    let ratio = with.saturating_sub(without).as_secs_f64() / SPAN.as_secs_f64();
    println!(
        "{GPUS} GPUs with 2 processes each: {:.3} % of a core ({with:?} in {SPAN:?}, {without:?} without GPUs)",
        ratio * 100.0
    );
    for index in 0..GPUS {
        shaped.remove_job(USER, 100 + index);
    }
    assert!(ratio < MOST, "{ratio} of a core");
}
