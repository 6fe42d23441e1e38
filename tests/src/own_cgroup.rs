//! Cgroups of a test's own: made below the caller's, removed when dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use jobtrace::cgroup::hierarchies::Hierarchies;

use crate::rig::PATIENCE;

/// The calling process's directory in the v1 hierarchy of `controller`, or in v2's where that is
/// empty; `None` where it is not mounted.
pub fn own_directory(controller: &str) -> Option<PathBuf> {
    let hierarchies = Hierarchies::read().expect("cgroups are mounted");
    if controller.is_empty() {
        return hierarchies.v2.map(|v2| v2.own);
    }
    let v1 = hierarchies.v1.into_iter();
    v1.filter(|v1| v1.has(controller)).map(|v1| v1.own).next()
}

/// One directory in each hierarchy that counts a job's work.
#[derive(Debug)]
pub struct OwnCgroup {
    directories: Vec<PathBuf>,
}

impl OwnCgroup {
    /// Makes `jobtrace-test-<pid>-<name>` in v2 and in the v1 hierarchies `controllers`, where mounted.
    pub fn make(name: &str, controllers: &[&str]) -> Self {
        let mut own = Self { directories: Vec::new() };
        for controller in [""].iter().chain(controllers) {
            let Some(parent) = own_directory(controller) else { continue };
            let directory = parent.join(format!("jobtrace-test-{}-{name}", std::process::id()));
            if own.directories.contains(&directory) {
                continue;
            }
            fs::create_dir(&directory)
                .unwrap_or_else(|error| panic!("cannot make {}: {error}", directory.display()));
            own.directories.push(directory);
        }
        own
    }

    /// One whose processes may have so many MiB together.
    ///
    /// # Panics
    /// When nothing here limits memory.
    pub fn limited(name: &str, mib: u64) -> Self {
        let cgroup = Self::make(name, &["memory"]);
        for file in ["memory.limit_in_bytes", "memory.max"] {
            if let Some(directory) = cgroup.directory_with(file) {
                fs::write(directory.join(file), (mib << 20).to_string()).unwrap();
                return cgroup;
            }
        }
        panic!("no memory controller to limit a job with");
    }

    /// `sh` that enters it and becomes the rest of its arguments.
    pub fn inside(&self) -> Command {
        let procs = self.procs();
        let enter = procs.iter().map(|file| format!("echo 0 > '{}'", file.display()));
        let enter: Vec<_> = enter.collect();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &format!("{}; exec \"$@\"", enter.join("; ")), "sh"]);
        shell
    }

    /// The `cgroup.procs` of every directory: a process is inside once its id is written to each.
    pub fn procs(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.join("cgroup.procs")).collect()
    }

    /// The directory that holds `file`.
    pub fn directory_with(&self, file: &str) -> Option<&Path> {
        let found = self.directories.iter().find(|directory| directory.join(file).exists());
        found.map(PathBuf::as_path)
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        let begin = Instant::now();
        for directory in &self.directories {
            while let Err(error) = fs::remove_dir(directory) {
                if begin.elapsed() > PATIENCE {
                    eprintln!("left behind: {}: {error}", directory.display());
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
