//! Which software jobs run, where the site asks for it: what the kernel saw of a job's leases, named by a thread, told of
//! the job. Nobody here waits for a name, but at the agent's end.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;

use super::{jobs::Jobs, slots::Slots};
use crate::{
    census::{Namer, Site},
    commands::agent::software::SoftwareSettings,
    model::{
        job::Job,
        lease::Lease,
        seen::{Consent, Seen},
        software_point::UserTag,
    },
    probes::Census,
};

/// How long names are waited for at the agent's end: a folder of modules may be on a file system that hangs.
const PATIENCE: Duration = Duration::from_secs(3);
/// Processes of a job that are looked at, where it is older than the programs.
const MOST_PROCESSES: usize = 64;
/// Executions of what was seen before are counted this often: for each program a look into a map.
const COUNTED_EVERY_NS: u64 = 60_000_000_000;

/// What was seen on its way to the jobs.
pub struct Watch {
    namer: Namer,
    /// By what the site says it names.
    site: Site,
    /// Tag `user` of the lines.
    user: UserTag,
    /// With what each job was told, by the first of its leases: its consent, and whether it had ended.
    told: BTreeMap<Lease, (Consent, bool)>,
    /// When the executions of all were counted last, CLOCK_MONOTONIC.
    counted_ns: u64,
}

impl Watch {
    /// Starts the thread that names.
    ///
    /// # Errors
    /// When a pattern of the site's is no regular expression, or there can be no thread.
    pub fn new(settings: SoftwareSettings) -> Result<Self> {
        let SoftwareSettings { options, user } = settings;
        let site = options.site.clone();
        Ok(Self { namer: Namer::new(options)?, site, user, told: BTreeMap::new(), counted_ns: 0 })
    }

    /// Names by other settings from now on, what was seen before too. Whether the site's are others.
    ///
    /// # Errors
    /// As [`Watch::new`]; the settings before stay.
    pub(super) fn set(&mut self, settings: SoftwareSettings) -> Result<bool> {
        let next = Self { counted_ns: self.counted_ns, ..Self::new(settings)? };
        let before = std::mem::replace(self, next);
        Ok(before.site != self.site)
    }

    /// Tag `user` of the lines.
    pub(super) fn user(&self) -> &UserTag {
        &self.user
    }

    /// Has named what is new of jobs that have ended, so that it is by the next interval.
    pub(super) fn tell_ended(&mut self, jobs: &Jobs, slots: &mut Slots) {
        self.tell(jobs, slots, |is_new, has_ended| is_new && has_ended);
    }

    /// Has named what is new of any job, and every now and then all that was executed.
    pub(super) fn tell_new(&mut self, now_ns: u64, jobs: &Jobs, slots: &mut Slots) {
        let is_all = now_ns.saturating_sub(self.counted_ns) >= COUNTED_EVERY_NS;
        if is_all {
            self.counted_ns = now_ns;
        }
        self.tell(jobs, slots, |is_new, _| is_all || is_new);
    }

    /// The same of all, for the last time, and waits for the names for a while.
    pub(super) fn settle(&mut self, jobs: &Jobs, slots: &mut Slots) {
        self.tell(jobs, slots, |_, _| true);
        self.namer.settle(PATIENCE);
    }

    /// Has named what was seen of those jobs that `is_due` says, by whether there is something new and they have ended.
    /// Something is new, too, where its environment tells otherwise now, or it has ended: of what it executes again nobody
    /// is told.
    fn tell(&mut self, jobs: &Jobs, slots: &mut Slots, is_due: impl Fn(bool, bool) -> bool) {
        let Some(census) = &mut slots.probes.census else { return };
        census.drain();
        for (job, leases) in by_job(jobs, census) {
            let consent = jobs.details.get(job).map_or(Consent::Unknown, |details| details.consent);
            let with = (consent, has_ended(job, jobs));
            let is_new = leases.is_new || self.told.get(&leases.key) != Some(&with);
            if !is_due(is_new, with.1) {
                continue;
            }
            self.told.insert(leases.key, with);
            let of_leases = leases.all.iter();
            let mut all = of_leases
                .filter_map(|lease| census.seen(*lease, slots.probes.slots.slot_of(*lease)));
            let Some(mut seen) = all.next() else { continue };
            all.for_each(|other| seen.add(other));
            seen.consent = consent;
            if consent == Consent::Refused {
                seen = Seen { consent, ..Seen::default() };
                leases.all.iter().for_each(|lease| census.silence(*lease));
            }
            self.namer.tell(leases.key, seen);
        }
    }

