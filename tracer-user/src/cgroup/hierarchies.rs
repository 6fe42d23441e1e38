//! Which cgroup hierarchies this host has, where they are mounted and where the caller is in each:
//! pure v2, pure v1, or both beside one another.
//!
//! The parsing is pure. Nothing here makes or changes a cgroup.

use std::{
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};

use crate::base::mountinfo;

#[cfg(test)]
mod tests;

/// The caller's cgroup in each hierarchy.
const OWN_CGROUPS: &str = "/proc/self/cgroup";

/// One hierarchy, as the caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The kernel's `cgroup_root.hierarchy_id`: 0 is v2.
    pub number: u32,
    /// v1: what is attached to it. v2: what the caller's own cgroup may hand to its children.
    pub controllers: Arc<[String]>,
    /// Where it is mounted: the ancestors of a directory end here.
    pub mount: Arc<Path>,
    /// Directory of the caller's own cgroup, `mount` or below it.
    pub own: PathBuf,
}

impl Hierarchy {
    /// Whether it has `controller`.
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }
}

/// The hierarchies that are mounted where the caller can reach its own cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hierarchies {
    /// The unified hierarchy, with or without controllers.
    pub v2: Option<Hierarchy>,
    /// v1 hierarchies with at least one controller, by their number.
    pub v1: Vec<Hierarchy>,
}

impl Hierarchies {
    /// The hierarchies of this host, from /proc/self.
    ///
    /// # Errors
    /// When /proc is not mounted, or no cgroup hierarchy is.
    pub fn read() -> Result<Self> {
        let cure = |path: &str| format!("cannot read {path}: mount /proc");
        let mounts = mountinfo::read().with_context(|| cure(mountinfo::OWN))?;
        let cgroups = fs::read(OWN_CGROUPS).with_context(|| cure(OWN_CGROUPS))?;
        let mut found = Self::parse(&mounts, &String::from_utf8_lossy(&cgroups));
        // A mount above may cover one that mountinfo still lists.
        let is_seen = |hierarchy: &Hierarchy| hierarchy.own.join("cgroup.procs").exists();
        found.v2 = found.v2.filter(is_seen);
        found.v1.retain(is_seen);
        if let Some(v2) = &mut found.v2 {
            let offered = fs::read_to_string(v2.own.join("cgroup.controllers")).unwrap_or_default();
            v2.controllers = offered.split_whitespace().map(str::to_owned).collect();
        }
        anyhow::ensure!(
            found.v2.is_some() || !found.v1.is_empty(),
            "no mounted cgroup file system contains this process: mount cgroup2 on /sys/fs/cgroup"
        );
        Ok(found)
    }

    /// The v1 hierarchy that `controller` is attached to.
    pub fn v1(&self, controller: &str) -> Option<&Hierarchy> {
        self.v1.iter().find(|hierarchy| hierarchy.has(controller))
    }

    /// Joins /proc/self/mountinfo and /proc/self/cgroup; lines of another shape are passed over. The
    /// controllers of v2 are in neither: they stay empty.
    pub fn parse(mountinfo: &str, own_cgroups: &str) -> Self {
        let mounts: Vec<Mount> = mountinfo::mounts(mountinfo).filter_map(Mount::of).collect();
        let mut found = Self::default();
        for line in own_cgroups.lines() {
            let Some((number, controllers, path)) = parse_own_line(line) else { continue };
            // A named hierarchy (`name=systemd`) groups processes and has no controller.
            let is_named = controllers.iter().all(|controller| controller.starts_with("name="));
            if number != 0 && is_named {
                continue;
            }
            let Some((mount, own)) = best_mount(&mounts, &controllers, Path::new(path)) else {
                continue;
            };
            let hierarchy =
                Hierarchy { number, controllers: controllers.into(), mount: mount.into(), own };
            match number {
                0 => found.v2 = Some(hierarchy),
                _ => found.v1.push(hierarchy),
            }
        }
        found.v1.sort_by_key(|hierarchy| hierarchy.number);
        found
    }
}

/// Number, controllers and path of a line of /proc/PID/cgroup: `4:cpu,cpuacct:/a`, `0::/a`.
fn parse_own_line(line: &str) -> Option<(u32, Vec<String>, &str)> {
    let mut parts = line.splitn(3, ':');
    let number = parts.next()?.parse().ok()?;
    let names = parts.next()?.split(',').filter(|name| !name.is_empty());
    let controllers: Vec<String> = names.map(str::to_owned).collect();
    let path = parts.next()?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let is_v2 = number == 0;
    (path.starts_with('/') && is_v2 == controllers.is_empty()).then_some((
        number,
        controllers,
        path,
    ))
}

/// A mounted cgroup file system, or whatever else hides one.
struct Mount<'a> {
    /// Cgroup that is its root, seen from the reader's cgroup namespace.
    root: PathBuf,
    point: PathBuf,
    read_only: bool,
    kind: &'a str,
    options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    fn of(mount: mountinfo::Mount<'a>) -> Option<Self> {
        let mountinfo::Mount { root, point, options, fs, fs_options, .. } = mount;
        // Below a path that does not begin at the root, anything might lie.
        (root.starts_with('/') && point.starts_with('/')).then_some(())?;
        let is_read_only = |options: &str| options.split(',').any(|name| name == "ro");
        Some(Self {
            root: root.into(),
            point: point.into(),
            read_only: is_read_only(options) || is_read_only(fs_options),
            kind: fs,
            options: fs_options.split(',').collect(),
        })
    }

    /// Whether it shows the hierarchy of `controllers` (none: v2).
    fn shows(&self, controllers: &[String]) -> bool {
        match controllers.first() {
            None => self.kind == "cgroup2",
            Some(first) => self.kind == "cgroup" && self.options.contains(&first.as_str()),
        }
    }

    /// The directory of cgroup `path`, where it lies below this mount's root. A mount from outside
    /// the namespace has the root `/..`: names below it cannot be told, so it holds no such path.
    fn directory(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.root).ok()?;
        let climbs = below.components().any(|part| part == Component::ParentDir);
        // Collected anew, for joining an empty path would add a slash.
        (!climbs).then(|| self.point.components().chain(below.components()).collect())
    }
}

/// Mount point and directory of the cgroup `path`: a writable mount before a read-only one, one that
/// shows more ancestors before one that shows fewer.
fn best_mount(mounts: &[Mount], controllers: &[String], path: &Path) -> Option<(PathBuf, PathBuf)> {
    let is_hidden = |index: usize| {
        // mountinfo lists in the order of mounting.
        mounts[index + 1..].iter().any(|later| later.point == mounts[index].point)
    };
    let candidates = mounts.iter().enumerate().filter_map(|(index, mount)| {
        if !mount.shows(controllers) || is_hidden(index) {
            return None;
        }
        Some((mount, mount.directory(path)?))
    });
    let (mount, own) =
        candidates.min_by_key(|(mount, _)| (mount.read_only, mount.root.components().count()))?;
    Some((mount.point.clone(), own))
}
