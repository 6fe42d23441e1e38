//! Cgroups and programs as the kernel tells of them, and whose they are.

use std::path::{Path, PathBuf};

use tracer_ebpf::records::PATH_BYTES;

use super::Node;
use crate::{
    base::clock::{monotonic_ns, wall_at, wall_ns},
    commands::agent::{
        details::{Details, read_start_wall_ns},
        gpus,
        log::Log,
        state::Entry,
        tracker::Owner,
    },
    model::job::Job,
    probes::{Cgroup, Event},
    resolve::Answer,
};

/// A cgroup that was made, or found.
pub(super) struct Arrival {
    /// Which.
    pub cgroup: Cgroup,
    /// Who is charged; `None` for the rest of the node.
    pub lease: Option<u32>,
    /// Whether the lease was nobody's before.
    pub fresh: bool,
    /// Its path.
    pub path: PathBuf,
    /// When it was made; 0: its tasks tell.
    pub start_wall_ns: u64,
    /// Who made it, where the kernel told.
    pub made_by: Option<u32>,
}

impl Arrival {
    /// One that was there already, and is nobody's.
    pub fn found(cgroup: Cgroup, path: PathBuf) -> Self {
        Self { cgroup, lease: None, fresh: false, path, start_wall_ns: 0, made_by: None }
    }
}

impl Node {
    /// Handles what happened, without anything that takes long; whether anything did.
    pub(super) fn handle_events(&mut self, log: &Log) -> bool {
        let keeper = &mut self.keeper;
        let events = self.probes.slots.events(|lease, cgroup, path| {
            if let Some(keeper) = keeper {
                // Where it cannot be written, note_owner says so.
                let _ = keeper.note(&Entry::Made(lease, cgroup, path.to_owned()));
            }
        });
        let is_cgroup = |event: &&Event| !matches!(event, Event::Executed { .. });
        self.overhead.saw_cgroups(events.iter().filter(is_cgroup).count() as u64);
        let any = !events.is_empty();
        for event in events {
            match event {
                Event::Made { cgroup, lease, fresh, path, at_ns, uid } => {
                    let path = self.seen(cgroup, &path);
                    let (start_wall_ns, made_by) = (wall_at(at_ns), Some(uid));
                    self.made(Arrival { cgroup, lease, fresh, path, start_wall_ns, made_by }, log);
                }
                Event::Removed { cgroup, lease, at_ns } => {
                    if self.tracker.knows(cgroup) {
                        self.tracker.removed(cgroup, at_ns);
                    } else if let Some(lease) = lease {
                        self.tracker.removed_of(lease, at_ns);
                    }
                }
                Event::Renamed { at_ns, .. } => self.renamed(at_ns, log),
                Event::Executed { lease, pid, uid } => self.executed(lease, pid, uid, log),
            }
        }
        any
    }

    /// The kernel's `path` of `cgroup` as this process sees it.
    pub(super) fn seen(&mut self, cgroup: Cgroup, path: &Path) -> PathBuf {
        if path.as_os_str().len() + 1 >= PATH_BYTES {
            // Cut off by the kernel: what is left may be the name of another job.
            self.view.find(cgroup).unwrap_or_default()
        } else {
            self.view.seen(cgroup, path)
        }
    }

    /// Some cgroup was renamed: it and those below it may be other jobs' from here on.
    fn renamed(&mut self, at_ns: u64, log: &Log) {
        let there = match self.view.walk() {
            Ok(there) => there,
            Err(error) => return log.warning(format_args!("{error:#}")),
        };
        for (cgroup, path) in there {
            let (answer, _) = self.believed(cgroup, &path, None);
            let owner =
                self.owner(&path, &answer).map(|owner| self.tracker.named(&owner.job).clone());
            if self.tracker.job_of(cgroup) != owner.as_ref() {
                self.probes.slots.displace(cgroup);
                self.tracker.removed(cgroup, at_ns);
                let start_wall_ns = wall_at(at_ns);
                self.made(Arrival { start_wall_ns, ..Arrival::found(cgroup, path) }, log);
            }
        }
    }

