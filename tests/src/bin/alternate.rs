//! `alternate FOLDER GPU FILE SECONDS PERCENT HOW`: keeps a GPU busy for PERCENT of the time and reads FILE
//! past the page cache for the rest, twenty times a second. The GPU is the one of that index in the scenario
//! in FOLDER, which is told what it was kept busy each second, and by whom. Meanwhile this process waits for
//! it as HOW says: `spin`, on a CPU, or `sleep`. `messages` spins, and instead of reading FILE it waits for
//! messages on a socket; a helper sleeps in poll all the time, as drivers' do. Reports how long the GPU was busy
//! and idle, and what of the idle time this process was off its CPU.

use std::{
    fs,
    io::Read,
    os::unix::{fs::FileExt, net::UnixStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use fake_nvml::{Process, Scenario};
use jobtrace_tests::work::{Pages, Work, off_cpu_ns, open_direct, spin};

/// One turn: busy, then idle.
const TURN: Duration = Duration::from_millis(50);
const BYTES: usize = 256 << 10;
const SECOND: Duration = Duration::from_secs(1);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, gpu, file, seconds, percent, how] = &words[..] else { panic!("six arguments") };
    let (folder, gpu): (_, usize) = (Path::new(folder), gpu.parse().unwrap());
    let end: u64 = seconds.parse().unwrap();
    let busy_part = TURN * percent.parse::<u32>().unwrap() / 100;
    let wait: fn(Duration) = match how.as_str() {
        "spin" | "messages" => spin,
        "sleep" => thread::sleep,
        other => panic!("cannot {other}"),
    };
    let file = open_direct(Path::new(file));
    let mut pages = Pages::fresh(BYTES / 4096);
    pages.write();
    let blocks = file_bytes(&file) / BYTES as u64;
    let mut messages = (how == "messages").then(messages);
    let mut at = 0;
    let mut work = Work::begin();
    tell(folder, gpu, percent.parse().unwrap());
    let begin = Instant::now();
    let (mut busy, mut blocked_ns) = (Duration::ZERO, 0);
    let (mut told, mut told_busy) = (begin, Duration::ZERO);
    while begin.elapsed() < SECOND * end as u32 {
        let turn = Instant::now();
        wait(busy_part);
        busy += turn.elapsed();
        blocked_ns += off_cpu_ns(|| {
            while turn.elapsed() < TURN {
                if let Some([near, _]) = &mut messages {
                    near.read(&mut [0]).unwrap_err();
                    continue;
                }
                file.read_exact_at(pages.bytes(), at % blocks * BYTES as u64).unwrap();
                at += 1;
            }
        });
        if told.elapsed() >= SECOND {
            let share = (busy - told_busy).as_secs_f64() / told.elapsed().as_secs_f64();
            tell(folder, gpu, (share * 100.0).round() as u32);
            (told, told_busy) = (Instant::now(), busy);
        }
    }
    let elapsed = begin.elapsed();
    work.fact("busy_ns", busy.as_nanos() as u64);
    work.fact("idle_ns", (elapsed - busy).as_nanos() as u64);
    work.fact("blocked_ns", blocked_ns);
    work.end();
}

/// The ends of a socket, at one of which is waited for what never comes, a few milliseconds each time; and a
/// helper that sleeps in poll.
fn messages() -> [UnixStream; 2] {
    let (near, far) = UnixStream::pair().unwrap();
    near.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    thread::spawn(|| {
        loop {
            // SAFETY: no descriptors.
            unsafe { libc::poll(std::ptr::null_mut(), 0, 100) };
        }
    });
    [near, far]
}

/// Has the driver say that this process kept the GPU busy for so much of the time.
fn tell(folder: &Path, gpu: usize, percent: u32) {
    let path = folder.join("scenario.json");
    let mut scenario: Scenario = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let gpu = &mut scenario.gpus[gpu];
    gpu.utilization = percent;
    let pid = std::process::id();
    gpu.processes = vec![Process { pid, memory: Some(1 << 30), ..Process::default() }];
    let new = folder.join(format!("new-{pid}.json"));
    fs::write(&new, serde_json::to_vec(&scenario).unwrap()).unwrap();
    fs::rename(new, path).unwrap();
}

/// Length of a file or a device.
fn file_bytes(mut file: &fs::File) -> u64 {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap()
}
