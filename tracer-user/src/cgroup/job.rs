//! The cgroup that `jobtrace run` makes for its command: one directory in each hierarchy it uses,
//! below the cgroup that the caller is in or where no limit is between the two beside it, so that
//! every limit of the caller still holds.
//!
//! Only controllers that count are used. The CPU controllers (`cpu`, `cpuset`) are left out: a cgroup
//! of its own would change how the command competes for the CPU, and where the kernel has real-time
//! group scheduling it would forbid real-time tasks.

use std::{
    error::Error,
    fmt,
    fs::{self, File},
    io::{self, ErrorKind},
    path::PathBuf,
    sync::Arc,
};

use anyhow::{Context, Result, bail};

use super::{
    controllers::{Plan, Switched},
    hierarchies::{Hierarchies, Hierarchy},
    memory_files::MemoryFiles,
    place::{CgroupId, Place, Places},
    stale::{self, PREFIX},
};
use crate::base::layout::Layout;

/// v1 controllers that can stand for the tasks' hierarchy, best first.
const TASK_CONTROLLERS: [&str; 4] = ["memory", "cpuacct", "pids", "freezer"];
/// Names tried before giving up: others are left from runs that were killed.
const ATTEMPTS: u32 = 1000;

/// No hierarchy that can tell a job's tasks apart took a cgroup.
#[derive(Debug)]
pub struct NoCgroup {
    /// Which one refused, and why.
    pub refusals: Vec<String>,
}

impl fmt::Display for NoCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Root is refused too, in a container.
        f.write_str(if rustix::process::geteuid().is_root() {
            "cannot create a cgroup for the command: mount the cgroup file system writable, or run in a delegated cgroup"
        } else {
            "needs root: sudo jobtrace run -- CMD; or CAP_BPF, CAP_PERFMON and a cgroup of your own"
        })?;
        self.refusals.iter().try_for_each(|refusal| write!(f, "\n  {refusal}"))
    }
}

impl Error for NoCgroup {}

/// A command's own cgroup. Dropped, it is removed unless processes live in it.
#[derive(Debug)]
pub struct JobCgroup {
    pub(super) places: Places,
    tasks: CgroupId,
    block: Option<CgroupId>,
    notes: Vec<String>,
    /// v2 controllers that were switched on for it.
    pub(super) switched: Option<Switched>,
    /// Keep other runs from sweeping the directories away.
    holds: Vec<File>,
    pub(super) removed: bool,
}

impl JobCgroup {
    /// Makes `jobtrace-run-<pid>-<n>-<name>` below the caller's cgroup, or beside it (`placement`), in
    /// v2 where it is mounted, and below it in the v1 hierarchies of memory, blkio, pids and cpuacct, and of the freezer where v2 takes none;
    /// not in one that has cpu or cpuset too. A hierarchy that refuses costs its own values and a note;
    /// one that refuses below the caller is tried further up.
    ///
    /// # Errors
    /// [`NoCgroup`] when no hierarchy that can tell the job's tasks apart takes a new cgroup.
    pub fn create(hierarchies: &Hierarchies, name: &str) -> Result<Self> {
        let name = sanitise(name);
        let pid = std::process::id();
        for attempt in 0..ATTEMPTS {
            let leaf = format!("{PREFIX}{pid}-{attempt}-{name}");
            if let Some(made) = Self::create_named(hierarchies, &leaf)? {
                return Ok(made);
            }
        }
        bail!("{ATTEMPTS} cgroups named {PREFIX}{pid}-* exist: remove those left by killed runs")
    }

