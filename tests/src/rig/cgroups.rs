//! Cgroups that others make for us: where processes are, and the removal of whole trees. Only trees
//! whose name is a rig's own may be ended here: every process in them is killed.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use jobtrace::cgroup::hierarchies::Hierarchies;

use super::{PACE, PATIENCE};

/// A line of /proc/PID/cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The controllers as the kernel writes them; empty for v2.
    pub controllers: String,
    /// The path below the hierarchy's mount.
    pub path: String,
}

/// Where a process is, hierarchy by hierarchy; empty once it is gone.
pub fn places_of(pid: i32) -> Vec<Place> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let place = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1).map(str::to_owned);
        Some(Place { controllers: parts.next()?, path: parts.next()? })
    };
    text.lines().filter_map(place).collect()
}

/// The processes one of whose cgroups' paths `is_meant`, with all their places, by process id.
pub fn processes(is_meant: impl Fn(&str) -> bool) -> Vec<(i32, Vec<Place>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let places = places_of(pid);
        if places.iter().any(|place| is_meant(&place.path)) {
            found.push((pid, places));
        }
    }
    found.sort_by_key(|&(pid, _)| pid);
    found
}

/// Where cgroup file systems are mounted: v2 first, then the v1 hierarchies that have controllers.
///
/// # Errors
/// When none is.
pub fn mounts() -> Result<Vec<PathBuf>> {
    let Hierarchies { v2, v1 } = Hierarchies::read()?;
    Ok(v2.into_iter().chain(v1).map(|hierarchy| hierarchy.mount.to_path_buf()).collect())
}

/// Where v2 is mounted.
///
/// # Errors
/// When it is not.
pub fn v2() -> Result<PathBuf> {
    let found = Hierarchies::read()?.v2.context("cgroup v2 is not mounted")?;
    Ok(found.mount.to_path_buf())
}

/// All directories below `top` and itself, each before those that hold it.
pub fn tree(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(top).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(tree(&entry.path()));
        }
    }
    found.push(top.to_owned());
    found
}

/// Kills what is in the tree at `top` and removes it; does nothing where there is none.
///
/// # Errors
/// When something stays nevertheless.
pub fn remove(top: &Path) -> Result<()> {
    let begin = Instant::now();
    while top.exists() {
        for directory in tree(top) {
            let procs = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            // 0 is a process that this one cannot see.
            for pid in procs.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 0) {
                // SAFETY: no pointers; the process is in a cgroup of ours.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            let _ = fs::remove_dir(&directory);
        }
        ensure!(!top.exists() || begin.elapsed() < PATIENCE, "left behind: {}", top.display());
        std::thread::sleep(PACE);
    }
    Ok(())
}

/// Folders that a rig shares with the rest of the node, such as `system.slice`: removed with the last of this
/// program's users, unless they were there before the first.
#[derive(Debug)]
pub struct Shared(());

/// Those that were not there, and how many values there are.
static IN_USE: Mutex<(BTreeSet<PathBuf>, usize)> = Mutex::new((BTreeSet::new(), 0));

impl Shared {
    /// Notes which of `folders` are not there yet.
    pub fn before(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut in_use = in_use();
        in_use.0.extend(folders.into_iter().filter(|folder| !folder.exists()));
        in_use.1 += 1;
        Self(())
    }

    /// As [`Self::before`], and makes them.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make(folders: impl IntoIterator<Item = PathBuf>) -> Result<Self> {
        let folders: Vec<_> = folders.into_iter().collect();
        let shared = Self::before(folders.clone());
        for folder in &folders {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        Ok(shared)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut in_use = in_use();
        in_use.1 -= 1;
        if in_use.1 == 0 {
            for folder in std::mem::take(&mut in_use.0).iter().rev() {
                // Refused while another program uses it, which may remove it then.
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

fn in_use() -> MutexGuard<'static, (BTreeSet<PathBuf>, usize)> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}
