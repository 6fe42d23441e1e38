//! Live ring: GPUs of the node's jobs as the agent tells them, by a driver made for the test.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use fake_nvml::{Fake, Gpu, Process, Scenario};
use jobtrace_tests::{
    account::Report,
    agent::{Agent, Points},
    agree::tried_again,
    disk::RamDisk,
    rig::{
        PATIENCE,
        shaped::{Running, Shaped},
        wait_for,
    },
    stalls::Stalls,
    traced::program,
};

const ALTERNATE: &str = env!("CARGO_BIN_EXE_alternate");
const TRANSFER: &str = env!("CARGO_BIN_EXE_transfer");
const MIB: u64 = 1 << 20;
const USER: u32 = 65_534;
/// How long a driver hangs, and after which time it has begun to.
const HANGS: Duration = Duration::from_secs(8);
const SETTLED: Duration = Duration::from_secs(2);
/// `NVML_ERROR_GPU_IS_LOST`.
const LOST: u32 = 15;

fn gpu(uuid: &str) -> Gpu {
    Gpu {
        uuid: uuid.into(),
        name: "NVIDIA H100 80GB HBM3".into(),
        power_mw: 90_000,
        ..Gpu::default()
    }
}

fn scenario(uuids: &[&str]) -> Scenario {
    Scenario { gpus: uuids.iter().map(|uuid| gpu(uuid)).collect(), ..Scenario::default() }
}

/// An agent with the test's driver, which tells jobs apart in v2.
fn agent(fake: &Fake, more: &str) -> Agent {
    let mut command = Command::new(program().unwrap());
    command.env("LD_LIBRARY_PATH", fake.folder());
    Agent::start_by(command, &format!("hierarchy = \"v2\"\n{more}")).unwrap()
}

/// Sum of a field over the lines of a job and a device.
fn sum(points: &Points, job: &str, uuid: &str, field: &str) -> u64 {
    let of = |point: &&jobtrace_tests::agent::Point| {
        point.measurement == "job_gpu" && point.tag("job") == job && point.tag("uuid") == uuid
    };
    points.0.iter().filter(of).filter_map(|point| point.number(field)).sum()
}

/// The devices that a job has lines of.
fn devices(points: &Points, job: &str) -> Vec<String> {
    let of = points.0.iter().filter(|of| of.measurement == "job_gpu" && of.tag("job") == job);
    let mut uuids: Vec<_> = of.map(|point| point.tag("uuid").to_owned()).collect();
    uuids.sort();
    uuids.dedup();
    uuids
}

/// From the job's begin to its end, though nobody looks at jobs in between.
#[test]
fn a_gpu_is_held_for_as_long_as_its_job_lives_and_no_longer() {
    let fake = Fake::new(&scenario(&["GPU-held"]));
    let shaped = Shaped::make(&[""]);
    let agent = agent(&fake, "interval = \"10s\"");
    let stalls = Stalls::watch();
    agent.wait_for("readings", PATIENCE, |_| agent.sampler_thread()).unwrap();
    let place = shaped.job(USER, 85, "step_0");
    let begin = Instant::now();
    let held = [("SLURM_JOB_ID", "85"), ("SLURM_JOB_GPUS", "0"), ("SLURM_JOB_UID", "65534")];
    assert!(place.command("sleep").arg("8").envs(held).status().unwrap().success());
    shaped.remove_job(USER, 85);
    let lived_s = begin.elapsed().as_secs_f64();
    agent.settle().unwrap();
    let points = agent.stop().unwrap();
    let held_s = sum(&points, "85", "GPU-held", "held_ns") as f64 / 1e9;
    // A reading comes each second, and counts for all the time since the one before it.
    let stall_s = stalls.longest().as_secs_f64();
    let is_near = (lived_s - 1.5 - stall_s..=lived_s + 1.5 + stall_s).contains(&held_s);
    assert!(is_near, "{held_s} s of {lived_s} s, with stalls of {stall_s} s");
}

