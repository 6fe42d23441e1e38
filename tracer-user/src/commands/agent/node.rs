//! The node as it is read at each tick: jobs, their slots, GPUs and what the probes cost, brought together.

use std::{collections::BTreeMap, io, os::fd::OwnedFd, path::PathBuf, sync::Arc};

use anyhow::Result;

mod arrivals;
mod belief;
mod care;
mod gpus;
mod jobs;
mod learn;
mod resume;
mod slots;

use arrivals::Arrival;
use care::Care;
use jobs::Jobs;
use slots::Slots;

use super::{
    gpus::{GpuSettings, Gpus},
    hierarchy::View,
    log::Log,
    naming::Naming,
    overhead::{Overhead, OverheadSettings},
};
use crate::{
    base::clock::{monotonic_ns, wall_at},
    model::{
        job::{Job, JobStats, attribute},
        point::{Origin, Point},
        snapshot::Snapshot,
        source::Source,
        tables::{BLOCK, Own},
    },
    probes::{Cgroup, Event, Probes},
};

/// What of the configuration matters here.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// Slots kept ready for new cgroups.
    pub spare_slots: usize,
    /// Whose a path is.
    pub naming: Arc<Naming>,
    /// What the probes may cost.
    pub overhead: OverheadSettings,
    /// How GPUs are sampled.
    pub gpus: GpuSettings,
}

/// An interval of the whole node.
#[derive(Debug, Default)]
pub struct Measured {
    /// What each job did, the rest of the node and the tracing itself included.
    pub jobs: Vec<JobStats>,
    /// What is known of jobs that began, changed or ended.
    pub facts: Vec<Point>,
    /// Jobs with cgroups now.
    pub live: usize,
    /// Length of the interval.
    pub span_ns: u64,
}

/// The node.
pub struct Node {
    jobs: Jobs,
    slots: Slots,
    care: Care,
    gpus: Gpus,
    overhead: Overhead,
    /// What was reported last.
    previous: Snapshot,
    /// Events of cgroups that were lost up to then.
    lost_events: u64,
    /// Jobs found at the start that no slot was free for, until that is reported.
    unserved: u64,
}

