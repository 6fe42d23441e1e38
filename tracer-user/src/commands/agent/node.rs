//! The node's jobs as they come and go: probes, cgroups and files brought together, read at each tick.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::Arc,
};

use anyhow::Result;

mod arrivals;
mod belief;
mod care;
mod gpus;
mod learn;
mod resume;

use arrivals::Arrival;

use super::{
    details::Details,
    gpus::{self as sampling, Gpus},
    hierarchy::View,
    log::Log,
    overhead::{self, Overhead},
    state::Keeper,
    tracker::Tracker,
    users::Users,
};
use crate::{
    base::clock::{monotonic_ns, wall_at},
    model::{
        job::{Job, JobStats, Lease, attribute},
        point::{Origin, Point},
        snapshot::Snapshot,
        source::Source,
        tables::{BLOCK, Own},
    },
    probes::{Cgroup, Probes},
    resolve::Resolver,
};

/// What of the configuration matters here.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Slots kept ready for new cgroups.
    pub spare_slots: usize,
    /// Whether each step is a series of its own.
    pub steps: bool,
    /// Managers whose jobs are the rest of the node's.
    pub ignored: Vec<String>,
    /// What the probes may cost.
    pub overhead: overhead::Settings,
    /// How GPUs are sampled.
    pub gpus: sampling::Settings,
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
    probes: Probes,
    view: View,
    resolver: Arc<Resolver>,
    tracker: Tracker,
    details: BTreeMap<Job, Details>,
    gpus: Gpus,
    /// Cgroups of jobs that have, or had when they were removed, no entry in the kernel's table: their
    /// removal is not told.
    unplaced: BTreeMap<Cgroup, PathBuf>,
    /// Leases that have ended and whose slots are not free yet.
    ending: BTreeSet<Lease>,
    /// Those of them whose slots are still to be ended, and in whose favour.
    to_end: VecDeque<(Lease, Lease)>,
    /// Whether slots that could be given are still to be given, or made ready.
    is_behind: bool,
    /// Whether it was said that there are more jobs than slots.
    is_short: bool,
    /// Jobs found at the start that no slot was free for, until that is reported.
    unserved: u64,
    users: Users,
    overhead: Overhead,
    settings: Settings,
    previous: Snapshot,
    lost_events: u64,
    /// Where the next agent looks, where the programs outlive this one.
    keeper: Option<Keeper>,
}