    /// Gives the jobs what was named since the last time, and lets go of what was seen of those of which nothing comes any
    /// more.
    pub(super) fn collect(&mut self, jobs: &mut Jobs, slots: &mut Slots) {
        let Some(census) = &mut slots.probes.census else { return };
        for (key, software) in self.namer.take() {
            let job = jobs.tracker.owner(key);
            if let Some(details) = job.and_then(|job| jobs.details.get_mut(job)) {
                details.set_software(Some(software));
            }
        }
        let held = &slots.probes.slots;
        let is_over = |(job, leases): &(&Job, Leases)| {
            let is_read = leases.all.iter().all(|lease| !held.is_leased(*lease));
            is_read && !leases.is_new && has_ended(job, jobs) && self.namer.has_settled(leases.key)
        };
        let over = by_job(jobs, census).into_iter().filter(is_over);
        let over: Vec<(Job, Leases)> = over.map(|(job, leases)| (job.clone(), leases)).collect();
        for (job, leases) in over {
            if let Some(details) = jobs.details.get_mut(&job) {
                details.close_software();
            }
            self.told.remove(&leases.key);
            self.namer.forget(leases.key);
            leases.all.into_iter().for_each(|lease| census.forget(lease));
        }
        // Those of the rest of the node; one that is leased may be a job's that nobody was told of yet.
        let nobodys = |(lease, _): &(Lease, bool)| {
            jobs.tracker.owner(*lease).is_none() && !held.is_leased(*lease)
        };
        let nobodys: Vec<_> = census.leases().filter(nobodys).collect();
        nobodys.into_iter().for_each(|(lease, _)| census.forget(lease));
    }
}

/// The leases of one job of which something was seen.
struct Leases {
    /// The first of them, by which the job is named.
    key: Lease,
    all: Vec<Lease>,
    /// Whether something new was seen of any.
    is_new: bool,
}

/// What `census` knows of each job; what is charged apart is nobody's yet.
fn by_job<'a>(jobs: &'a Jobs, census: &Census) -> BTreeMap<&'a Job, Leases> {
    let mut by_job = BTreeMap::<&Job, Leases>::new();
    for (lease, is_new) in census.leases() {
        let Some(job) = jobs.tracker.owner(lease) else { continue };
        if jobs.tracker.job(job).is_some_and(|tracked| tracked.apart.contains(&lease)) {
            continue;
        }
        let leases = by_job.entry(job);
        let leases = leases.or_insert(Leases { key: lease, all: Vec::new(), is_new: false });
        leases.all.push(lease);
        leases.is_new |= is_new;
    }
    by_job
}

fn has_ended(job: &Job, jobs: &Jobs) -> bool {
    jobs.tracker.job(job).is_none_or(|tracked| tracked.ended_ns.is_some())
}

/// `job`, whose lease is new or was there before these programs: what its processes have mapped now is its own.
pub(super) fn begin_older(job: &Job, jobs: &Jobs, slots: &mut Slots) {
    let Some(census) = &mut slots.probes.census else { return };
    let tracked = jobs.tracker.job(job).filter(|tracked| tracked.ended_ns.is_none());
    let Some((tracked, lease)) = tracked.and_then(|of| Some((of, of.lease?))) else { return };
    let pids: Vec<u32> = jobs.view.some_pids(&tracked.root, MOST_PROCESSES).into_iter().collect();
    census.begin_older(lease, &pids);
}
