//! What runs and waits in the machine when a check does not come to its end: written to the console, whose last lines
//! the host shows.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use xtask::guest::NOT_DONE;

/// No check takes half as long on a busy host.
const PATIENCE: Duration = Duration::from_secs(300);
/// Over which CPU time is compared.
const LOOK: Duration = Duration::from_secs(2);

/// Waits for one check, and tells of the machine where that takes too long.
pub struct Watch {
    /// Hangs up when the check ends.
    _check: Sender<()>,
}

impl Watch {
    /// Of the check `name`, until this is dropped.
    pub fn check(name: &str) -> Self {
        let (check, ended) = channel();
        let name: Arc<str> = name.into();
        thread::spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name}: {NOT_DONE} {} s", PATIENCE.as_secs());
                tell();
            }
        });
        Self { _check: check }
    }
}

/// All tasks that are on a CPU, or blocked, or used one for the last seconds, with what the kernel says they do.
fn tell() {
    let before = cpu_ns();
    thread::sleep(LOOK);
    for (task, after) in cpu_ns() {
        let read = |file: &str| fs::read_to_string(task.join(file)).unwrap_or_default();
        let used_ns = after - before.get(&task).copied().unwrap_or(0);
        let stat = read("stat");
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(1));
        if used_ns > 1_000_000 || matches!(state, Some("R" | "D")) {
            eprintln!(
                "{} {}: {}, {} ms of {} ms on CPU, {}",
                task.display(),
                read("comm").trim(),
                state.unwrap_or("gone"),
                used_ns / 1_000_000,
                LOOK.as_millis(),
                read("stack").lines().collect::<Vec<_>>().join("; ")
            );
        }
    }
}

/// CPU time of each task.
fn cpu_ns() -> BTreeMap<PathBuf, u64> {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let tasks = entries("/proc".into()).flat_map(|process| entries(process.path().join("task")));
    let time = |task: PathBuf| {
        let text = fs::read_to_string(task.join("schedstat")).ok()?;
        Some((task, text.split(' ').next()?.parse().ok()?))
    };
    tasks.filter_map(|task| time(task.path())).collect()
}
