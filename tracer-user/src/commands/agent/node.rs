//! The node as it is read at each tick: jobs, their slots, GPUs and what the probes cost, brought together.

use std::{collections::VecDeque, io, os::fd::OwnedFd, sync::Arc, time::Duration};

use anyhow::Result;

mod arrivals;
mod begin;
mod belief;
mod care;
mod dive;
mod due;
mod gpus;
mod jobs;
mod learn;
mod let_go;
mod lives;
mod net_devices;
mod resume;
mod slots;
mod software;

use care::Care;
use jobs::Jobs;
use net_devices::NetDevices;
use slots::Slots;
pub use software::Watch;

use super::{
    gpus::{GpuSettings, Gpus},
    log::Log,
    naming::Naming,
    overhead::{Overhead, OverheadSettings},
    query::Ask,
    records::{Due, Unsaved},
    software::SoftwareSettings,
    state::{AgentState, JournalEntry, Keeper},
};
use crate::{
    base::clock::monotonic_ns,
    model::{
        group::{Group, Value},
        job::{Job, JobStats, Losses, attribute, join_lives},
        point::{Origin, Point},
        snapshot::Snapshot,
        source::Source,
        tables::{BLOCK, Own, SELF},
    },
    probes::{Census, Options, Wake},
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
    /// Whether owners may have the file operations of their jobs counted.
    pub owners_count_io: bool,
    /// Time between two records of a running job; `None`: no records.
    pub records_every: Option<Duration>,
}

/// An interval of the whole node.
#[derive(Default)]
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
    records_every: Option<Duration>,
    /// Where it is asked for, what sees which software jobs run.
    watch: Option<Watch>,
    net_devices: NetDevices,
    /// Whether the interval to come is the last.
    is_last: bool,
    /// What was reported last.
    previous: Snapshot,
    /// Events of cgroups that were lost up to then.
    lost_events: u64,
    /// Jobs found at the start that no slot was free for, until that is reported.
    unserved: u64,
}

impl Node {
    /// From now on, what the next agent has to know is kept.
    pub fn keep_with(&mut self, keeper: Keeper) {
        self.slots.keeper = Some(keeper);
    }

    /// From now on, what the programs of the census see is told of the jobs.
    pub fn watch_with(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Where software is watched, has it named by `settings`. Whether the site's are others than before.
    ///
    /// # Errors
    /// When they cannot be used; those before stay.
    pub fn set_software(&mut self, settings: Option<SoftwareSettings>) -> Result<bool> {
        match (&mut self.watch, settings) {
            (Some(watch), Some(settings)) => watch.set(settings),
            _ => Ok(false),
        }
    }

    /// What tells that the census has seen much.
    pub fn sightings(&self) -> Wake {
        Wake::of(self.slots.probes.census.as_ref())
    }

    /// Takes what the census has seen so far: its ring is of bounded size.
    pub fn take_sightings(&mut self) {
        self.slots.probes.census.iter_mut().for_each(Census::drain);
    }

    /// Commits what was measured as reported up to `stamp_ns`, in the spool's `files`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn commit(&mut self, files: Option<&str>, stamp_ns: u64, options: &Options) -> Result<()> {
        let Slots { keeper: Some(keeper), probes, .. } = &mut self.slots else { return Ok(()) };
        let carried = probes.carried(self.jobs.view.layout(), options)?;
        let owners = self.jobs.tracker.owners().map(|(lease, job)| (lease, job.clone()));
        let (reported, owners) = (self.previous.clone(), owners.collect());
        let jobs = self.jobs.known();
        keeper.commit(AgentState::new(files, stamp_ns, reported, carried, jobs, owners))?;
        for (job, path, peak_bytes) in self.jobs.pending_peaks() {
            // The interval is committed all the same: without this, a kill before the next one loses it.
            let _ = keeper.note(&JournalEntry::Peak(job, path, peak_bytes));
        }
        Ok(())
    }

    /// Takes over other settings.
    pub fn set(&mut self, settings: NodeSettings, log: &Log) {
        let NodeSettings { spare_slots, naming, overhead, gpus, owners_count_io, .. } = settings;
        self.gpus.set(gpus, &naming, monotonic_ns(), log);
        self.jobs.naming = naming;
        self.jobs.owners_count_io = owners_count_io;
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
        self.slots.probes.slots.events_fd()
    }

