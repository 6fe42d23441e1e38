//! Which cgroup hierarchies this host has, where they are mounted and where the caller is in each:
//! pure v2, pure v1, or both beside one another.
//!
//! The parsing is pure. Nothing here makes or changes a cgroup.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, Result};

#[cfg(test)]
mod tests;

/// One hierarchy, as the caller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The kernel's `cgroup_root.hierarchy_id`: 0 is v2.
    pub number: u32,
    /// v1: what is attached to it. v2: what the caller's own cgroup may hand to its children.
    pub controllers: Vec<String>,
    /// Where it is mounted: the ancestors of a directory end here.
    pub mount: PathBuf,
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
        let text = |path: &str| -> Result<String> {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {path}: mount /proc"))?;
            // A foreign mount's name in another encoding must not hide the cgroup mounts.
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut found = Self::parse(&text("/proc/self/mountinfo")?, &text("/proc/self/cgroup")?);
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
        let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
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
            let hierarchy = Hierarchy { number, controllers, mount, own };
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
    /// `31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate`; the fields
    /// before the dash vary in number.
    fn parse(line: &'a str) -> Option<Self> {
        let fields: Vec<&str> = line.split(' ').collect();
        let dash = fields.iter().skip(6).position(|field| *field == "-")? + 6;
        let options: Vec<&str> = fields.get(dash + 3)?.split(',').collect();
        // Below a path that does not begin at the root, anything might lie.
        fields[3..5].iter().all(|path| path.starts_with('/')).then_some(())?;
        let is_read_only = |mut options: std::str::Split<char>| options.any(|name| name == "ro");
        Some(Self {
            root: unescape(fields[3]).into(),
            point: unescape(fields[4]).into(),
            read_only: is_read_only(fields[5].split(',')) || options.contains(&"ro"),
            kind: fields[dash + 1],
            options,
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

/// Undoes the kernel's octal escapes (`\040` is a space); anything else stays as it is.
fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|digits| {
            byte == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        let value = octal.map(|d| d.iter().fold(0, |sum, d| sum * 8 + u32::from(d - b'0')));
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
