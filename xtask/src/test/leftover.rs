//! Cgroups that tests left which were killed: their processes and jobs would be counted by the tests that
//! come after. Taken away before the live ring.

use crate::process::{as_root, is_root, run as run_command, say, target_dir};
use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long killed processes may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
const MOUNTS: &str = "/sys/fs/cgroup";

/// Takes them away as root, through sudo where we are not; says which.
///
/// # Errors
/// When one stays.
pub fn sweep_as_root() -> Result<()> {
    if is_root() {
        return sweep();
    }
    run_command(as_root(target_dir().join("debug/xtask"), &[]).args(["residue", "--sweep"]))
}

/// The same as root.
///
/// # Errors
/// When one stays.
pub fn sweep() -> Result<()> {
    for top in left_below(Path::new(MOUNTS), |pid| !Path::new("/proc").join(pid).exists()) {
        say(format!("removing {}: the test that made it was killed", top.display()));
        remove(&top)?;
    }
    Ok(())
}

/// The topmost directories below `folder` whose maker `is_gone`.
fn left_below(folder: &Path, is_gone: impl Copy + Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in directories(folder) {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        if maker(&name).is_some_and(is_gone) {
            found.push(directory);
        } else {
            found.extend(left_below(&directory, is_gone));
        }
    }
    found
}

/// The process that made a cgroup of the tests' or of `jobtrace run`: `jobtrace-churn-123-0` gives 123.
fn maker(name: &str) -> Option<&str> {
    let (_what, rest) = name.strip_prefix("jobtrace-")?.split_once('-')?;
    let pid = rest.split(['-', '.']).next()?;
    (!pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit())).then_some(pid)
}

/// Links of cgroup v1 such as cpu -> cpu,cpuacct are not followed.
fn directories(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    real.map(|entry| entry.path()).collect()
}

fn remove(top: &Path) -> Result<()> {
    let begin = Instant::now();
    while top.exists() {
        empty(top);
        if begin.elapsed() > PATIENCE {
            bail!("{} stays: end its processes and remove it", top.display());
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn empty(directory: &Path) {
    directories(directory).iter().for_each(|below| empty(below));
    let tasks = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    // 0 is a process that this one cannot see.
    for pid in tasks.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        // It may have ended meanwhile; what stays is told.
        let _ = kill_process(pid, Signal::KILL);
    }
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_gone_process_made_is_left_over() {
        let top = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir_all(top.path().join(name)).unwrap();
        make("a/jobtrace-churn-7-0/slurm/uid_0/job_1");
        make("a/jobtrace-test-8-oom/jobtrace-run-7-0-touch");
        make("slurm/uid_7/job_7");
        make("jobtrace-7");
        let mut left = left_below(top.path(), |pid| pid == "7");
        left.sort();
        let of = |name: &str| top.path().join(name);
        let oom = "a/jobtrace-test-8-oom/jobtrace-run-7-0-touch";
        assert_eq!(left, [of("a/jobtrace-churn-7-0"), of(oom)]);
        remove(&left[0]).unwrap();
        assert!(!left[0].exists() && of("slurm/uid_7/job_7").exists());
    }

    #[test]
    fn the_maker_is_in_the_name() {
        for (name, pid) in [
            ("jobtrace-agent-10620-1", Some("10620")),
            ("jobtrace-test-12.slice", Some("12")),
            ("jobtrace-run-3-0-a-4", Some("3")),
            ("jobtrace-run-x-0", None),
            ("jobtrace-", None),
            ("jobtrace.service", None),
        ] {
            assert_eq!(maker(name), pid, "{name}");
        }
    }
}
