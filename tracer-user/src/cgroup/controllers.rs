//! Switches v2 controllers on for a run and off again after it.
//!
//! A mark on the cgroup (an extended attribute) says what runs switched on there, so that of several runs
//! the last one switches it off, whoever it was that switched it on; what a killed run left too.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, XattrFlags, flock, getxattr, removexattr, setxattr};

use super::{
    placement::{COPIED, COUNTING, CgroupLevel, Choice, choose},
    settings::read_settings,
    stale::PREFIX,
    tree::children,
};

const CONTROL: &str = "cgroup.subtree_control";
/// Holds the names of controllers. Cgroups take attributes of users since 5.7.
const MARK: &str = "user.jobtrace";
/// How long another run may take over its own switching. Anybody can hold this lock, so it is not
/// waited for without end.
const PATIENCE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(5);

/// Where a v2 cgroup is to be. While it lives, no other run switches controllers on or off.
pub(super) struct Plan {
    directories: Vec<PathBuf>,
    choice: Choice,
    _lock: Option<File>,
}

impl Plan {
    /// For a caller in `own`, in the hierarchy at `mount`.
    pub fn read(mount: &Path, own: &Path) -> Self {
        let lock = lock(mount);
        let mut directories: Vec<PathBuf> = upwards(own, mount).map(Path::to_owned).collect();
        directories.reverse();
        let levels: Vec<CgroupLevel> = directories.iter().map(|at| read_level(at)).collect();
        let choice = choose(&levels, &read_settings(own, ""));
        Self { directories, choice, _lock: lock }
    }

    /// The cgroup in which to make the new one.
    pub fn parent(&self) -> &Path {
        &self.directories[self.choice.parent]
    }

    /// Makes `leaf` beside the caller's cgroup. `None` where that is refused: it is to be below it then.
    ///
    /// # Errors
    /// `AlreadyExists` alone.
    pub fn make(&mut self, leaf: &str) -> io::Result<Option<PathBuf>> {
        let directory = self.parent().join(leaf);
        match fs::create_dir(&directory) {
            Ok(()) => Ok(Some(directory)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
            Err(error) => {
                self.choice = Choice {
                    parent: self.directories.len() - 1,
                    switches: Vec::new(),
                    missing: COUNTING.into(),
                    why_below: Some(format!("no cgroup can be created next to it ({error})")),
                };
                Ok(None)
            }
        }
    }

    /// Whether it is not the caller's cgroup.
    pub fn is_beside(&self) -> bool {
        self.choice.parent + 1 < self.directories.len()
    }

    /// Switches on what the new cgroup at `directory` is to have. What is refused costs a note.
    pub fn switch_on(&self, directory: &Path) -> (Switched, Vec<String>) {
        let mut switched = Switched {
            directory: directory.to_owned(),
            counted: Vec::new(),
            levels: self.directories[..=self.choice.parent].iter().rev().cloned().collect(),
            on: Vec::new(),
        };
        let mut notes = Vec::new();
        for controller in COUNTING {
            let of = self.choice.switches.iter().filter(|switch| switch.controller == controller);
            for directory in of.map(|switch| &self.directories[switch.level]) {
                if let Err(error) = fs::write(directory.join(CONTROL), format!("+{controller}")) {
                    let at = directory.display();
                    notes.push(format!(
                        "the {controller} controller cannot be enabled in {at} ({error})"
                    ));
                    break;
                }
                mark(directory, controller, true);
                switched.on.push((directory.clone(), controller));
            }
        }
        let own = self.directories.last().filter(|_| self.is_beside());
        if let Some(tasks) = own.and_then(|own| fs::read_to_string(own.join(COPIED)).ok())
            && let Err(error) = fs::write(directory.join(COPIED), tasks)
        {
            notes.push(format!("the session's limit on tasks does not apply ({error})"));
        }
        if let Some(why) = &self.choice.why_below {
            let own = self.directories.last().and_then(|own| own.file_name()).unwrap_or_default();
            notes.push(format!(
                "{} contains processes, so {} cannot be enabled below it, and {why}",
                own.display(),
                self.choice.missing.join(", ")
            ));
        }
        switched.counted = switched.counting();
        (switched, notes)
    }
}

/// What was switched on for a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Switched {
    /// From the cgroup in which the run's own was, up to the mount point.
    levels: Vec<PathBuf>,
    /// The run's own.
    directory: PathBuf,
    /// The counting controllers that it had at first.
    counted: Vec<&'static str>,
    /// The cgroups that were changed, and what was switched on there.
    pub on: Vec<(PathBuf, &'static str)>,
}

impl Switched {
    fn counting(&self) -> Vec<&'static str> {
        let offered = read_words(&self.directory, "cgroup.controllers");
        let is_on = |name: &&str| offered.iter().any(|word| word == name);
        COUNTING.into_iter().filter(is_on).collect()
    }

    /// Names the controllers that somebody else switched off since, if any. Call it before the run's
    /// directory goes.
    pub fn lost(&self) -> Option<String> {
        let left = self.counting();
        let is_lost = |name: &&str| !left.contains(name);
        let lost: Vec<&str> = self.counted.iter().copied().filter(is_lost).collect();
        (!lost.is_empty()).then(|| {
            let lost = lost.join(", ");
            format!("something disabled the controllers {lost} for the command's cgroup during the run: their values do not cover its end")
        })
    }