    /// A cgroup was made, or found.
    pub(super) fn made(&mut self, arrival: Arrival, log: &Log) {
        let Arrival { cgroup, lease, fresh, ref path, start_wall_ns, made_by } = arrival;
        let (answer, maker) = self.believed(cgroup, path, made_by);
        let owner = self.owner(path, &answer);
        let is_job = owner.is_some();
        if is_job && lease.is_none() {
            self.unplaced.insert(cgroup, path.to_owned());
        }
        let actions = self.tracker.made(cgroup, lease, fresh, owner, monotonic_ns());
        self.apply(actions, log);
        if !is_job {
            return;
        }
        if self.probes.slots.charged_for(cgroup).is_none() || !self.view.exists(cgroup, path) {
            self.unplaced.insert(cgroup, path.to_owned());
        }
        // In a cgroup that was nobody's yet, or had no slot, no program was told of.
        let is_untold = fresh || lease.is_none();
        let Some(job) = self.tracker.job_of(cgroup).cloned() else { return };
        let Some(tracked) = self.tracker.job(&job) else { return };
        if let Some(details) = self.details.get_mut(&job) {
            details.set_ended(None);
            details.made_by = details.made_by.or(Some(maker));
            details.note(&answer);
            if is_untold {
                self.learn_from_tasks(&job, log);
            }
            return;
        }
        if let Some(uid) = answer.uid {
            // So that the name is there at the first tick.
            self.users.ask(uid);
        }
        let start = match start_wall_ns {
            0 => read_start_wall_ns(self.view.pids(&tracked.root)).unwrap_or_else(wall_ns),
            start => start,
        };
        let mut details = Details::new(&answer, start);
        details.made_by = Some(maker);
        let traced_ns = wall_at(self.probes.since_ns());
        // One without a slot is counted from when it has one.
        if start < traced_ns && tracked.lease.is_some() {
            details.set_counted_from(traced_ns);
        }
        self.details.insert(job.clone(), details);
        self.know_by_path(&job, log);
        if is_untold {
            self.learn_from_tasks(&job, log);
        }
    }

    /// The job that `path`, which says `answer`, belongs to.
    pub(super) fn owner(&self, path: &Path, answer: &Answer) -> Option<Owner> {
        let is_job = answer.is_job() && !self.settings.ignored.contains(&answer.manager);
        is_job.then(|| Owner {
            job: self.name(answer),
            root: root(path, answer, self.settings.steps),
        })
    }

    /// What the path alone names the job.
    pub(super) fn name(&self, answer: &Answer) -> Job {
        gpus::name(answer, self.settings.steps)
    }
}

/// The topmost directory of the job that `answer` found in `path`, or of its step where steps are series
/// of their own.
fn root(path: &Path, answer: &Answer, steps: bool) -> PathBuf {
    let job = path.components().take(1 + answer.root);
    let Some(step) = answer.step.as_ref().filter(|_| steps) else { return job.collect() };
    let step = format!("step_{step}");
    let below = path.components().skip(1 + answer.root);
    let count = below.take_while(|part| part.as_os_str() != step.as_str()).count();
    path.components().take(2 + answer.root + count).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::resolve::Resolver;

    #[test]
    fn a_jobs_directory_and_a_steps_are_found_in_any_path() {
        let resolver = Resolver::new(&[]).unwrap();
        let found = |path: &[u8], steps: bool| {
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let answer = resolver.path(&path.to_string_lossy());
            root(path, &answer, steps)
        };
        let v2 = b"/a.slice/n_slurmstepd.scope/job_7/step_1/user/task_0";
        assert_eq!(found(v2, false), Path::new("/a.slice/n_slurmstepd.scope/job_7"));
        assert_eq!(found(v2, true), Path::new("/a.slice/n_slurmstepd.scope/job_7/step_1"));
        assert_eq!(found(b"/slurm/uid_0/job_7", true), Path::new("/slurm/uid_0/job_7"));
        let odd = found(b"/\xff\xfe/slurm/uid_0/job_7/step_batch", true);
        assert_eq!(odd.as_os_str().as_bytes(), b"/\xff\xfe/slurm/uid_0/job_7/step_batch");
    }
}