    /// Takes in what happened to cgroups and programs.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn take_events(&mut self, log: &Log) -> Result<()> {
        if !self.jobs.take_events(&mut self.slots, log) {
            return Ok(());
        }
        // What a job was given is its own from its begin on.
        if std::mem::take(&mut self.jobs.gpus_may_differ) {
            self.gpus.claim_for(&self.jobs);
            // Some may have ended, too.
            if let Some(watch) = &mut self.watch {
                watch.tell_ended(&self.jobs, &mut self.slots);
            }
        }
        self.care(log)
    }

    /// Frees what can be freed, and has slots ready.
    ///
    /// # Errors
    /// When a map cannot be read or written.
    pub fn care(&mut self, log: &Log) -> Result<()> {
        self.care.work(&mut self.jobs, &mut self.slots, log)
    }

    /// When to call [`Self::care`], if nothing happens before.
    pub fn care_after(&self) -> Option<Duration> {
        self.care.due_after(&self.slots)
    }

    /// Waits for the next reading of the GPUs.
    pub async fn gpu_reading(&self) {
        self.gpus.reading().await;
    }

    /// Looks at what the tasks of jobs with GPUs did up to now.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn look_at_gpus(&mut self, _: &Log) -> Result<()> {
        self.gpus.look_at_tasks(&self.jobs, &mut self.slots)
    }

    /// The last interval comes: nothing waits for a later one, but what the next agent goes on with.
    pub fn settle(&mut self) {
        self.gpus.settle_all();
        if let Some(watch) = &mut self.watch {
            watch.settle(&self.jobs, &mut self.slots);
        }
        self.is_last = self.slots.keeper.is_none();
    }

    /// A snapshot with the jobs' files and the node's network devices.
    fn read(&mut self) -> Result<Snapshot> {
        self.slots.reclaim()?;
        let mut snapshot = self.slots.probes.snapshot()?.unwrap_or_default();
        // What is not known to be anybody's yet is told when it is.
        for lease in self.jobs.tracker.apart() {
            match self.previous.slots.get(&lease) {
                Some(told) => drop(snapshot.slots.insert(lease, told.clone())),
                None => drop(snapshot.slots.remove(&lease)),
            }
        }
        // What a cgroup does for which there was no room is not its job's.
        let mut dropped = snapshot.own.iter().filter_map(|group| group.number(Own::dropped_cgroup));
        let is_counted = self.slots.probes.runs_switches() && dropped.all(|number| number == 0);
        // A task's last switch may be among the runs that were missed.
        let sees_ends = missed(&snapshot.own) == missed(&self.previous.own);
        self.jobs.read_files(&mut snapshot, is_counted, sees_ends);
        snapshot.own.extend(self.net_devices.read(snapshot.monotonic_ns));
        Ok(snapshot)
    }

    /// Ends an interval, whose points are stamped `stamp_ns`.
    ///
    /// # Errors
    /// When the maps cannot be read; the next tick then covers this one's time.
    pub fn tick(&mut self, origin: &Origin, stamp_ns: u64, log: &Log) -> Result<Measured> {
        self.jobs.take_events(&mut self.slots, log);
        self.jobs.ask_again(&mut self.slots, log);
        self.jobs.join_returned(self.is_last, &mut self.slots, log);
        self.jobs.find_users(&mut self.slots);
        if let Some(watch) = &mut self.watch {
            watch.tell_new(monotonic_ns(), &self.jobs, &mut self.slots);
        }
        let snapshot = self.read()?;
        let mut interval = snapshot.since(&self.previous);
        net_devices::leave_out_new(&mut interval.own, &self.previous.own);
        self.previous = snapshot;
        let now_ns = self.previous.monotonic_ns;
        self.look_at_gpus(log)?;
        self.gpus.add_to(&mut interval, &self.jobs, log);
        self.overhead.saw_cgroups(self.slots.take_cgroup_events());
        self.overhead.tick(&mut interval, now_ns, &mut self.slots.probes, log);
        let mut jobs =
            attribute(std::mem::take(&mut interval.slots), |lease| self.jobs.tracker.owner(lease));
        self.forget_unseen(&mut jobs);
        let losses = interval.own.iter().find(|own| own.is(&SELF)).map(losses).unwrap_or_default();
        self.jobs.add(&mut jobs, &losses, now_ns);
        let mut jobs = join_lives(jobs);
        if let Some(watch) = &mut self.watch {
            watch.collect(&mut self.jobs, &mut self.slots);
        }
        let (is_last, watch) = (self.is_last, self.watch.as_ref());
        let facts = self.jobs.due_infos(&self.slots, origin, stamp_ns, is_last, watch);
        let unserved = std::mem::take(&mut self.unserved);
        if let Some(own) = interval.own.iter_mut().find(|own| own.is(&SELF)) {
            own.set(
                Own::dropped_slot,
                own.number(Own::dropped_slot).map(|dropped| dropped + unserved),
            );
        }
        match jobs.iter_mut().find(|stats| stats.job == Job::system()) {
            Some(system) => system.groups.extend(interval.own),
            None => jobs.push(JobStats { job: Job::system(), groups: interval.own }),
        }
        let (previous, slots) = (&self.previous, &self.slots);
        let is_alive = |lease| previous.slots.contains_key(&lease) || slots.is_open(lease);
        self.jobs.tracker.forget_owners(is_alive);
        self.jobs.release_old(self.records_every.is_some(), &mut self.slots, log);
        self.care(log)?;
        self.care.tell_shortage(&self.jobs, &mut self.slots, log);
        if self.count_lost_events() > self.lost_events {
            self.lost_events = self.count_lost_events();
            log.warning("cgroup events were lost, rescanning all cgroups");
            self.jobs.look_again(&mut self.slots, log)?;
            self.care(log)?;
            self.jobs.learn_from_all(&mut self.slots, log);
        }
        Ok(Measured { jobs, facts, live: self.jobs.live(), span_ns: interval.span_ns })
    }

    /// Whose records are due, the oldest end first; where it `is_end` of the
    /// agent, those of all jobs that run now too. Gives also how many jobs will have none.
    pub fn due_records(&mut self, origin: &Origin, is_end: bool) -> (VecDeque<Due>, u64) {
        let Some(every) = self.records_every else { return Default::default() };
        self.jobs.due_records(&self.slots, origin, every.as_nanos() as u64, is_end)
    }

    /// Answers a question about the jobs that run.
    pub fn answer(&mut self, origin: &Origin, ask: Ask) {
        // Who asked may have gone.
        match ask {
            Ask::Heads(answer) => drop(answer.send(self.jobs.running_heads(origin))),
            Ask::Records(job, caller, answer) => {
                drop(answer.send(self.jobs.running_records(origin, &job, caller)));
            }
            Ask::Subject(job, caller, answer) => {
                drop(answer.send(self.jobs.subject(origin, &job, caller)));
            }
            Ask::Used(root, answer) => drop(answer.send(self.used(&root))),
        }
    }

    /// The record of `due`; `None` where the job has changed since.
    pub fn hand_over(&mut self, origin: &Origin, due: &Due) -> Option<Unsaved> {
        self.jobs.hand_over(origin, due)
    }

    /// Of jobs that ended before all programs were attached, nothing is known of what they ran.
    fn forget_unseen(&self, jobs: &mut [JobStats]) {
        let since_ns = self.slots.probes.since_ns();
        let ended = self.jobs.tracker.ended().into_iter();
        let unseen = ended.take_while(|(ended_ns, _)| *ended_ns <= since_ns);
        for (_, job) in unseen {
            let stats = jobs.iter_mut().find(|stats| stats.job == job);
            stats.into_iter().for_each(|stats| stats.groups.retain(|group| group.is(&BLOCK)));
        }
    }

    fn count_lost_events(&self) -> u64 {
        let own = self.previous.own.iter().filter(|own| own.is(&SELF));
        own.filter_map(|own| own.number(Own::dropped_cgroup_event)).sum()
    }
}

/// Runs of programs that did not come to pass, or counted nothing.
fn missed(own: &[Group]) -> u64 {
    let fields = [Own::bpf_missed, Own::dropped_no_bank];
    let own = own.iter().filter(|own| own.is(&SELF));
    own.flat_map(|own| fields.map(|field| own.number(field).unwrap_or(0))).sum()
}

/// What of the tracing's own values tells that something could not be counted.
fn losses(own: &Group) -> Losses {
    let (mut lost, mut shed) = (own.clone(), Vec::new());
    for (field, value) in own.measurement.fields.iter().zip(&mut lost.values) {
        let is_some = value.as_ref().is_some_and(|value| *value != Value::Number(0));
        let is_family = field.name != Own::shed_families.field().name;
        shed.extend(field.name.strip_prefix("shed_").filter(|_| is_some && is_family));
        let is_loss =
            field.name.starts_with("dropped_") || field.name == Own::bpf_missed.field().name;
        *value = value.take().filter(|_| is_some && is_loss);
    }
    let is_any = lost.values.iter().any(Option::is_some);
    Losses { own: Vec::from_iter(is_any.then_some(lost)), shed }
}