/// A job that begins before the first reading has its GPU from that on, not from the next tick, which is beyond the
/// job's end; and again from a reload on, which begins to sample anew.
#[test]
fn a_gpu_of_a_job_that_begins_before_the_first_reading_is_held_from_that_on() {
    // Its number is one that no job of the tests beside this one has.
    let uuids = ["GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-5", "GPU-first"];
    let mut hangs = scenario(&uuids);
    hangs.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), HANGS.as_millis() as u64);
    let fake = Fake::new(&hangs);
    let shaped = Shaped::make(&[""]);
    let agent = agent(&fake, "interval = \"120s\"");
    agent.wait_for("readings", PATIENCE, |_| agent.sampler_thread()).unwrap();
    let begin = Instant::now();
    let place = shaped.job(USER, 87, "step_0");
    let held = [("SLURM_JOB_ID", "87"), ("SLURM_JOB_GPUS", "6"), ("SLURM_JOB_UID", "65534")];
    let mut running = Running(place.command("sleep").arg("600").envs(held).spawn().unwrap());
    // The call that hangs has begun.
    thread::sleep(SETTLED);
    fake.set(&scenario(&uuids));
    let stalls = Stalls::watch();
    thread::sleep(HANGS);
    let period = "gpu.period = \"900ms\"";
    agent.reload(&format!("hierarchy = \"v2\"\ninterval = \"120s\"\n{period}")).unwrap();
    thread::sleep(HANGS);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    shaped.remove_job(USER, 87);
    let lived_s = begin.elapsed().as_secs_f64();
    let points = agent.stop().unwrap();
    let held_s = sum(&points, "87", "GPU-first", "held_ns") as f64 / 1e9;
    // While the call hangs, which began before the job, nothing is known, and nothing comes with the first two readings
    // of each sampler.
    let least_s = lived_s - HANGS.as_secs_f64() - 4.5;
    let stall_s = stalls.longest().as_secs_f64();
    let is_near = (least_s - stall_s..=lived_s + 1.5 + stall_s).contains(&held_s);
    assert!(is_near, "{held_s} s of {lived_s} s, with stalls of {stall_s} s");
}

/// Its steps are told apart: each has the device while it is on it, and the job at all other times.
#[test]
fn a_gpu_of_a_job_with_steps_is_held_once() {
    // Its number is one that no job of the tests beside this one has.
    let uuids = ["GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-4", "GPU-steps"];
    let fake = Fake::new(&scenario(&uuids));
    let shaped = Shaped::make(&[""]);
    let agent = agent(&fake, "steps = true");
    let stalls = Stalls::watch();
    agent.wait_for("readings", PATIENCE, |_| agent.sampler_thread()).unwrap();
    let place = shaped.job(USER, 86, "step_0");
    let begin = Instant::now();
    let held = [("SLURM_JOB_ID", "86"), ("SLURM_JOB_GPUS", "5"), ("SLURM_JOB_UID", "65534")];
    let mut running = Running(place.command("sleep").arg("600").envs(held).spawn().unwrap());
    let of = |now: &Points, step: &str, field: &str| {
        let is_it = |point: &&jobtrace_tests::agent::Point| {
            point.measurement == "job_gpu" && point.tag("job") == "86" && point.tag("step") == step
        };
        now.0.iter().filter(is_it).filter_map(|point| point.number(field)).sum::<u64>()
    };
    let grows = |what: &str, step: &str, from: u64| {
        let ns =
            |now: &Points| Some(of(now, step, "held_ns")).filter(|ns| *ns > from + 3_000_000_000);
        agent.wait_for(what, PATIENCE, ns).unwrap()
    };
    let idle_ns = grows("the job has it while nobody uses it", "", 0);
    let processes = vec![Process { pid: running.0.id(), memory: Some(MIB), ..Process::default() }];
    let mut works = scenario(&uuids);
    (works.gpus[5].processes, works.gpus[5].utilization) = (processes, 100);
    fake.set(&works);
    grows("the step that is on it has it", "0", 0);
    fake.set(&scenario(&uuids));
    grows("and then the job again", "", idle_ns);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    shaped.remove_job(USER, 86);
    let lived_s = begin.elapsed().as_secs_f64();
    agent.settle().unwrap();
    let points = agent.stop().unwrap();
    let seconds = |step: &str, field: &str| of(&points, step, field) as f64 / 1e9;
    let held_s = seconds("", "held_ns") + seconds("0", "held_ns");
    let stall_s = stalls.longest().as_secs_f64();
    let is_near = (lived_s - 1.5 - stall_s..=lived_s + 1.5 + stall_s).contains(&held_s);
    assert!(is_near, "{held_s} s of {lived_s} s, with stalls of {stall_s} s");
    assert!(seconds("0", "busy_ns") > 2.0 && seconds("0", "used_ns") == seconds("0", "held_ns"));
}