impl Node {
    /// A node that is traced from now on: the jobs that are there are found, what they did so far is not
    /// counted.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn start(probes: Probes, view: View, settings: NodeSettings, log: &Log) -> Result<Self> {
        let mut node = Self::new(probes, view, settings, log)?;
        // Before any job has a slot: all that is in theirs from now on is told of.
        node.previous = node.read()?;
        node.lost_events = node.count_lost_events();
        node.care_for(care::START_MOST, log)?;
        let told = node.jobs.tracker.wanting();
        node.jobs.find_existing(&mut node.slots, log)?;
        node.care_for(care::START_MOST, log)?;
        // The kernel counted none of them: they were made before it was asked to.
        let wanting = node.jobs.tracker.wanting();
        node.unserved = wanting.iter().filter(|job| !told.contains(job)).count() as u64;
        Ok(node)
    }

    fn new(probes: Probes, view: View, settings: NodeSettings, log: &Log) -> Result<Self> {
        let NodeSettings { spare_slots, naming, overhead, gpus } = settings;
        Ok(Self {
            overhead: Overhead::new(overhead, &probes),
            gpus: Gpus::start(gpus, &naming, log),
            jobs: Jobs::new(view, naming)?,
            slots: Slots::new(probes, spare_slots),
            care: Care::default(),
            previous: Snapshot::default(),
            lost_events: 0,
            unserved: 0,
        })
    }

    /// Takes over other settings.
    pub fn set(&mut self, settings: NodeSettings, log: &Log) {
        let NodeSettings { spare_slots, naming, overhead, gpus } = settings;
        self.gpus.set(gpus, &naming, monotonic_ns(), log);
        self.jobs.naming = naming;
        self.slots.wanted_spares = spare_slots;
        self.overhead.set(overhead);
    }

    /// Programs that do not run without an agent.
    pub fn unpinned(&self) -> &[&'static str] {
        self.slots.probes.unpinned()
    }

    /// Readable when cgroups were made or removed.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn events_fd(&self) -> io::Result<OwnedFd> {
        self.slots.probes.events_fd()
    }

    /// Takes in what happened to cgroups and programs.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn take_events(&mut self, log: &Log) -> Result<()> {
        if self.handle_events(log) { self.care(log) } else { Ok(()) }
    }

    /// Handles what happened, without anything that takes long; whether anything did.
    fn handle_events(&mut self, log: &Log) -> bool {
        let events = self.slots.events();
        let is_cgroup = |event: &&Event| !matches!(event, Event::Executed { .. });
        self.overhead.saw_cgroups(events.iter().filter(is_cgroup).count() as u64);
        let (jobs, slots) = (&mut self.jobs, &mut self.slots);
        let any = !events.is_empty();
        for event in events {
            match event {
                Event::Made { cgroup, lease, fresh, path, at_ns, uid } => {
                    let path = jobs.seen(cgroup, &path);
                    let (start_wall_ns, made_by) = (wall_at(at_ns), Some(uid));
                    let arrival = Arrival { cgroup, lease, fresh, path, start_wall_ns, made_by };
                    jobs.made(arrival, slots, log);
                }
                Event::Removed { cgroup, lease, at_ns } => {
                    if jobs.tracker.knows(cgroup) {
                        jobs.tracker.removed(cgroup, at_ns);
                    } else if let Some(lease) = lease {
                        jobs.tracker.removed_of(lease, at_ns);
                    }
                }
                Event::Renamed { at_ns, .. } => jobs.renamed(at_ns, slots, log),
                Event::Executed { lease, pid, uid } => {
                    jobs.executed(lease, (pid, uid), slots, log);
                }
            }
        }
        any
    }

    /// A snapshot with the jobs' files.
    fn read(&mut self) -> Result<Snapshot> {
        self.slots.reclaim()?;
        let mut snapshot = self.slots.probes.snapshot()?.unwrap_or_default();
        self.jobs.read_files(&mut snapshot);
        Ok(snapshot)
    }

    /// Ends an interval, whose points are stamped `stamp_ns`.
    ///
    /// # Errors
    /// When the maps cannot be read; the next tick then covers this one's time.
    pub fn tick(&mut self, origin: &Origin, stamp_ns: u64, log: &Log) -> Result<Measured> {
        self.handle_events(log);
        self.jobs.ask_again(&mut self.slots, log);
        self.jobs.find_users(&mut self.slots);
        let snapshot = self.read()?;
        let mut interval = snapshot.since(&self.previous);
        self.previous = snapshot;
        let now_ns = self.previous.monotonic_ns;
        self.look_at_gpus(log)?;
        self.add_gpus(&mut interval, log);
        self.overhead.tick(&mut interval, now_ns, &mut self.slots.probes, log);
        let mut jobs = attribute(&interval, self.jobs.tracker.owners());
        self.forget_unseen(&mut jobs);
        self.jobs.add(&jobs);
        let facts = self.jobs.due_infos(&self.slots, origin, stamp_ns);
        let unserved = std::mem::take(&mut self.unserved);
        if let Some(own) = interval.own.first_mut() {
            own.set(
                Own::dropped_slot,
                own.number(Own::dropped_slot).map(|dropped| dropped + unserved),
            );
        }
        match jobs.iter_mut().find(|stats| stats.job == Job::system()) {
            Some(system) => system.groups.extend(interval.own),
            None => jobs.push(JobStats { job: Job::system(), groups: interval.own }),
        }
        let (previous, probes) = (&self.previous, &self.slots.probes);
        let is_alive = |lease| previous.slots.contains_key(&lease) || probes.is_leased(lease);
        self.jobs.tracker.forget_owners(is_alive);
        self.jobs.release_old(&mut self.slots, log);
        self.care(log)?;
        self.tell_shortage(log);
        if self.count_lost_events() > self.lost_events {
            self.lost_events = self.count_lost_events();
            log.warning("cgroup events were lost, rescanning all cgroups");
            self.look_again(log)?;
        }
        Ok(Measured { jobs, facts, live: self.jobs.live(), span_ns: interval.span_ns })
    }

    /// Of jobs that ended before all programs were attached, nothing is known of what they ran.
    fn forget_unseen(&self, jobs: &mut [JobStats]) {
        let since_ns = self.slots.probes.since_ns();
        for stats in jobs {
            let ended_ns = self.jobs.tracker.job(&stats.job).and_then(|tracked| tracked.ended_ns);
            if ended_ns.is_some_and(|ended_ns| ended_ns <= since_ns) {
                stats.groups.retain(|group| group.is(&BLOCK));
            }
        }
    }

    /// Events were lost: compares what is known with what is there.
    fn look_again(&mut self, log: &Log) -> Result<()> {
        let there: BTreeMap<Cgroup, PathBuf> = self.jobs.view.walk()?.into_iter().collect();
        for cgroup in self.jobs.tracker.cgroups() {
            if !there.contains_key(&cgroup) {
                self.slots.probes.displace(cgroup);
                self.jobs.tracker.removed(cgroup, monotonic_ns());
            }
        }
        self.jobs.find_existing(&mut self.slots, log)?;
        self.care(log)?;
        // Programs that were executed may be among what was not told.
        let jobs: Vec<Job> = self.jobs.tracker.jobs().map(|(job, _)| job.clone()).collect();
        jobs.iter().for_each(|job| self.jobs.learn_from_tasks(job, &mut self.slots, log));
        Ok(())
    }

    fn count_lost_events(&self) -> u64 {
        let lost = self.previous.own.iter().filter_map(|own| own.number(Own::dropped_cgroup_event));
        lost.sum()
    }
}
