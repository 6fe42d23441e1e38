//! Which software jobs run, where the site asks for it: what the kernel saw of each lease, named by a thread, told of the
//! job that the lease is charged for. Nobody here waits for a name, but at the agent's end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Result;

use super::{jobs::Jobs, slots::Slots};
use crate::{
    census::Namer,
    commands::agent::software::SoftwareSettings,
    model::{
        job::Job,
        lease::Lease,
        seen::{Consent, Seen},
        software::Software,
        software_point::UserTag,
    },
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
    /// Tag `user` of the lines.
    user: UserTag,
    /// What each lease was told with.
    consents: BTreeMap<Lease, Consent>,
    /// What each lease ran, by names.
    named: BTreeMap<Lease, Software>,
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
        let (consents, named) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { namer: Namer::new(options)?, user, consents, named, counted_ns: 0 })
    }

    /// Tag `user` of the lines.
    pub(super) fn user(&self) -> &UserTag {
        &self.user
    }

    /// Has named what is new of jobs that have ended: so that it is by the next interval.
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

    /// Has named what was seen of those leases that `is_due` says, by whether there is something new and their job has
    /// ended; and of those whose job's environment tells otherwise now.
    fn tell(&mut self, jobs: &Jobs, slots: &mut Slots, is_due: impl Fn(bool, bool) -> bool) {
        let probes = &mut slots.probes;
        let Some(census) = &mut probes.census else { return };
        census.drain();
        for (lease, is_new) in census.leases().collect::<Vec<_>>() {
            let slot = probes.slots.slot_of(lease);
            let Some(job) = jobs.tracker.owner(lease) else {
                // The rest of the node's; one that is leased may be a job's that nobody was told of yet.
                if slot.is_none() {
                    census.forget(lease);
                }
                continue;
            };
            let consent = jobs.details.get(job).map_or(Consent::Unknown, |details| details.consent);
            let has_ended = jobs.tracker.job(job).is_none_or(|tracked| tracked.ended_ns.is_some());
            let is_told = self.consents.get(&lease) == Some(&consent);
            if is_told && !is_due(is_new, has_ended) {
                continue;
            }
            let Some(seen) = census.seen(lease, slot) else { continue };
            self.consents.insert(lease, consent);
            let seen = match consent {
                Consent::Refused => Seen { consent, ..Seen::default() },
                Consent::Unknown | Consent::Given => Seen { consent, ..seen },
            };
            self.namer.tell(lease, seen);
        }
    }

    /// Whether somebody may tell yet whether names may be told of what `lease` ran.
    fn may_be_asked(&self, lease: Lease, jobs: &Jobs) -> bool {
        let owner = jobs.tracker.owner(lease).and_then(|job| jobs.tracker.job(job));
        let lives = owner.is_some_and(|tracked| tracked.ended_ns.is_none());
        lives && self.consents.get(&lease).is_none_or(Consent::is_unknown)
    }

    /// Gives the jobs what was named since the last time, and lets go of leases of which nothing comes any more.
    pub(super) fn collect(&mut self, jobs: &mut Jobs, slots: &mut Slots) {
        let Some(census) = &mut slots.probes.census else { return };
        let named = self.namer.take();
        let fresh: BTreeSet<Lease> = named.keys().copied().collect();
        self.named.extend(named);
        let leases = census.leases().collect::<Vec<_>>();
        let gone = leases.into_iter().filter(|(lease, is_new)| {
            let is_read = !is_new && !slots.probes.slots.is_leased(*lease);
            is_read && self.namer.has_settled(*lease) && !self.may_be_asked(*lease, jobs)
        });
        let gone: Vec<Lease> = gone.map(|(lease, _)| lease).collect();
        let mut of_jobs = BTreeMap::<&Job, Option<Software>>::new();
        let owners = jobs.tracker.owners();
        let changed: BTreeSet<&Job> = fresh.iter().filter_map(|lease| owners.get(lease)).collect();
        for (lease, job) in owners.iter().filter(|(_, job)| changed.contains(job)) {
            Software::merge_known(of_jobs.entry(job).or_default(), self.named.get(lease));
        }
        for (job, software) in of_jobs {
            if let Some(details) = jobs.details.get_mut(job) {
                details.set_software(software);
            }
        }
        for lease in gone {
            let named = self.named.remove(&lease);
            let details = owners.get(&lease).and_then(|job| jobs.details.get_mut(job));
            // One that was given up for the job's main one at once saw nothing, and nobody was asked by then.
            let named = named.filter(|named| !named.tells_nothing());
            if let (Some(named), Some(details)) = (named, details) {
                details.close_software(named);
            }
            self.consents.remove(&lease);
            self.namer.forget(lease);
            census.forget(lease);
        }
    }
}

/// `job`, whose lease is new or was there before these programs: what its processes have mapped now is its own.
pub(super) fn begin_older(job: &Job, jobs: &Jobs, slots: &mut Slots) {
    let Some(census) = &mut slots.probes.census else { return };
    let tracked = jobs.tracker.job(job).filter(|tracked| tracked.ended_ns.is_none());
    let Some((tracked, lease)) = tracked.and_then(|of| Some((of, of.lease?))) else { return };
    let pids: Vec<u32> = jobs.view.some_pids(&tracked.root, MOST_PROCESSES).into_iter().collect();
    census.begin_older(lease, &pids);
}
