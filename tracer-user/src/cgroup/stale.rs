//! Cgroups that killed runs left: a jobtrace that is killed outright cannot remove its own, nor one
//! whose command left processes behind.
//!
//! Only directories directly below the caller's own cgroup and beside it are looked at. Whose they are is told by a
//! lock that each run holds on its directories: it ends with its process. The pid in the name tells nothing,
//! it may be of another pid namespace.

use std::{
    fs::File,
    io::{self, ErrorKind},
    iter,
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

use super::{
    hierarchies::Hierarchies,
    tree::{children, has_processes, remove_tree},
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
            if is_of_run(&directory) && !has_processes(&directory) {
                let _ = remove_if_free(&directory);
            }
        }
    }
}

/// Holds `directory`, just made, against the sweep of other runs for as long as the file is open; `None`
/// where one took it for a dead run's before.
///
/// # Errors
/// When it cannot be locked, and would not be safe.
pub(super) fn hold(directory: &Path) -> io::Result<Option<File>> {
    match File::open(directory).and_then(|file| lock(file, directory)) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => {
            Ok(None)
        }
        other => other.map(Some),
    }
}

fn remove_if_free(directory: &Path) -> io::Result<()> {
    let _lock = lock(File::open(directory)?, directory)?;
    remove_tree(directory)
}

/// Locks `file`, which was opened as `directory`.
fn lock(file: File, directory: &Path) -> io::Result<File> {
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Before the lock it may have been removed, and made anew by a run of the same pid in another namespace.
    let is_same = file.metadata()?.ino() == directory.metadata()?.ino();
    if is_same { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
}

/// Whether the directory has a run's name.
fn is_of_run(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    pid.is_some_and(|(pid, _)| pid.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_made_is_swept() {
        let is_runs = |name: &str| is_of_run(&Path::new("/c").join(name));
        assert!(is_runs("jobtrace-run-8-0-sleep") && is_runs("jobtrace-run-1-1-"));
        for name in ["jobtrace-run-x-0-y", "jobtrace-run-8", "slurm"] {
            assert!(!is_runs(name), "{name}");
        }
    }

    #[test]
    fn what_is_held_stays() {
        let own = tempfile::tempdir().unwrap();
        let directory = own.path().join("jobtrace-run-1-0-x");
        std::fs::create_dir(&directory).unwrap();
        let held = hold(&directory).unwrap();
        assert!(held.is_some() && hold(&directory).unwrap().is_none(), "one run's alone");
        assert!(remove_if_free(&directory).is_err());
        drop(held);
        remove_if_free(&directory).unwrap();
        assert!(hold(&directory).unwrap().is_none());
    }

    #[test]
    fn what_was_made_anew_is_not_taken_for_what_was_there() {
        let own = tempfile::tempdir().unwrap();
        let directory = own.path().join("jobtrace-run-1-0-x");
        std::fs::create_dir(&directory).unwrap();
        let old = File::open(&directory).unwrap();
        std::fs::remove_dir(&directory).unwrap();
        std::fs::create_dir(&directory).unwrap();
        assert_eq!(lock(old, &directory).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