impl Node {
    /// A node that is traced from now on: the jobs that are there are found, what they did so far is not
    /// counted.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn start(
        probes: Probes,
        view: View,
        resolver: Resolver,
        settings: Settings,
        log: &Log,
    ) -> Result<Self> {
        let mut node = Self::new(probes, view, resolver, settings, log)?;
        // Before any job has a slot: all that is in theirs from now on is told of.
        node.previous = node.read()?;
        node.lost_events = node.count_lost_events();
        node.care_for(care::START_MOST, log)?;
        let told = node.tracker.wanting();
        node.find_existing(log)?;
        node.care_for(care::START_MOST, log)?;
        // The kernel counted none of them: they were made before it was asked to.
        let wanting = node.tracker.wanting();
        node.unserved = wanting.iter().filter(|job| !told.contains(job)).count() as u64;
        Ok(node)
    }

    fn new(
        probes: Probes,
        view: View,
        resolver: Resolver,
        settings: Settings,
        log: &Log,
    ) -> Result<Self> {
        let resolver = Arc::new(resolver);
        let (sampling, steps) = (settings.gpus.clone(), settings.steps);
        Ok(Self {
            overhead: Overhead::new(settings.overhead, &probes),
            gpus: Gpus::start(sampling, &resolver, steps, &settings.ignored, log),
            probes,
            view,
            resolver,
            tracker: Tracker::default(),
            details: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            ending: BTreeSet::new(),
            to_end: VecDeque::new(),
            is_behind: false,
            is_short: false,
            unserved: 0,
            users: Users::start()?,
            settings,
            previous: Snapshot::default(),
            lost_events: 0,
            keeper: None,
        })
    }

    /// Takes over other settings.
    pub fn set(&mut self, resolver: Resolver, settings: Settings, log: &Log) {
        self.resolver = Arc::new(resolver);
        let (sampling, steps) = (settings.gpus.clone(), settings.steps);
        let (resolver, ignored) = (&self.resolver, &settings.ignored);
        self.gpus.set(sampling, resolver, steps, ignored, monotonic_ns(), log);
        self.overhead.set(settings.overhead);
        self.settings = settings;
    }

    /// The probes.
    pub fn probes(&mut self) -> &mut Probes {
        &mut self.probes
    }

    /// Readable when cgroups were made or removed.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn events_fd(&self) -> io::Result<OwnedFd> {
        self.probes.events_fd()
    }

    /// Takes in what happened to cgroups and programs.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn take_events(&mut self, log: &Log) -> Result<()> {
        if self.handle_events(log) { self.care(log) } else { Ok(()) }
    }

    fn find_existing(&mut self, log: &Log) -> Result<()> {
        for (cgroup, path) in self.view.walk()? {
            // One that has a lease was made meanwhile: its event is on its way.
            if !self.tracker.knows(cgroup) && self.probes.charged_for(cgroup).is_none() {
                self.made(Arrival::found(cgroup, path), log);
            }
        }
        Ok(())
    }

    /// A snapshot with the jobs' files.
    fn read(&mut self) -> Result<Snapshot> {
        self.reclaim()?;
        let mut snapshot = self.probes.snapshot()?.unwrap_or_default();
        for (job, tracked) in self.tracker.jobs() {
            if let (Some(lease), Some(details)) = (tracked.lease, self.details.get_mut(job))
                && let Some(groups) = snapshot.slots.get_mut(&lease)
            {
                details.read(|| self.view.places(&tracked.root), groups);
            }
        }
        Ok(snapshot)
    }

    /// Ends an interval, whose points are stamped `stamp_ns`.
    ///
    /// # Errors
    /// When the maps cannot be read; the next tick then covers this one's time.
    pub fn tick(&mut self, origin: &Origin, stamp_ns: u64, log: &Log) -> Result<Measured> {
        self.handle_events(log);
        self.find_removed();
        self.ask_again(log);
        self.find_users();
        let snapshot = self.read()?;
        let mut interval = snapshot.since(&self.previous);
        self.previous = snapshot;
        let now_ns = self.previous.monotonic_ns;
        self.look_at_gpus(log)?;
        self.add_gpus(&mut interval, log);
        self.overhead.tick(&mut interval, now_ns, &mut self.probes, log);
        let mut jobs = attribute(&interval, self.tracker.owners());
        self.forget_unseen(&mut jobs);
        for (_, job) in self.tracker.ended() {
            self.note_ended(&job);
        }
        for stats in &jobs {
            if let Some(details) = self.details.get_mut(&stats.job) {
                details.add(&stats.groups);
            }
        }
        let facts = self.due_infos(origin, stamp_ns);
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
        let (previous, probes) = (&self.previous, &self.probes);
        self.tracker
            .forget_owners(|lease| previous.slots.contains_key(&lease) || probes.is_leased(lease));
        self.release_old(log);
        self.care(log)?;
        self.tell_shortage(log);
        if self.count_lost_events() > self.lost_events {
            self.lost_events = self.count_lost_events();
            log.warning("events of cgroups were lost, looking at all of them");
            self.look_again(log)?;
        }
        let live = self.tracker.jobs().filter(|(_, job)| job.ended_ns.is_none()).count();
        Ok(Measured { jobs, facts, live, span_ns: interval.span_ns })
    }

    /// The `job_info` that are due. Of a job that was let go before its last values were read, not before
    /// they are: they belong to the totals at its end.
    fn due_infos(&mut self, origin: &Origin, stamp_ns: u64) -> Vec<Point> {
        let (tracker, probes) = (&self.tracker, &self.probes);
        let unread = |(lease, job): (&Lease, &Job)| {
            (tracker.job(job).is_none() && probes.is_leased(*lease)).then(|| job.clone())
        };
        let unread: BTreeSet<Job> = tracker.owners().iter().filter_map(unread).collect();
        let ready = self.details.iter_mut().filter(|(job, _)| !unread.contains(*job));
        let due = ready.filter_map(|(job, details)| details.due_info(origin, job, stamp_ns));
        due.collect()
    }

    /// Of jobs that ended before all programs were attached, nothing is known of what they ran.
    fn forget_unseen(&self, jobs: &mut [JobStats]) {
        let since_ns = self.probes.since_ns();
        for stats in jobs {
            let ended_ns = self.tracker.job(&stats.job).and_then(|tracked| tracked.ended_ns);
            if ended_ns.is_some_and(|ended_ns| ended_ns <= since_ns) {
                stats.groups.retain(|group| group.is(&BLOCK));
            }
        }
    }

    /// Tells the details that the job has ended, where it has.
    fn note_ended(&mut self, job: &Job) {
        let ended_ns = self.tracker.job(job).and_then(|tracked| tracked.ended_ns);
        if let (Some(ended_ns), Some(details)) = (ended_ns, self.details.get_mut(job)) {
            details.set_ended(Some(wall_at(ended_ns)));
        }
    }

    /// Cgroups without an entry are not told of when they are removed.
    fn find_removed(&mut self) {
        let gone = |(cgroup, path): &(&Cgroup, &PathBuf)| !self.view.exists(**cgroup, path);
        let gone: Vec<_> = self.unplaced.iter().filter(gone).map(|(cgroup, _)| *cgroup).collect();
        for cgroup in gone {
            self.unplaced.remove(&cgroup);
            self.tracker.removed(cgroup, monotonic_ns());
        }
    }

    /// Events were lost: compares what is known with what is there.
    fn look_again(&mut self, log: &Log) -> Result<()> {
        let there: BTreeMap<Cgroup, PathBuf> = self.view.walk()?.into_iter().collect();
        for cgroup in self.tracker.cgroups() {
            if !there.contains_key(&cgroup) {
                self.probes.displace(cgroup);
                self.tracker.removed(cgroup, monotonic_ns());
            }
        }
        self.find_existing(log)?;
        self.care(log)?;
        // Programs that were executed may be among what was not told.
        let jobs: Vec<Job> = self.tracker.jobs().map(|(job, _)| job.clone()).collect();
        jobs.iter().for_each(|job| self.learn_from_tasks(job, log));
        Ok(())
    }

    fn count_lost_events(&self) -> u64 {
        let lost = self.previous.own.iter().filter_map(|own| own.number(Own::dropped_cgroup_event));
        lost.sum()
    }
}