#[test]
fn each_job_is_told_its_own_gpus_and_why_they_were_idle() {
    tried_again(|| {
        let (disk, other) = (RamDisk::new(64 * MIB), RamDisk::new(64 * MIB));
        let (disk, other) = (disk.path(), other.path());
        let fake = Fake::new(&scenario(&["GPU-own", "GPU-held", "GPU-free", "GPU-site"]));
        let held = tempfile::tempdir().unwrap();
        fs::write(held.path().join("GPU-site"), "84 65534\n").unwrap();
        let shaped = Shaped::make(&[""]);
        let agent = agent(&fake, &format!("gpu.held_dir = {:?}", held.path()));
        let folder = fake.folder().to_str().unwrap().to_owned();
        let [trains, holds, reads, site] =
            [(81, "step_0"), (82, "step_0"), (83, "step_0"), (84, "")]
                .map(|(job, step)| shaped.job(USER, job, step));
        let words = [ALTERNATE, &folder, "0", &disk, "20", "30", "spin"];
        let (printed, lived) = thread::scope(|scope| {
            let holding = scope.spawn(|| {
                let begin = Instant::now();
                // Slurm counts in PCI order, as the driver does.
                let mut sleeps = holds.command("sleep");
                let held =
                    [("SLURM_JOB_ID", "82"), ("SLURM_JOB_GPUS", "1"), ("SLURM_JOB_UID", "65534")];
                assert!(sleeps.arg("12").envs(held).status().unwrap().success());
                shaped.remove_job(USER, 82);
                begin.elapsed()
            });
            // Reads like the training's, beside it.
            scope.spawn(|| {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_secs(18) {
                    reads.run(&[TRANSFER, "read", &other, "256", "262144"]);
                }
            });
            let of_site = scope.spawn(|| {
                let begin = Instant::now();
                site.run(&["sleep", "6"]);
                shaped.remove_job(USER, 84);
                begin.elapsed()
            });
            let printed = trains.run(&words);
            (printed, [holding, of_site].map(|job| job.join().unwrap().as_secs_f64()))
        });
        let points = agent.settle().unwrap();
        [81, 83].into_iter().for_each(|job| shaped.remove_job(USER, job));
        let ended = agent.stop().unwrap();
        let report: Report = serde_json::from_str(&printed).unwrap();

        assert_eq!(devices(&ended, "81"), ["GPU-own"]);
        assert_eq!(devices(&ended, "82"), ["GPU-held"]);
        assert_eq!(devices(&ended, "83"), Vec::<String>::new(), "the sibling has no GPU");
        assert_eq!(devices(&ended, "84"), ["GPU-site"]);
        assert_eq!(devices(&ended, "_system"), Vec::<String>::new());

        let own = |field: &str| sum(&ended, "81", "GPU-own", field) as f64;
        let (busy, idle) = (own("busy_ns"), own("idle_ns"));
        let parts = [
            "idle_while_blocked_ns",
            "idle_while_run_queue_ns",
            "idle_while_faulting_ns",
            "idle_while_on_cpu_ns",
            "idle_while_network_ns",
            "idle_other_ns",
        ];
        assert_eq!(parts.map(own).iter().sum::<f64>(), idle);
        println!("{busy} busy, {idle} idle: {:?}", parts.map(own));
        let fact = |name: &str| report.facts[name] as f64;
        let whole = fact("busy_ns") + fact("idle_ns");
        assert!(busy + idle > whole - 3e9 && busy + idle < whole * 1.05, "{busy} {idle} {whole}");
        for (field, fact) in
            [("idle_ns", fact("idle_ns")), ("idle_while_blocked_ns", fact("blocked_ns"))]
        {
            let (ours, truth) = (own(field) / (busy + idle), fact / whole);
            println!("{field}: {ours:.4} of the time, the workload says {truth:.4}");
            assert!((ours - truth).abs() <= 0.05, "{field}: {ours} for {truth}");
        }
        // Every interval's parts are its idle time.
        for point in points.0.iter().filter(|point| point.number("idle_other_ns").is_some()) {
            let sum: u64 = parts.iter().filter_map(|part| point.number(part)).sum();
            assert_eq!(Some(sum), point.number("idle_ns"), "{point:?}");
        }
        for (job, uuid, least, most) in
            [("82", "GPU-held", 8.0, lived[0] + 1.5), ("84", "GPU-site", 3.0, lived[1] + 1.5)]
        {
            let held = sum(&ended, job, uuid, "held_ns") as f64 / 1e9;
            assert!((least..most).contains(&held), "{job} held {uuid} for {held} s");
            assert_eq!(sum(&ended, job, uuid, "used_ns"), 0, "{job}");
            let idle = sum(&ended, job, uuid, "idle_ns") as f64 / 1e9;
            assert!(idle > least - 2.0 && idle <= held, "{job}: idle {idle} of {held}");
        }
        let agents: Vec<_> =
            ended.0.iter().filter(|of| of.measurement == "jobtrace_self").collect();
        let total = |field: &str| agents.iter().filter_map(|of| of.number(field)).sum::<u64>();
        assert!(total("gpu_readings") >= 15 && total("gpu_failures") == 0);
        assert!(total("gpu_cpu_ns") > 0 && total("gpu_cpu_ns") < total("cpu_ns"));
    });
}

