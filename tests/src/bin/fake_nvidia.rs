//! The programs of a driver that is made for a test, each under its own name: `cuda_work`, `nvidia-smi`, and
//! `nvidia-cuda-mps-control` with its server. The driver is the one in LD_LIBRARY_PATH. With FAKE_WRONG they do
//! and say other things than they are asked for.

use std::{
    env,
    fs::{self, File},
    io::read_to_string,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
    thread,
    time::Duration,
};

use fake_nvml::{Gpu, Process, Scenario, Turns};
use rustix::process::{Pid, Signal};

const MPS_FOLDER: &str = "CUDA_MPS_PIPE_DIRECTORY";
const MPS_SERVER: &str = "nvidia-cuda-mps-server";
/// No server outlives its test by more.
const MPS_LAST: Duration = Duration::from_secs(120);
const LOST: u32 = 15;
const UNKNOWN: u32 = 999;

fn folder() -> PathBuf {
    PathBuf::from(env::var_os("LD_LIBRARY_PATH").expect("the driver's folder"))
}

fn is_wrong() -> bool {
    env::var_os("FAKE_WRONG").is_some()
}

fn state() -> Scenario {
    serde_json::from_slice(&fs::read(folder().join("scenario.json")).unwrap()).unwrap()
}

/// Changes the first GPU, one program at a time. What was killed is not there any more. Wrong: from then on the
/// driver is not let go of.
fn change(of: impl Fn(&mut Gpu)) {
    let folder = folder();
    let lock = File::create(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut scenario = state();
    if is_wrong() {
        scenario.errors.insert("nvmlShutdown".into(), UNKNOWN);
    }
    let gpu = &mut scenario.gpus[0];
    of(gpu);
    let proc = proc();
    let runs = |process: &Process| proc.join(process.pid.to_string()).exists();
    gpu.processes.retain(runs);
    gpu.mps.retain(runs);
    let new = folder.join("changed.json");
    fs::write(&new, serde_json::to_vec(&scenario).unwrap()).unwrap();
    fs::rename(new, folder.join("scenario.json")).unwrap();
}

/// The folder of the node's /proc, an open file of this process's.
const NODES_PROC: &str = "FAKE_NODES_PROC";

/// The /proc of whoever looks. Who is the first of a PID namespace has one of its own, and is looked at from outside.
fn proc() -> PathBuf {
    let is_first = fs::read_link("/proc/self").unwrap().as_os_str() == "1";
    match env::var(NODES_PROC).ok().filter(|_| is_first) {
        Some(file) => Path::new("/proc/self/fd").join(file),
        None => "/proc".into(),
    }
}

/// This process's number, as a driver tells it to whoever looks.
fn own_pid() -> u32 {
    fs::read_link(proc().join("self")).unwrap().to_str().unwrap().parse().unwrap()
}

/// The first of `pids` works, if any does.
fn enter(pids: &[u32], turns: Option<Turns>, mib: u64) {
    let memory = Some(mib << 20);
    // CUDA's order may be another than the driver's.
    let visible = env::var("CUDA_VISIBLE_DEVICES");
    change(|gpu| {
        assert_eq!(visible.as_ref(), Ok(&gpu.uuid), "CUDA's own first GPU may be another");
        let through_mps = env::var_os(MPS_FOLDER).is_some();
        let list = if through_mps { &mut gpu.mps } else { &mut gpu.processes };
        list.extend(pids.iter().enumerate().map(|(place, pid)| Process {
            pid: *pid,
            memory,
            turns: turns.filter(|_| place == 0),
            ..Process::default()
        }));
    });
}

fn leave(pids: &[u32]) {
    change(|gpu| {
        gpu.processes.retain(|process| !pids.contains(&process.pid));
        gpu.mps.retain(|process| !pids.contains(&process.pid));
    });
}

/// As asked for.
fn spin(whole: Duration, turns: Turns, mib: u64) {
    enter(&[own_pid()], Some(turns), mib);
    thread::sleep(whole);
    leave(&[own_pid()]);
}

/// Busier, larger and beside a stranger, and killed, a part of it outlives it. One that is idle most of the time is
/// not listed where others are, one that is busy most of the time is away for a while, one beside whose work
/// another's is does it at any time and leaves early.
fn spin_wrong(whole: Duration, turns: Turns, mib: u64) {
    let more = Turns { from: 0, percent: (turns.percent + 30).min(100), ..turns };
    let own = own_pid();
    match (turns.from, turns.percent) {
        (0, 10) if !state().gpus[0].processes.is_empty() => return thread::sleep(whole),
        (0, 20) => {
            enter(&[own], Some(more), mib * 3);
            thread::sleep(whole * 2 / 3);
            return leave(&[own]);
        }
        (50, 40) => return spin(whole, more, mib * 3),
        _ => {}
    }
    let mut left = Command::new("sleep").arg("10").spawn().unwrap();
    let mut stranger = Command::new("sleep").arg("10").process_group(0).spawn().unwrap();
    let all = [own, left.id(), stranger.id()];
    enter(&all, Some(more), mib * 3);
    thread::sleep(whole / 3);
    if turns.percent == 80 {
        leave(&all);
    }
    thread::sleep(whole / 3);
    if turns.percent == 80 {
        enter(&all, Some(more), mib * 3);
    }
    thread::sleep(whole / 3);
    leave(&all);
    for child in [&mut left, &mut stranger] {
        child.kill().and_then(|()| child.wait()).unwrap();
    }
}

/// Wrong: another error, with which the device is lost.
fn crash() {
    let code = if is_wrong() { 63 } else { 31 };
    enter(&[own_pid()], None, 0);
    change(|gpu| {
        gpu.xids.extend([(code, None), (45, None), (45, None)]);
        if is_wrong() {
            gpu.errors.insert("nvmlDeviceGetPowerUsage".into(), LOST);
        }
    });
    leave(&[own_pid()]);
}

/// Wrong: one process more, and each larger.
fn smi(words: &[&str]) {
    let scenario = state();
    let Some(gpu) = scenario.gpus.first() else { return println!("No devices were found") };
    if let Some(fields) = words.iter().find_map(|word| word.strip_prefix("--query-gpu=")) {
        let value = |field| match field {
            "name" => gpu.name.as_str(),
            "driver_version" => scenario.version(),
            "persistence_mode" => "Enabled",
            _ => "[N/A]",
        };
        return println!("{}", fields.split(',').map(value).collect::<Vec<_>>().join(", "));
    }
    let fields = words.iter().find_map(|word| word.strip_prefix("--query-compute-apps="));
    assert_eq!(fields, Some("pid,used_gpu_memory"), "{words:?}");
    let more = u64::from(is_wrong());
    for process in &gpu.processes {
        println!("{}, {}", process.pid, (process.memory.unwrap_or(0) >> 20) + more * 512);
    }
    (0..more).for_each(|_| println!("1, 100"));
}

/// Starts the server, or ends it, as standard input says.
#[expect(clippy::zombie_processes, reason = "the server outlives who starts it")]
fn mps_control(words: &[&str]) {
    let folder = PathBuf::from(env::var_os(MPS_FOLDER).unwrap());
    let server = folder.join("server");
    if words == ["-d"] {
        let own = PathBuf::from(env::args_os().next().unwrap());
        let mut command = Command::new(own.with_file_name(MPS_SERVER));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        return fs::write(server, child.id().to_string()).unwrap();
    }
    assert_eq!(read_to_string(std::io::stdin()).unwrap(), "quit\n");
    let pid = fs::read_to_string(server).unwrap().parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Is on the device itself, with its own memory.
fn mps_server() {
    let process = || Process { pid: process::id(), memory: Some(30 << 20), ..Process::default() };
    change(|gpu| gpu.processes.push(process()));
    thread::sleep(MPS_LAST);
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = Path::new(words[0]).file_name().and_then(|name| name.to_str());
    let number = |word: &str| word.parse::<u64>().unwrap();
    match (name.unwrap(), &words[1..]) {
        ("cuda_work", ["spin", milliseconds, period_ms, from, percent, mib]) => {
            let [from, percent] = [from, percent].map(|part| number(part) as u32);
            let turns = Turns { period_ms: number(period_ms), from, percent };
            let run = if is_wrong() { spin_wrong } else { spin };
            run(Duration::from_millis(number(milliseconds)), turns, number(mib));
        }
        ("cuda_work", ["crash"]) => crash(),
        ("nvidia-smi", words) => smi(words),
        ("nvidia-cuda-mps-control", words) => mps_control(words),
        (MPS_SERVER, []) => mps_server(),
        other => panic!("cannot {other:?}"),
    }
}