    /// `None` where a hierarchy has the name already.
    fn create_named(hierarchies: &Hierarchies, leaf: &str) -> Result<Option<Self>> {
        // Made up first, so that dropping it on any way out removes what was made so far.
        let tasks = CgroupId { hierarchy: 0, id: 0, controller: None };
        let mut job = Self {
            places: Places::default(),
            tasks,
            block: None,
            notes: Vec::new(),
            switched: None,
            holds: Vec::new(),
            removed: false,
        };
        let mut refusals = Vec::new();
        let mut plan = hierarchies.v2.as_ref().map(|v2| Plan::read(&v2.mount, &v2.own));
        for hierarchy in hierarchies.v2.iter().chain(&hierarchies.v1) {
            let is_v1 = hierarchy.number != 0;
            let mut place = Place {
                number: hierarchy.number,
                controllers: if is_v1 { hierarchy.controllers.clone() } else { Arc::default() },
                mount: hierarchy.mount.clone(),
                directory: hierarchy.own.as_path().into(),
                own: false,
            };
            if is_used(hierarchy, job.places.v2().is_some_and(|v2| v2.own)) {
                let beside = plan.as_mut().filter(|plan| !is_v1 && plan.is_beside());
                let made = beside.and_then(|plan| plan.make(leaf).transpose());
                let is_planned = made.is_some();
                match made.unwrap_or_else(|| make_below(hierarchy, leaf)) {
                    Ok(directory) => {
                        if !is_planned && directory.parent() != Some(&hierarchy.own) {
                            refusals.push(format!(
                                "{} accepts no new cgroup, so its limits do not apply to {}",
                                hierarchy.own.display(),
                                directory.display()
                            ));
                        }
                        let hold = stale::hold(&directory)
                            .with_context(|| format!("cannot lock {}", directory.display()))?;
                        let Some(hold) = hold else { return Ok(None) };
                        job.holds.push(hold);
                        (place.directory, place.own) = (directory.into(), true);
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
                    Err(error) => refusals.push(format!(
                        "{} accepts no new cgroup ({error})",
                        hierarchy.own.display()
                    )),
                }
            }
            job.places.0.push(place);
        }
        let Some((place, controller)) = task_place(&job.places) else {
            return Err(NoCgroup { refusals }.into());
        };
        job.tasks = CgroupId::of(place, controller)
            .with_context(|| format!("cannot look up {}", place.directory.display()))?;
        job.notes = refusals;
        job.prepare(plan);
        job.block = job.find_block();
        Ok(Some(job))
    }

    /// Directories of every hierarchy; where the job has none of its own, the caller's.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Id in the tasks' hierarchy: v2 where mounted, else the first of v1 memory, cpuacct, pids and
    /// freezer.
    pub fn tasks(&self) -> CgroupId {
        self.tasks
    }

    /// Id by which block requests are charged: v1 blkio where blkio is v1, else v2's. `None` where the
    /// io controller is off for this cgroup: the kernel then charges requests to an ancestor, and
    /// only the task that made them can tell whose they are.
    pub fn block(&self) -> Option<CgroupId> {
        self.block
    }

    /// Whether the kernel charges memory to it alone.
    pub fn has_memory(&self) -> bool {
        MemoryFiles::of(&self.places).and_then(|mut files| files.read_current()).is_some()
    }

    /// The hierarchies, as the probes want them.
    pub fn layout(&self) -> Layout {
        Layout {
            tasks_hierarchy: self.tasks.hierarchy,
            tasks_controller: self.tasks.controller.map(str::to_owned),
            block_hierarchy: self.block.map(|block| block.hierarchy),
        }
    }

    /// What the reader of the results must know: which hierarchy or controller was refused.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What must be said of the run that is over: the controllers that somebody else switched off
    /// meanwhile, so that the kernel no longer counted for the command alone.
    pub fn lost(&self) -> Option<String> {
        self.switched.as_ref()?.lost()
    }

    /// Sets the new cgroups up; whatever is refused here costs its values only.
    fn prepare(&mut self, plan: Option<Plan>) {
        let v2 = self.places.v2().filter(|place| place.own).map(|place| place.directory.clone());
        if let (Some(directory), Some(plan)) = (v2, plan) {
            // Below a threaded cgroup a new one takes no task until it is threaded too.
            let kind = fs::read_to_string(directory.join("cgroup.type")).unwrap_or_default();
            if kind.trim() == "domain invalid" {
                let _ = fs::write(directory.join("cgroup.type"), "threaded");
            }
            // The nearest that took it may be further up than planned, and is not ours to change.
            if directory.parent() == Some(plan.parent()) {
                let (switched, notes) = plan.switch_on(&directory);
                self.switched = Some(switched);
                self.notes.extend(notes);
            }
        }
        if let Some(memory) = self.places.v1("memory").filter(|place| place.own) {
            // Before 5.11 a parent does not count its children unless told to.
            let _ = fs::write(memory.directory.join("memory.use_hierarchy"), "1");
        }
    }

    fn find_block(&self) -> Option<CgroupId> {
        if let Some(blkio) = self.places.v1("blkio") {
            return CgroupId::of(blkio, Some("blkio")).ok().filter(|_| blkio.own);
        }
        let v2 = self.places.v2().filter(|place| place.own)?;
        // The file is there exactly if the controller is on for this cgroup.
        v2.directory.join("io.stat").exists().then(|| CgroupId::of(v2, None).ok())?
    }
}

/// Whether a run is to have a cgroup of its own in `hierarchy`; `in_v2`: it has one in v2 already.
pub fn is_used(hierarchy: &Hierarchy, in_v2: bool) -> bool {
    if hierarchy.number == 0 {
        return true;
    }
    let counts = ["memory", "blkio", "pids", "cpuacct"].iter().any(|name| hierarchy.has(name));
    let schedules = hierarchy.has("cpu") || hierarchy.has("cpuset");
    // The freezer does nothing until told to, and can always stand for the tasks.
    (counts || (!in_v2 && hierarchy.has("freezer"))) && !schedules
}

/// The place by which the job's tasks are told apart, with its v1 controller.
fn task_place(places: &Places) -> Option<(&Place, Option<&'static str>)> {
    let v2 = places.v2().filter(|place| place.own).map(|place| (place, None));
    v2.or_else(|| {
        TASK_CONTROLLERS.iter().find_map(|name| {
            let place = places.v1(name).filter(|place| place.own)?;
            Some((place, Some(*name)))
        })
    })
}

/// Makes `leaf` below the caller's cgroup, or where that is refused below the nearest ancestor that
/// does not. The error is the first refusal, or `AlreadyExists`.
fn make_below(hierarchy: &Hierarchy, leaf: &str) -> io::Result<PathBuf> {
    let mut refusal = None;
    let parents =
        hierarchy.own.ancestors().take_while(|parent| parent.starts_with(&hierarchy.mount));
    for parent in parents {
        let directory = parent.join(leaf);
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    Err(refusal.unwrap_or_else(|| ErrorKind::NotFound.into()))
}

/// `name` as a part of a directory's name: other characters become `_`, and it is cut at 64.
fn sanitise(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    name.chars().take(64).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory_of(hierarchy: u32, own: PathBuf) -> Hierarchy {
        Hierarchy {
            number: hierarchy,
            controllers: Arc::default(),
            mount: own.as_path().into(),
            own,
        }
    }

    #[test]
    fn only_what_is_offered_and_off_is_switched_on() {
        let own = tempfile::tempdir().unwrap();
        let control = own.path().join("cgroup.subtree_control");
        fs::write(own.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
        fs::write(&control, "cpu memory\n").unwrap();
        let v2 = Some(directory_of(0, own.path().to_owned()));
        let hierarchies = Hierarchies { v2, v1: Vec::new() };
        let job = JobCgroup::create(&hierarchies, "x").unwrap();
        let on = |name| (own.path().to_owned(), name);
        assert_eq!(job.switched.as_ref().unwrap().on, [on("io"), on("pids")]);
        assert_eq!(job.notes(), [""; 0]);
        assert_eq!(job.block(), None, "no io.stat, no requests charged to it");
        fs::write(job.places().v2().unwrap().directory.join("io.stat"), "").unwrap();
        assert_eq!(job.find_block(), Some(job.tasks()));
    }

    #[test]
    fn names_hold_no_path_and_no_line() {
        assert_eq!(sanitise("../a b/c\nd"), ".._a_b_c_d");
        assert_eq!(sanitise("mdrun-2.1_x"), "mdrun-2.1_x");
        assert_eq!(sanitise("größe"), "gr__e");
        assert_eq!(sanitise(&"x".repeat(300)).len(), 64);
    }

    #[test]
    fn hierarchies_that_schedule_are_left_alone() {
        let of = |number, controllers: &str| Hierarchy {
            number,
            controllers: controllers.split(',').map(str::to_owned).collect(),
            mount: PathBuf::from("/").into(),
            own: "/".into(),
        };
        assert!(is_used(&of(0, "cpu,memory"), false));
        assert!(is_used(&of(4, "memory"), true) && is_used(&of(2, "cpuacct"), true));
        assert!(!is_used(&of(3, "cpu,cpuacct"), true) && !is_used(&of(5, "devices"), false));
        assert!(!is_used(&of(6, "freezer"), true) && is_used(&of(6, "freezer"), false));
    }
}
