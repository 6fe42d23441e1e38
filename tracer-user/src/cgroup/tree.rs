//! A cgroup and all below it: its children, its processes, its end.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// The cgroups directly below `directory`; none where it cannot be listed.
pub(super) fn children(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.filter(is_dir).map(|entry| entry.path()).collect()
}

/// Whether a process is in `directory` or below.
pub(super) fn has_processes(directory: &Path) -> bool {
    let mut pids = Vec::new();
    collect_pids(directory, &mut pids);
    !pids.is_empty()
}

/// Adds the processes in `directory` and below to `pids`.
pub(super) fn collect_pids(directory: &Path, pids: &mut Vec<u32>) {
    let read = |name| fs::read_to_string(directory.join(name));
    // A threaded cgroup names its threads only.
    let text = read("cgroup.procs").or_else(|_| read("cgroup.threads")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
    for child in children(directory) {
        collect_pids(&child, pids);
    }
}

/// Removes `directory` and all below it, none of which may hold a process.
pub(super) fn remove_tree(directory: &Path) -> io::Result<()> {
    for child in children(directory) {
        remove_tree(&child)?;
    }
    match fs::remove_dir(directory) {
        // Gone already: the job, or a manager, was faster.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
