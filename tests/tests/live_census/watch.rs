//! The probes themselves, on a job of the test's own: raw paths, which the program never tells.

use std::{collections::BTreeSet, fs, os::unix::process::CommandExt, path::Path, process::Command};

use jobtrace::{
    cgroup::job::JobCgroup,
    model::{lease::Lease, seen::Seen},
    probes::{self, FaultMode, Options, Probes, Room},
};
use jobtrace_tests::probed::{cgroup, tasks_directory};

/// A job that is watched from its begin on.
pub struct Watch {
    cgroup: JobCgroup,
    probes: Probes,
    lease: Lease,
}

impl Watch {
    /// One called `name`, with so much room.
    pub fn begin(name: &str, room: Room) -> Self {
        let cgroup = cgroup(name);
        let options = Options::new(FaultMode::Major);
        let mut probes =
            probes::load(&cgroup.layout(), &options).unwrap_or_else(|error| panic!("{error}"));
        let lease = probes.slots.track(cgroup.tasks().id, None).unwrap();
        probes.load_census(&cgroup.layout(), room).unwrap();
        probes.census.as_mut().unwrap().begin(lease, jobtrace::base::clock::monotonic_ns());
        Self { cgroup, probes, lease }
    }

    /// What will run in the job.
    pub fn command(&self, words: &[&str]) -> Command {
        let procs = tasks_directory(&self.cgroup).join("cgroup.procs");
        let mut command = Command::new(words[0]);
        // SAFETY: the child opens and writes a file, and its path was made before the fork.
        unsafe { command.args(&words[1..]).pre_exec(move || fs::write(&procs, "0")) };
        command
    }

    /// What was seen, once all of the job has ended.
    pub fn end(mut self) -> Seen {
        self.probes.settle(self.lease);
        let slot = self.probes.slots.slot_of(self.lease);
        let census = self.probes.census.as_mut().unwrap();
        census.drain();
        census.seen(self.lease, slot).expect("a program was executed")
    }
}

/// Runs `command` as a job; what was seen of it, which is all, and what it wrote.
pub fn watched(name: &str, command: &[&str]) -> (Seen, String) {
    let watch = Watch::begin(name, Room::JOB);
    let output = watch.command(command).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let seen = watch.end();
    assert_eq!(seen.lost, 0);
    (seen, String::from_utf8(output.stdout).unwrap())
}

/// Paths of the libraries that the program at `by` mapped.
pub fn libraries(seen: &Seen, by: &Path) -> BTreeSet<String> {
    let of_it = seen.libraries.iter().filter(|library| Path::new(&library.by) == by);
    of_it.map(|library| library.path.clone()).collect()
}

/// Names in the folder of modules `site` that the interpreter at `by` had something of.
pub fn modules(seen: &Seen, site: &Path, by: &Path) -> BTreeSet<String> {
    let of_it = seen.packages.iter().filter(|package| {
        Path::new(&package.interpreter) == by && Path::new(&package.site) == site
    });
    of_it.map(|package| package.name.clone()).collect()
}
