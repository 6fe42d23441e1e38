//! The node's jobs as they come and go: probes, cgroups and files brought together, read at each tick.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::Result;

use super::{
    details::{Details, read_start_wall_ns},
    hierarchy::View,
    log::Log,
    overhead::{self, Overhead},
    state::{Entry, Keeper, KnownJob, State},
    tracker::{Action, Owner, Tracked, Tracker},
    users::Users,
};
use crate::{
    clock::{monotonic_ns, wall_ns},
    model::{
        info::JobInfo,
        job::{Job, JobStats, attribute},
        points::{Origin, Point},
        snapshot::Snapshot,
        source::Source,
    },
    probes::{Cgroup, Event, Options, Probes},
    resolve::{Answer, Resolver, process},
};

/// A job that has ended keeps its slot this long, for block requests that complete late; less where slots
/// are short.
const LINGER_NS: u64 = 120_000_000_000;

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
    resolver: Resolver,
    tracker: Tracker,
    details: BTreeMap<Job, Details>,
    /// Cgroups of jobs that have no entry in the kernel's table: their removal is not told.
    unplaced: BTreeMap<Cgroup, PathBuf>,
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
        let mut node = Self::new(probes, view, resolver, settings)?;
        node.care(log)?;
        node.find_existing(log)?;
        node.previous = node.read()?;
        node.lost_events = node.count_lost_events();
        Ok(node)
    }

    fn new(probes: Probes, view: View, resolver: Resolver, settings: Settings) -> Result<Self> {
        Ok(Self {
            overhead: Overhead::new(settings.overhead, &probes),
            probes,
            view,
            resolver,
            tracker: Tracker::default(),
            details: BTreeMap::new(),
            unplaced: BTreeMap::new(),
            users: Users::start()?,
            settings,
            previous: Snapshot::default(),
            lost_events: 0,
            keeper: None,
        })
    }

    /// A node whose programs ran on since an agent before this one reported `state`: the first interval
    /// covers all that came since.
    ///
    /// # Errors
    /// When the cgroups or the maps cannot be read.
    pub fn resume(
        probes: Probes,
        view: View,
        resolver: Resolver,
        settings: Settings,
        (state, journal): (State, Vec<Entry>),
        keeper: Keeper,
        log: &Log,
    ) -> Result<Self> {
        let mut node = Self::new(probes, view, resolver, settings)?;
        // From the first event on: the agent after this one may have to know.
        node.keeper = Some(keeper);
        let now_ns = monotonic_ns();
        for known in state.jobs {
            node.tracker.resume(&known.job, &known.names, known.lease, known.root, now_ns);
            let details = Details::resumed(known.info, known.uid, known.ended, known.totals);
            node.details.insert(known.job, details);
        }
        for (lease, job) in &state.owners {
            node.tracker.resume_owner(*lease, job);
        }
        for entry in journal {
            match entry {
                Entry::Owner(lease, job, root) => {
                    if node.tracker.job(&job).is_none() {
                        node.tracker.resume(&job, &[], None, root, now_ns);
                        let details = Details::resumed(JobInfo::default(), None, None, Vec::new());
                        node.details.insert(job.clone(), details);
                    }
                    node.tracker.resume_owner(lease, &job);
                }
                Entry::Renamed(from, to) => {
                    node.tracker.rename(&from, &to);
                    if let Some(details) = node.details.remove(&from) {
                        node.details.insert(to, details);
                    }
                }
                Entry::Closed(lease, groups) => node.probes.close(lease, groups),
            }
        }
        node.previous = state.reported;
        // This process's own clocks begin anew.
        for own in &mut node.previous.own {
            own.set("cpu_ns", 0);
            own.set("drain_ns", 0);
        }
        node.lost_events = node.count_lost_events();
        node.take_events(log)?;
        node.find_again(log)?;
        node.care(log)?;
        Ok(node)
    }

    /// Matches the cgroups that are there with the leases that are in use.
    fn find_again(&mut self, log: &Log) -> Result<()> {
        // Before the walk: what is made during it is there.
        let entered = self.probes.entered();
        let there = self.view.walk()?;
        for (cgroup, path) in &there {
            if self.tracker.knows(*cgroup) {
                continue;
            }
            let lease = self.probes.charged_for(*cgroup);
            let fresh = lease.is_some_and(|lease| !self.tracker.goes_on_in(lease));
            if let (Some(lease), true) = (lease, fresh) {
                self.probes.take_spare(lease);
            }
            self.made(*cgroup, lease, fresh, path, 0, log);
        }
        for lease in self.probes.leases() {
            if !self.tracker.goes_on_in(lease) {
                let owner = self.tracker.owner(lease).and_then(|job| self.tracker.job(job));
                let heir = owner.and_then(|tracked| tracked.lease).unwrap_or(0);
                self.apply(vec![Action::End(lease, heir)], log);
            }
        }
        let there: BTreeSet<Cgroup> = there.into_iter().map(|(cgroup, _)| cgroup).collect();
        for cgroup in entered.into_iter().filter(|cgroup| !there.contains(cgroup)) {
            self.probes.was_removed(cgroup);
        }
        Ok(())
    }

    /// From now on, what the next agent has to know is kept.
    pub fn keep_with(&mut self, keeper: Keeper) {
        self.keeper = Some(keeper);
    }

    /// Commits what was measured as reported up to `stamp_ns`, in the spool's `files`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, files: Option<&str>, stamp_ns: u64, options: &Options) -> Result<()> {
        let Some(keeper) = &mut self.keeper else { return Ok(()) };
        let carried = self.probes.carried(self.view.layout(), options)?;
        let known = |(job, tracked): (&Job, &Tracked)| {
            let details = self.details.get(job)?;
            Some(KnownJob {
                job: job.clone(),
                names: self.tracker.names(job),
                lease: tracked.lease,
                root: tracked.root.clone(),
                info: details.info.clone(),
                uid: details.uid,
                ended: details.end(),
                totals: details.totals().to_vec(),
            })
        };
        let jobs = self.tracker.jobs().filter_map(known).collect();
        let owners = self.tracker.owners().iter().map(|(lease, job)| (*lease, job.clone()));
        let reported = self.previous.clone();
        let owners = owners.collect();
        keeper.commit(State::new(files, stamp_ns, reported, carried, jobs, owners))
    }

    /// Takes over other settings.
    pub fn set(&mut self, resolver: Resolver, settings: Settings) {
        self.resolver = resolver;
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
        let events = self.probes.events();
        if events.is_empty() {
            return Ok(());
        }
        let is_cgroup = |event: &&Event| !matches!(event, Event::Executed { .. });
        self.overhead.saw_cgroups(events.iter().filter(is_cgroup).count() as u64);
        for event in events {
            match event {
                Event::Made { cgroup, lease, fresh, path } => {
                    let path = self.view.seen(cgroup, &path);
                    self.made(cgroup, lease, fresh, &path, wall_ns(), log);
                }
                Event::Removed { cgroup } => self.tracker.removed(cgroup, monotonic_ns()),
                Event::Executed { lease, pid, uid } => self.executed(lease, pid, uid, log),
            }
        }
        self.care(log)
    }

    /// Whether slots wait to be freed: call [`Self::care`] in a moment.
    pub fn has_ended(&self) -> bool {
        self.probes.has_ended()
    }

    /// Frees what can be freed, and has slots ready.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn care(&mut self, log: &Log) -> Result<()> {
        self.reclaim()?;
        let wanted = self.settings.spare_slots;
        let ready = self.probes.keep_spare(wanted)?;
        if ready < wanted {
            // Those that wait for late values make room, the oldest first.
            for (_, job) in self.tracker.ended().into_iter().take(wanted - ready) {
                self.release(&job, log);
            }
        }
        for job in self.tracker.wanting() {
            let Ok(lease) = self.probes.lease() else { break };
            let actions = self.tracker.grant(&job, lease);
            self.apply(actions, log);
        }
        Ok(())
    }

    fn reclaim(&mut self) -> Result<()> {
        let keeper = &mut self.keeper;
        self.probes.reclaim(Instant::now(), |lease, groups| match keeper {
            Some(keeper) => keeper.note(&Entry::Closed(lease, groups.to_vec())),
            None => Ok(()),
        })
    }

    fn find_existing(&mut self, log: &Log) -> Result<()> {
        for (cgroup, path) in self.view.walk()? {
            // One that has a lease was made meanwhile: its event is on its way.
            if !self.tracker.knows(cgroup) && self.probes.charged_for(cgroup).is_none() {
                self.made(cgroup, None, false, &path, 0, log);
            }
        }
        self.care(log)
    }

    fn made(
        &mut self,
        cgroup: Cgroup,
        lease: Option<u32>,
        fresh: bool,
        path: &Path,
        start_wall_ns: u64,
        log: &Log,
    ) {
        let text = path.to_string_lossy();
        let answer = self.resolver.path(&text);
        let is_wanted = answer.is_job() && !self.settings.ignored.contains(&answer.manager);
        let root = answer.root_of(&text).filter(|_| is_wanted).map(PathBuf::from);
        let owner = root.map(|root| Owner { job: self.name(&answer), root });
        let is_job = owner.is_some();
        let actions = self.tracker.made(cgroup, lease, fresh, owner, monotonic_ns());
        self.apply(actions, log);
        if !is_job {
            return;
        }
        if self.probes.charged_for(cgroup).is_none() {
            self.unplaced.insert(cgroup, path.to_owned());
        }
        let Some(job) = self.tracker.job_of(cgroup).cloned() else { return };
        let Some(tracked) = self.tracker.job(&job) else { return };
        let root = &tracked.root;
        match self.details.get_mut(&job) {
            Some(details) => details.set_ended(None),
            None => {
                let start = match start_wall_ns {
                    0 => read_start_wall_ns(self.view.pids(root)).unwrap_or_else(wall_ns),
                    start => start,
                };
                self.details.insert(job, Details::new(&answer, start));
            }
        }
    }

    /// What the path alone names the job.
    fn name(&self, answer: &Answer) -> Job {
        let step = answer.step.clone().filter(|_| self.settings.steps).unwrap_or_default();
        let user = answer.user.clone().unwrap_or_default();
        Job { job: answer.job.clone(), manager: answer.manager.clone(), user, step }
    }

    fn executed(&mut self, lease: u32, pid: u32, uid: u32, log: &Log) {
        let Some(job) = self.tracker.owner(lease).cloned() else { return };
        // Root's programs in a scheduler's job are the scheduler's own, before it becomes the user.
        let Ok(text) = process::read_cgroup(pid) else {
            if uid != 0 {
                self.learn_user(&job, uid);
            }
            return;
        };
        let answer = self.resolver.lines(&text);
        if uid != 0 {
            self.learn_user(&job, uid);
        }
        let facts = process::read_environment(&answer, pid);
        let is_complete = facts.job.is_some() || uid != 0;
        if let Some(details) = self.details.get_mut(&job) {
            details.learn(&facts);
        }
        let number = facts.job.filter(|_| answer.sluid.as_ref() == Some(&job.job));
        let job = match number {
            Some(number) => self.rename(&job, Job { job: number, ..job.clone() }),
            None => job,
        };
        if is_complete && let Some(action) = self.tracker.know(&job) {
            self.apply(vec![action], log);
        }
    }

    fn learn_user(&mut self, job: &Job, uid: u32) {
        if let Some(details) = self.details.get_mut(job) {
            details.uid = details.uid.or(Some(uid));
        }
    }

    /// Gives `job` another name and tells which it has then.
    fn rename(&mut self, job: &Job, to: Job) -> Job {
        if !self.tracker.rename(job, &to) {
            return job.clone();
        }
        if let Some(keeper) = &mut self.keeper {
            // Lost, the next agent learns the name again.
            let _ = keeper.note(&Entry::Renamed(job.clone(), to.clone()));
        }
        if let Some(details) = self.details.remove(job) {
            self.details.insert(to.clone(), details);
        }
        to
    }

    /// Looks for the owners of jobs whose user is unknown.
    fn find_users(&mut self) {
        let nameless: Vec<_> = self
            .tracker
            .jobs()
            .filter(|(job, _)| job.user.is_empty())
            .map(|(job, tracked)| (job.clone(), tracked.root.clone()))
            .collect();
        for (job, root) in nameless {
            let Some(details) = self.details.get_mut(&job) else { continue };
            if details.uid.is_none() {
                let mut uids = self.view.pids(&root).into_iter().filter_map(process::read_uid);
                details.uid = uids.find(|uid| *uid != 0);
            }
            let Some(uid) = details.uid else { continue };
            let Some(user) = self.users.name(uid) else { continue };
            (details.info.user, details.info.uid) = (user.clone(), uid);
            self.rename(&job, Job { user, ..job.clone() });
        }
    }

    fn apply(&mut self, actions: Vec<Action>, log: &Log) {
        for action in actions {
            if let (Action::End(lease, 1..) | Action::Keep(lease, _), Some(keeper)) =
                (&action, &mut self.keeper)
                && let Some(job) = self.tracker.owner(*lease)
                && let Some(tracked) = self.tracker.job(job)
                && let Err(error) =
                    keeper.note(&Entry::Owner(*lease, job.clone(), tracked.root.clone()))
            {
                log.warning(format_args!("{error:#}"));
            }
            let done = match action {
                Action::Place(cgroup, lease) => {
                    let placed = self.probes.place(cgroup, lease);
                    if placed.is_ok() {
                        self.unplaced.remove(&cgroup);
                    }
                    placed
                }
                Action::End(lease, heir) => self.probes.end(lease, heir),
                Action::Keep(lease, execs) => {
                    self.probes.keep(lease, execs);
                    Ok(())
                }
            };
            if let Err(error) = done {
                log.warning(format_args!("{error:#}"));
            }
        }
    }

    fn release(&mut self, job: &Job, log: &Log) {
        let action = self.tracker.release(job);
        self.details.remove(job);
        self.apply(action.into_iter().collect(), log);
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
        self.take_events(log)?;
        self.find_removed();
        self.find_users();
        let snapshot = self.read()?;
        let mut interval = snapshot.since(&self.previous);
        self.previous = snapshot;
        let now_ns = self.previous.monotonic_ns;
        self.overhead.tick(&mut interval, now_ns, &mut self.probes, log);
        let mut jobs = attribute(&interval, self.tracker.owners());
        self.note_ended();
        for stats in &jobs {
            if let Some(details) = self.details.get_mut(&stats.job) {
                details.add(&stats.groups);
            }
        }
        let facts = self.details.iter_mut();
        let facts: Vec<_> =
            facts.filter_map(|(job, details)| details.due_info(origin, job, stamp_ns)).collect();
        match jobs.iter_mut().find(|stats| stats.job == Job::system()) {
            Some(system) => system.groups.extend(interval.own),
            None => jobs.push(JobStats { job: Job::system(), groups: interval.own }),
        }
        let (previous, probes) = (&self.previous, &self.probes);
        self.tracker
            .forget_owners(|lease| previous.slots.contains_key(&lease) || probes.is_leased(lease));
        self.release_old(log);
        if self.count_lost_events() > self.lost_events {
            self.lost_events = self.count_lost_events();
            log.warning("events of cgroups were lost, looking at all of them");
            self.look_again(log)?;
        }
        let live = self.tracker.jobs().filter(|(_, job)| job.ended_ns.is_none()).count();
        Ok(Measured { jobs, facts, live, span_ns: interval.span_ns })
    }

    /// Tells the details which jobs have ended.
    fn note_ended(&mut self) {
        let (now_ns, wall_ns) = (monotonic_ns(), wall_ns());
        for (job, tracked) in self.tracker.jobs() {
            if let (Some(ended_ns), Some(details)) = (tracked.ended_ns, self.details.get_mut(job)) {
                details.set_ended(Some(wall_ns.saturating_sub(now_ns.saturating_sub(ended_ns))));
            }
        }
    }

    fn release_old(&mut self, log: &Log) {
        let now_ns = monotonic_ns();
        for (ended_ns, job) in self.tracker.ended() {
            if now_ns.saturating_sub(ended_ns) > LINGER_NS {
                self.release(&job, log);
            }
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
        self.find_existing(log)
    }

    fn count_lost_events(&self) -> u64 {
        let lost = self.previous.own.iter().filter_map(|own| own.number("dropped_cgroup_event"));
        lost.sum()
    }
}