    /// Switches off, from below, what this run or one before it switched on, unless another run is
    /// beside or somebody set a value of that controller. One that a cgroup further down hands on is
    /// refused by the kernel, and stays. Call it when the run's directory is gone.
    pub fn switch_off(&self) {
        let _lock = self.levels.last().and_then(|mount| lock(mount));
        for directory in &self.levels {
            let marked = read_mark(directory);
            for controller in COUNTING {
                let is_ours =
                    self.on.iter().any(|(at, name)| at == directory && *name == controller)
                        || marked.iter().any(|name| name == controller);
                let is_on = || read_words(directory, CONTROL).iter().any(|name| name == controller);
                if !is_ours || is_used(directory, controller) {
                    continue;
                }
                let off = || fs::write(directory.join(CONTROL), format!("-{controller}")).is_ok();
                if !is_on() || off() {
                    mark(directory, controller, false);
                }
            }
        }
    }
}

/// Whether a child of `directory` is a run's or has a setting of `controller`.
fn is_used(directory: &Path, controller: &str) -> bool {
    let is_run = |child: &Path| {
        child.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    };
    let files = format!("{controller}.");
    let has_value = |child: &Path| !read_settings(child, &files).is_empty();
    children(directory).iter().any(|child| is_run(child) || has_value(child))
}

fn read_level(directory: &Path) -> CgroupLevel {
    CgroupLevel {
        name: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        offered: read_words(directory, "cgroup.controllers"),
        active: read_words(directory, CONTROL),
        // The only cgroup without a type.
        is_root: !directory.join("cgroup.type").exists(),
        holds_processes: !read_words(directory, "cgroup.procs").is_empty(),
    }
}

fn upwards<'a>(own: &'a Path, mount: &'a Path) -> impl Iterator<Item = &'a Path> {
    own.ancestors().take_while(move |path| path.starts_with(mount))
}

fn read_words(directory: &Path, name: &str) -> Vec<String> {
    let text = fs::read_to_string(directory.join(name)).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn lock(mount: &Path) -> Option<File> {
    let file = File::open(mount).ok()?;
    let start = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if start.elapsed() > PATIENCE {
            return None;
        }
        sleep(PAUSE);
    }
    Some(file)
}

fn read_mark(directory: &Path) -> Vec<String> {
    let mut buffer = [0; 64];
    let length = getxattr(directory, MARK, &mut buffer[..]).unwrap_or(0);
    let text = String::from_utf8_lossy(&buffer[..length]);
    text.split_whitespace().map(str::to_owned).collect()
}

/// Adds `controller` to the mark, or takes it out. Without a mark only this run knows.
fn mark(directory: &Path, controller: &str, is_on: bool) {
    let mut names = read_mark(directory);
    names.retain(|name| name != controller);
    if is_on {
        names.push(controller.into());
    }
    let _ = if names.is_empty() {
        removexattr(directory, MARK)
    } else {
        setxattr(directory, MARK, names.join(" ").as_bytes(), XattrFlags::empty())
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_relies_on_a_controller_is_seen() {
        let directory = tempfile::tempdir().unwrap();
        let child = directory.path().join("other.scope");
        fs::create_dir(&child).unwrap();
        fs::write(child.join("memory.max"), "max\n").unwrap();
        assert!(!is_used(directory.path(), "memory"));
        fs::write(child.join("memory.max"), "4096\n").unwrap();
        assert!(is_used(directory.path(), "memory") && !is_used(directory.path(), "io"));
        fs::create_dir(directory.path().join("jobtrace-run-1-0-x")).unwrap();
        assert!(is_used(directory.path(), "io"));
    }

    #[test]
    fn a_session_is_left_with_its_limit_on_tasks() {
        let mount = tempfile::tempdir().unwrap();
        let slice = mount.path().join("user-1000.slice");
        let own = slice.join("session-3.scope");
        fs::create_dir_all(own.join("jobtrace")).unwrap();
        for (at, active, procs) in
            [(mount.path(), "memory pids", "1"), (&slice, "memory pids", ""), (&own, "", "7")]
        {
            fs::write(at.join("cgroup.controllers"), "cpu io memory pids").unwrap();
            fs::write(at.join(CONTROL), active).unwrap();
            fs::write(at.join("cgroup.procs"), procs).unwrap();
        }
        for at in [&slice, &own] {
            fs::write(at.join("cgroup.type"), "domain").unwrap();
        }
        fs::write(own.join(COPIED), "900").unwrap();
        let mut plan = Plan::read(mount.path(), &own);
        assert!(plan.is_beside());
        let made = plan.make("jobtrace-run-1-0-x").unwrap().unwrap();
        let (switched, notes) = plan.switch_on(&made);
        assert_eq!(switched.on, [(mount.path().to_owned(), "io"), (slice.clone(), "io")]);
        assert_eq!(notes, [""; 0]);
        assert_eq!(fs::read_to_string(made.join(COPIED)).unwrap(), "900");
        assert_eq!(fs::read_to_string(slice.join(CONTROL)).unwrap(), "+io");

        fs::write(own.join("memory.high"), "4096").unwrap();
        drop(plan);
        let plan = Plan::read(mount.path(), &own);
        assert_eq!((plan.is_beside(), plan.parent()), (false, own.as_path()));
        let (switched, notes) = plan.switch_on(&own.join("jobtrace"));
        assert!(switched.on.is_empty() && notes[0].contains("its own memory.high"), "{notes:?}");
    }

    #[test]
    fn a_lock_that_is_never_given_back_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let held = lock(directory.path());
        assert!(held.is_some());
        assert!(lock(directory.path()).is_none());
    }
}
