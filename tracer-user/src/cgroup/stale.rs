//! Cgroups that killed runs left: a jobtrace that is killed outright cannot remove its own, nor one
//! whose command left processes behind.
//!
//! Only directories directly below the caller's own cgroup and beside it are looked at. Whose they are is told by a
//! lock that each run holds on its directories (it ends with its process, whatever the pid namespace)
//! and by the pid in the name.

use std::{
    fs::File,
    io::{self, ErrorKind},
    iter,
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

use super::{
    hierarchies::Hierarchies,
    remove::{children, has_processes, remove_tree},
};

/// What the name of every run's cgroup begins with; the pid follows.
pub(super) const PREFIX: &str = "jobtrace-run-";

/// Removes the cgroups of ended runs in which no process is left. What cannot be removed stays.
pub fn sweep(hierarchies: &Hierarchies) {
    for hierarchy in hierarchies.v2.iter().chain(&hierarchies.v1) {
        // Beside the caller's own is where a session's runs are.
        let above = hierarchy.own.parent().filter(|parent| parent.starts_with(&hierarchy.mount));
        let parents = iter::once(hierarchy.own.as_path()).chain(above);
        for directory in parents.flat_map(children) {
            if is_of_dead_run(&directory, is_alive) && !has_processes(&directory) {
                let _ = remove_if_free(&directory);
            }
        }
    }
}

/// Holds `directory` against the sweep of other runs for as long as the file is open; `None` where one
/// took it for a dead run's before. Without a file (no descriptor left) the pid in the name must do.
pub(super) fn hold(directory: &Path) -> Option<Option<File>> {
    let held = File::open(directory).and_then(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared)?;
        // Swept between the making and the lock.
        directory.metadata()?;
        Ok(file)
    });
    match held {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => None,
        other => Some(other.ok()),
    }
}

fn remove_if_free(directory: &Path) -> io::Result<()> {
    let file = File::open(directory)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    remove_tree(directory)
}

fn is_alive(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

/// Whether the directory has a run's name, with a pid that `is_alive` does not know.
fn is_of_dead_run(directory: &Path, is_alive: impl Fn(u32) -> bool) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    pid.and_then(|(pid, _)| pid.parse().ok()).is_some_and(|pid| !is_alive(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dead_runs_are_swept() {
        let is_stale = |name: &str| is_of_dead_run(&Path::new("/c").join(name), |pid| pid == 7);
        assert!(is_stale("jobtrace-run-8-0-sleep") && is_stale("jobtrace-run-8-1-"));
        for name in ["jobtrace-run-7-0-sleep", "jobtrace-run-x-0-y", "jobtrace-run-8", "slurm"] {
            assert!(!is_stale(name), "{name}");
        }
    }

    #[test]
    fn what_is_held_stays() {
        let own = tempfile::tempdir().unwrap();
        let directory = own.path().join("jobtrace-run-1-0-x");
        std::fs::create_dir(&directory).unwrap();
        let (held, also) = (hold(&directory).flatten(), hold(&directory).flatten());
        assert!(held.is_some() && also.is_some());
        assert!(remove_if_free(&directory).is_err());
        drop((held, also));
        remove_if_free(&directory).unwrap();
        assert!(hold(&directory).is_none());
    }
}
