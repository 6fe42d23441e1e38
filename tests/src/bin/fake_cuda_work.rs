//! What `cuda_work` does, told to a driver that is made for the test: the one in the folder FAKE_NVML.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
    thread,
    time::Duration,
};

use fake_nvml::{Process, Scenario};

/// Changes the first GPU, one program at a time.
fn change(of: impl Fn(&mut fake_nvml::Gpu)) {
    let folder = PathBuf::from(env::var_os("FAKE_NVML").expect("the driver's folder"));
    let lock = File::create(folder.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let path = folder.join("scenario.json");
    let mut scenario: Scenario = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    of(&mut scenario.gpus[0]);
    let new = folder.join("changed.json");
    fs::write(&new, serde_json::to_vec(&scenario).unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let pid = std::process::id();
    match words[..] {
        ["spin", seconds, period_ms, percent, mib] => {
            let number = |word: &str| word.parse::<u64>().unwrap();
            change(|gpu| {
                gpu.turns = Some((number(period_ms), number(percent) as u32));
                let memory = Some(number(mib) << 20);
                gpu.processes.push(Process { pid, memory, ..Process::default() });
            });
            thread::sleep(Duration::from_secs(number(seconds)));
        }
        ["crash"] => {
            change(|gpu| {
                gpu.processes.push(Process { pid, ..Process::default() });
            });
            thread::sleep(Duration::from_secs(3));
            change(|gpu| gpu.xids.extend([(31, None), (45, None), (45, None)]));
        }
        _ => panic!("as cuda_work"),
    }
    change(|gpu| {
        gpu.processes.retain(|process| process.pid != pid);
        if gpu.processes.is_empty() {
            gpu.turns = None;
        }
    });
}