#[test]
fn a_driver_that_comes_late_hangs_and_loses_a_gpu_holds_up_nothing() {
    let fake = Fake::without_library();
    let shaped = Shaped::make(&[""]);
    let agent = agent(&fake, "gpu.retry = \"10s\"\ngpu.held_dir = \"\"");
    let job = shaped.job(USER, 91, "step_0");
    let mut running = Running(job.command("sleep").arg("600").spawn().unwrap());
    let of = |uuid: &str| {
        let processes =
            vec![Process { pid: running.0.id(), memory: Some(MIB), ..Process::default() }];
        Gpu { processes, utilization: 50, ..gpu(uuid) }
    };
    let well = || Scenario { gpus: vec![of("GPU-a"), of("GPU-b")], ..Scenario::default() };
    let used = |points: &Points, uuid: &str| sum(points, "91", uuid, "used_ns");
    let settled = agent.settle().unwrap();
    assert_eq!(devices(&settled, "91"), Vec::<String>::new(), "there is no driver yet");

    fake.set(&well());
    fake.install();
    let grows = |what: &str, from: u64, uuid: &str| {
        agent.wait_for(what, PATIENCE, |now| Some(used(now, uuid)).filter(|ns| *ns > from)).unwrap()
    };
    grows("the driver that came late is found", 0, "GPU-a");
    grows("so is its second device", 0, "GPU-b");

    let mut hangs = well();
    hangs.gpus[0].hang_ms.insert("nvmlDeviceGetPowerUsage".into(), HANGS.as_millis() as u64);
    fake.set(&hangs);
    // It is asked once a second.
    thread::sleep(SETTLED);
    let sched =
        |points: &Points| points.0.iter().filter(|of| of.measurement == "jobtrace_self").count();
    let before = sched(&agent.points().unwrap());
    let three = |now: &Points| (sched(now) >= before + 3).then_some(());
    agent.wait_for("three intervals while the driver hangs", HANGS - SETTLED, three).unwrap();

    let mut lost = well();
    lost.gpus[0].errors.insert("nvmlDeviceGetPowerUsage".into(), LOST);
    fake.set(&lost);
    let said = || agent.log().contains("was lost for a time or for good").then_some(());
    wait_for("the loss is said", PATIENCE, said).unwrap();
    let (a, b) = (used(&agent.points().unwrap(), "GPU-a"), used(&agent.points().unwrap(), "GPU-b"));
    grows("the other goes on", b, "GPU-b");
    fake.set(&well());
    grows("it is back", a, "GPU-a");
    assert!(agent.log().contains("GPU 0 (NVIDIA H100 80GB HBM3) is back"), "{}", agent.log());

    running.0.kill().unwrap();
    running.0.wait().unwrap();
    shaped.remove_job(USER, 91);
    let ended = agent.stop().unwrap();
    let failures = ended.0.iter().filter_map(|of| of.number("gpu_failures")).sum::<u64>();
    assert!((1..10).contains(&failures), "{failures}");
}

#[test]
fn the_driver_is_let_go_of_when_sampling_ends() {
    let fake = Fake::new(&scenario(&["GPU-a"]));
    let settings = |gpu: &str| format!("hierarchy = \"v2\"\n{gpu}");
    let agent = agent(&fake, "");
    let pid = agent.pid() as u32;
    let has = |count: usize| {
        let references = || (fake.references(pid) == count).then_some(());
        wait_for("the references", PATIENCE, references).unwrap();
    };
    has(1);
    for period in ["900ms", "800ms", "900ms", "800ms", "900ms"] {
        let before = agent.sampler_thread();
        agent.reload(&settings(&format!("gpu.period = \"{period}\""))).unwrap();
        let other = || agent.sampler_thread().filter(|now| Some(now) != before.as_ref());
        wait_for("another sampler", PATIENCE, other).unwrap();
        has(1);
    }
    assert!(agent.log().contains("configuration reloaded: changed: gpu.period"), "{}", agent.log());
    agent.reload(&settings("gpu.sample = false")).unwrap();
    has(0);
    agent.reload(&settings("")).unwrap();
    has(1);
    agent.stop().unwrap();
}
