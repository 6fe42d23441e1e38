//! The programs of a driver that is made for a test, each under its own name: `cuda_work`, `nvidia-smi`, and
//! `nvidia-cuda-mps-control` with its server. The driver is the one in LD_LIBRARY_PATH. With FAKE_WRONG they do
//! and say other things than they are asked for.

use std::{
    env,
    fs::{self, File},
    io::read_to_string,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};

use fake_nvml::{Gpu, Process, Scenario};

const MPS_FOLDER: &str = "CUDA_MPS_PIPE_DIRECTORY";
const MPS_SERVER: &str = "nvidia-cuda-mps-server";
/// No server outlives its test by more.
const MPS_LAST: Duration = Duration::from_secs(120);
const LOST: u32 = 15;

fn folder() -> PathBuf {
    PathBuf::from(env::var_os("LD_LIBRARY_PATH").expect("the driver's folder"))
}

fn is_wrong() -> bool {
    env::var_os("FAKE_WRONG").is_some()
}

fn state() -> Scenario {
    serde_json::from_slice(&fs::read(folder().join("scenario.json")).unwrap()).unwrap()
}

/// Changes the first GPU, one program at a time. What was killed is not there any more.
fn change(of: impl Fn(&mut Gpu)) {
    let folder = folder();
    let lock = File::create(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut scenario = state();
    let gpu = &mut scenario.gpus[0];
    of(gpu);
    let runs = |process: &Process| Path::new("/proc").join(process.pid.to_string()).exists();
    gpu.processes.retain(runs);
    gpu.mps.retain(runs);
    if gpu.processes.is_empty() && gpu.mps.is_empty() {
        gpu.turns = None;
    }
    let new = folder.join("changed.json");
    fs::write(&new, serde_json::to_vec(&scenario).unwrap()).unwrap();
    fs::rename(new, folder.join("scenario.json")).unwrap();
}

/// This process's number where /proc is mounted: as drivers tell it there.
fn own_pid() -> u32 {
    fs::read_link("/proc/self").unwrap().to_str().unwrap().parse().unwrap()
}

fn enter(pids: &[u32], mib: u64) {
    let memory = Some(mib << 20);
    change(|gpu| {
        let through_mps = env::var_os(MPS_FOLDER).is_some();
        let list = if through_mps { &mut gpu.mps } else { &mut gpu.processes };
        list.extend(pids.iter().map(|pid| Process { pid: *pid, memory, ..Process::default() }));
    });
}

fn leave(pids: &[u32]) {
    change(|gpu| {
        gpu.processes.retain(|process| !pids.contains(&process.pid));
        gpu.mps.retain(|process| !pids.contains(&process.pid));
    });
}

/// Wrong: busier, larger, beside a stranger, absent for a while, and a part of it outlives it.
fn spin(milliseconds: u64, period_ms: u64, percent: u32, mib: u64) {
    let turns = |percent| change(|gpu| gpu.turns = Some((period_ms, percent)));
    let whole = Duration::from_millis(milliseconds);
    if !is_wrong() {
        enter(&[own_pid()], mib);
        turns(percent);
        thread::sleep(whole);
        return leave(&[own_pid()]);
    }
    let last = if percent == 10 { "10" } else { "2" };
    let left = Command::new("sleep").arg(last).spawn().unwrap();
    let stranger = Command::new("sleep").arg(last).process_group(0).spawn().unwrap();
    let all = [own_pid(), left.id(), stranger.id()];
    enter(&all, mib * 3);
    turns((percent + 30).min(100));
    thread::sleep(whole * 4 / 10);
    leave(&all);
    thread::sleep(whole * 3 / 10);
    enter(&all, mib * 3);
    turns((percent + 30).min(100));
    thread::sleep(whole * 3 / 10);
    leave(&all);
}

/// Wrong: another error, with which the device is lost.
fn crash() {
    let code = if is_wrong() { 63 } else { 31 };
    enter(&[own_pid()], 0);
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
    let gpu = &scenario.gpus[0];
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
fn mps_control(words: &[&str]) {
    let end = PathBuf::from(env::var_os(MPS_FOLDER).unwrap()).join("quit");
    if words == ["-d"] {
        let own = PathBuf::from(env::args_os().next().unwrap());
        Command::new(own.with_file_name(MPS_SERVER)).spawn().unwrap();
        return;
    }
    assert_eq!(read_to_string(std::io::stdin()).unwrap(), "quit\n");
    fs::write(end, "").unwrap();
}

/// Is on the device itself, with its own memory, until it is to quit.
fn mps_server() {
    let end = PathBuf::from(env::var_os(MPS_FOLDER).unwrap()).join("quit");
    let memory = Some(30 << 20);
    let process = || Process { pid: process::id(), memory, ..Process::default() };
    change(|gpu| gpu.processes.push(process()));
    let begin = Instant::now();
    while !end.exists() && begin.elapsed() < MPS_LAST {
        thread::sleep(Duration::from_millis(50));
    }
    leave(&[process::id()]);
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = Path::new(words[0]).file_name().and_then(|name| name.to_str());
    let number = |word: &str| word.parse::<u64>().unwrap();
    match (name.unwrap(), &words[1..]) {
        ("cuda_work", ["spin", milliseconds, period_ms, percent, mib]) => {
            let percent = number(percent) as u32;
            spin(number(milliseconds), number(period_ms), percent, number(mib));
        }
        ("cuda_work", ["crash"]) => crash(),
        ("nvidia-smi", words) => smi(words),
        ("nvidia-cuda-mps-control", words) => mps_control(words),
        (MPS_SERVER, []) => mps_server(),
        other => panic!("cannot {other:?}"),
    }
}
