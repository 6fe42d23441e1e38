//! Which job a slot belongs to, and the merging of slots into jobs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracer_ebpf::table::Measurement;

use super::{
    group::{Group, merge_all},
    lease::Lease,
};

/// What tells a job apart from every other of this cluster: the tags of its lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The manager's name for it, `4242`; `_system` for the rest of the node.
    pub job: String,
    /// slurm, pbs, run, …; `none` for the rest of the node.
    pub manager: String,
    /// Its owner; empty where unknown.
    #[serde(default)]
    pub user: String,
    /// The step, where steps are series of their own; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// Which of the jobs that had this id on the node, one after the other, while the agent still tells them apart. Never
    /// told: no tag.
    #[serde(default, skip_serializing_if = "is_first")]
    pub life: u32,
}

fn is_first(life: &u32) -> bool {
    *life == 0
}

impl Job {
    /// As it is told.
    pub fn told(&self) -> Self {
        Self { life: 0, ..self.clone() }
    }

    /// Whether both have the same id, whoever's they are.
    pub fn same_id(&self, other: &Self) -> bool {
        (&self.job, &self.manager, &self.step) == (&other.job, &other.manager, &other.step)
    }

    /// The rest of the node: what no tracked cgroup owns.
    pub fn system() -> Self {
        Self { job: "_system".into(), manager: "none".into(), ..Self::default() }
    }
}

/// One job's values over an interval or a whole run: one group for each series.
#[derive(Clone, Debug, PartialEq)]
pub struct JobStats {
    /// Whose.
    pub job: Job,
    /// Its series.
    pub groups: Vec<Group>,
}

impl JobStats {
    /// The only group of a measurement without tags of its own.
    pub fn group(&self, measurement: &Measurement) -> Option<&Group> {
        self.groups.iter().find(|group| group.is(measurement))
    }

    /// All groups of a measurement.
    pub fn groups<'a>(&'a self, measurement: &'a Measurement) -> impl Iterator<Item = &'a Group> {
        self.groups.iter().filter(move |group| group.is(measurement))
    }
}

/// `jobs` as they are told: those that had the same id are one.
pub fn join_lives(jobs: Vec<JobStats>) -> Vec<JobStats> {
    if jobs.iter().all(|stats| stats.job.life == 0) {
        return jobs;
    }
    let mut merged: BTreeMap<Job, Vec<Group>> = BTreeMap::new();
    for stats in jobs {
        merge_all(merged.entry(stats.job.told()).or_default(), &stats.groups);
    }
    merged.into_iter().map(|(job, groups)| JobStats { job, groups }).collect()
}

/// What was not counted on the node in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    /// How many things, by cause: of `jobtrace_self`.
    pub own: Vec<Group>,
    /// Families of probes that did not run through all of it.
    pub shed: Vec<&'static str>,
}

/// Merges the leases of an interval into the jobs whose they are by `owner`, in their order; one without a job is the node's.
/// Most jobs have one lease, whose groups become theirs.
pub fn attribute<'a>(
    slots: BTreeMap<Lease, Vec<Group>>,
    owner: impl Fn(Lease) -> Option<&'a Job>,
) -> Vec<JobStats> {
    let job = |lease| owner(lease).cloned().unwrap_or_else(Job::system);
    let slots = slots.into_iter();
    let mut leases: Vec<_> =
        slots.map(|(lease, groups)| JobStats { job: job(lease), groups }).collect();
    // Jobs that began in their order are in it.
    leases.sort_by(|one, other| one.job.cmp(&other.job));
    leases.dedup_by(|more, first| {
        let is_same = more.job == first.job;
        if is_same {
            merge_all(&mut first.groups, &more.groups);
        }
        is_same
    });
    leases
}
