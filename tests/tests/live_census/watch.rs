//! The probes themselves, on a job of the test's own: raw paths, which the program never tells.

use std::{collections::BTreeSet, fs, os::unix::process::CommandExt, path::Path, process::Command};

use jobtrace::{
    cgroup::job::JobCgroup,
    model::{lease::Lease, seen::Seen},
    probes::{self, FaultMode, Options, Probes, Room},
};
use jobtrace_tests::probed::{cgroup, tasks_directory};

/// A job of the test's own.
pub struct Job {
    cgroup: JobCgroup,
    lease: Lease,
}

impl Job {
    /// What will run in it.
    pub fn command(&self, words: &[&str]) -> Command {
        let procs = tasks_directory(&self.cgroup).join("cgroup.procs");
        let mut command = Command::new(words[0]);
        // SAFETY: the child opens and writes a file, and its path was made before the fork.
        unsafe { command.args(&words[1..]).pre_exec(move || fs::write(&procs, "0")) };
        command
    }
}

/// A job that is watched from its begin on.
pub struct Watch {
    pub job: Job,
    probes: Probes,
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
        let job = Job { cgroup, lease };
        probes.census.as_mut().unwrap().begin(lease, jobtrace::base::clock::monotonic_ns());
        Self { job, probes }
    }

    /// Another job that the same programs watch.
    pub fn beside(&mut self, name: &str) -> Job {
        let cgroup = cgroup(name);
        let lease = self.probes.slots.track(cgroup.tasks().id, None).unwrap();
        let census = self.probes.census.as_mut().unwrap();
        census.begin(lease, jobtrace::base::clock::monotonic_ns());
        Job { cgroup, lease }
    }

    /// What was seen of `job`, once all of it has ended.
    pub fn seen(&mut self, job: &Job) -> Seen {
        self.seen_of(job.lease)
    }

    /// The same of the job that it began with, the last that is asked for.
    pub fn end(mut self) -> Seen {
        self.seen_of(self.job.lease)
    }

    fn seen_of(&mut self, lease: Lease) -> Seen {
        self.probes.settle(lease);
        let slot = self.probes.slots.slot_of(lease);
        let census = self.probes.census.as_mut().unwrap();
        census.drain();
        census.seen(lease, slot).expect("a program was executed")
    }
}

/// Runs `command` as a job; what was seen of it, which is all, and what it wrote.
pub fn watched(name: &str, command: &[&str]) -> (Seen, String) {
    let watch = Watch::begin(name, Room::JOB);
    let output = watch.job.command(command).output().unwrap();
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
