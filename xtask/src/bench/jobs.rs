//! Jobs as Slurm lays them out, each with one process that sleeps, or wakes ten times a second and does a little or
//! executes a program.

use crate::process::say;
use anyhow::{Context, Result};
use jobtrace::cgroup::hierarchies::{Hierarchies, Hierarchy};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What Slurm makes directories in, where it is v1: in the first two it always does.
const CONTROLLERS: [&str; 4] = ["freezer", "memory", "cpuset", "cpuacct"];
/// Numbers of jobs that no scheduler here has given.
const FIRST_JOB: usize = 990_001;
/// What they begin with.
pub const JOB_DIGITS: &str = "990";
/// How often an emptied cgroup may refuse to go: its last task is on its way out.
const TRIES: u32 = 200;
/// The process of a job: wakes every 100 ms until its input ends (`read` then returns 1), and does `$1`.
const LOOP: &str = "while read -rt 0.1; [ $? -gt 128 ]; do $1; done";

/// The process of a job that sleeps until its input ends.
const SLEEP: &str = "read -r";

/// What the process of each job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Nothing.
    Sleeps,
    /// It wakes ten times a second.
    Wakes,
    /// It executes a program each time.
    Executes,
}

/// How the cgroups of the jobs lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A directory for each job: v2's, or v1's of freezer and memory.
    Flat,
    /// With a step and a task below it: in v2, or in four hierarchies of v1.
    Nested,
    /// As nested, in v2 alone, also where v1 has the controllers.
    Unified,
}

impl Shape {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Nested => "nested",
            Self::Unified => "nested, v2 alone",
        }
    }
}

/// The jobs; they end, and their cgroups go, with the value.
pub struct Jobs {
    processes: Vec<Child>,
    /// Directories, parents before children.
    directories: Vec<PathBuf>,
}

impl Jobs {
    /// Starts `count` jobs of that `shape`. They are of root's, and no environment tells more of them.
    ///
    /// # Errors
    /// When a cgroup cannot be made or a process not be started.
    pub fn start(count: usize, shape: Shape, activity: Activity) -> Result<Self> {
        let mut jobs = Self { processes: Vec::new(), directories: Vec::new() };
        let hierarchies = Hierarchies::read()?;
        // Beside v1 the unified hierarchy has no controllers, and Slurm does not use it.
        let is_v1 = shape != Shape::Unified && hierarchies.v1("memory").is_some();
        let used = if shape == Shape::Flat { &CONTROLLERS[..2] } else { &CONTROLLERS[..] };
        let mut roots: Vec<&Hierarchy> = match is_v1 {
            true => used.iter().filter_map(|name| hierarchies.v1(name)).collect(),
            false => hierarchies.v2.iter().collect(),
        };
        roots.dedup_by_key(|hierarchy| hierarchy.number);
        let top = format!("jobtrace-bench-{}", std::process::id());
        for number in FIRST_JOB..FIRST_JOB + count {
            let (above, below) = match is_v1 {
                true => ("slurm/uid_1000", "step_0/task_0"),
                false => ("system.slice/slurmstepd.scope", "step_0/user/task_0"),
            };
            let below = if shape == Shape::Flat { "" } else { below };
            let path = format!("{top}/{above}/job_{number}/{below}");
            let made = roots.iter().map(|root| jobs.make(root, &path));
            let leaves = made.collect::<Result<Vec<_>>>()?;
            jobs.processes.push(spawn(&leaves, activity)?);
        }
        Ok(jobs)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.processes.len()
    }

    /// Makes the directory `path` in `root`, and those above it.
    fn make(&mut self, root: &Hierarchy, path: &str) -> Result<PathBuf> {
        let mut directory = root.mount.to_path_buf();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let parent = directory.clone();
            directory.push(part);
            if directory.exists() {
                continue;
            }
            if root.number == 0 {
                // Each by itself: one that this kernel lacks must not take the others with it.
                for controller in ["+memory", "+pids", "+cpu", "+io"] {
                    let _ = fs::write(parent.join("cgroup.subtree_control"), controller);
                }
            }
            fs::create_dir(&directory)
                .with_context(|| format!("make cgroup {}", directory.display()))?;
            self.directories.push(directory.clone());
            inherit_cpuset(&parent, &directory);
        }
        Ok(directory)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It ends by itself when its input does.
            drop(process.stdin.take());
        }
        for process in &mut self.processes {
            let _ = process.wait();
        }
        for directory in self.directories.iter().rev() {
            if let Err(error) = remove(directory) {
                say(format_args!("cannot remove {}: {error}", directory.display()));
            }
        }
    }
}

/// Removes a cgroup, as soon as its last task has left it.
///
/// # Errors
/// When it stays for seconds.
pub fn remove(directory: &Path) -> std::io::Result<()> {
    for _ in 1..TRIES {
        if fs::remove_dir(directory).is_ok() {
            return Ok(());
        }
        sleep(Duration::from_millis(5));
    }
    fs::remove_dir(directory)
}

/// A new v1 cpuset is empty and takes no task.
fn inherit_cpuset(parent: &Path, directory: &Path) {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if let Ok(text) = fs::read_to_string(parent.join(file)) {
            let _ = fs::write(directory.join(file), text);
        }
    }
}

fn spawn(leaves: &[PathBuf], activity: Activity) -> Result<Child> {
    let (script, work) = match activity {
        Activity::Sleeps => (SLEEP, ""),
        Activity::Wakes => (LOOP, ":"),
        Activity::Executes => (LOOP, "/bin/true"),
    };
    let mut command = Command::new("bash");
    command.args(["-c", script, "job", work]).stdin(Stdio::piped());
    let process = command.spawn().context("start a job's process")?;
    for leaf in leaves {
        fs::write(leaf.join("cgroup.procs"), process.id().to_string())
            .with_context(|| format!("move a process into {}", leaf.display()))?;
    }
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_jobs_process_wakes_until_its_input_ends() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let mut job = Command::new("bash");
        job.args(["-c", LOOP, "job", "mktemp -p ."]).current_dir(folder.path());
        let mut job = job.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("bash");
        sleep(Duration::from_millis(1050));
        drop(job.stdin.take());
        let begin = Instant::now();
        assert!(job.wait().expect("it ends").code().is_some_and(|code| code < 2));
        assert!(begin.elapsed() < Duration::from_secs(5));
        let woken = fs::read_dir(folder.path()).expect("there").count();
        assert!((1..=10).contains(&woken), "{woken}");
    }

    #[test]
    fn a_jobs_process_sleeps_until_its_input_ends() {
        let mut job = Command::new("bash");
        let mut job = job.args(["-c", SLEEP]).stdin(Stdio::piped()).spawn().expect("bash");
        sleep(Duration::from_millis(300));
        assert!(job.try_wait().expect("ours").is_none(), "jobs that are gone take nothing");
        drop(job.stdin.take());
        assert!(job.wait().expect("it ends").code().is_some_and(|code| code < 2));
    }
}
