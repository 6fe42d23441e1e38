//! A row of `jobtrace software`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    RunOf, Whole,
    names::{NameId, Names},
    together::Together,
};

const HOUR_NS: f64 = 3.6e12;

/// A version, and how many jobs ran it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// The version; empty: unknown.
    pub version: String,
    /// Jobs.
    pub jobs: u64,
}

/// What goes with something.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Companion {
    /// Its name.
    pub name: String,
    /// How much more often than by chance.
    pub lift: f64,
    /// In which share of the jobs, a user's array counting as one.
    pub share: f64,
}

/// A row: what ran in how many jobs, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Jobs that ran it, or tried to.
    pub jobs: u64,
    /// Their users.
    pub users: u64,
    /// Core hours that these jobs held.
    pub core_hours: f64,
    /// GPU hours that these jobs held.
    pub gpu_hours: f64,
    /// Those of them in which a kernel ran; of jobs of which that is known.
    pub gpu_hours_busy: f64,
    /// Share of the GPU hours that were busy; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_busy_ratio: Option<f64>,
    /// Jobs that loaded a GPU's library, held a GPU and did not use it.
    pub gpu_idle_jobs: u64,
    /// Jobs that loaded one and held no GPU.
    pub gpu_not_held_jobs: u64,
    /// Those of them on nodes on which others held GPUs.
    pub gpu_nodes_cpu_only_jobs: u64,
    /// Nodes of the median job.
    pub nodes_p50: u64,
    /// Nodes that nine of ten jobs do not exceed.
    pub nodes_p90: u64,
    /// Jobs that ran several Python processes at once.
    pub several_pythons_jobs: u64,
    /// Versions, those of most jobs first.
    pub versions: Vec<Version>,
    /// Jobs that began in the earlier half of the time.
    pub jobs_earlier: u64,
    /// Jobs that began in the later one.
    pub jobs_later: u64,
    /// What goes with it.
    pub with: Vec<Companion>,
    /// Jobs of which names are known, in all.
    pub jobs_watched: u64,
    /// Jobs that nobody watched, in all.
    pub jobs_unknown: u64,
    /// Jobs that asked that nothing is told of them, in all.
    pub jobs_opted_out: u64,
    /// Jobs of which numbers alone are told, in all.
    pub jobs_counted: u64,
}

#[derive(Default)]
struct Sum {
    row: Row,
    users: BTreeSet<NameId>,
    nodes: Vec<u64>,
    versions: BTreeMap<NameId, u64>,
    gpu_known_ns: f64,
}

/// The rows of `runs`, those of most jobs first.
pub(super) fn rows(
    runs: &[RunOf],
    names: &Names,
    gpu_hosts: &BTreeSet<NameId>,
    together: &Together,
    whole: Whole,
) -> Vec<Row> {
    let begins = || runs.iter().map(|run| run.begin_ns);
    let (first, last) = (begins().min().unwrap_or(0), begins().max().unwrap_or(0));
    let middle_ns = first + (last - first) / 2;
    let mut sums = BTreeMap::<NameId, Sum>::new();
    for run in runs {
        let mut named: BTreeMap<NameId, Vec<NameId>> = BTreeMap::new();
        for (name, version) in &run.named {
            named.entry(*name).or_default().push(*version);
        }
        for (name, versions) in named {
            sums.entry(name).or_default().add(run, &versions, gpu_hosts, middle_ns);
        }
    }
    let row = |(name, sum): (NameId, Sum)| {
        let mut row = sum.row(names);
        row.name = names.text(name).to_owned();
        let companion =
            |(name, lift, share)| Companion { name: names.text(name).to_owned(), lift, share };
        row.with = together.with(name).into_iter().map(companion).collect();
        row.jobs_watched = whole.watched();
        (row.jobs_unknown, row.jobs_opted_out) = (whole.unknown, whole.opted_out);
        row.jobs_counted = whole.counted;
        row
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.jobs.cmp(&a.jobs).then_with(|| a.name.cmp(&b.name)));
    rows
}

impl Sum {
    fn add(
        &mut self,
        run: &RunOf,
        versions: &[NameId],
        gpu_hosts: &BTreeSet<NameId>,
        middle_ns: u64,
    ) {
        let row = &mut self.row;
        row.jobs += 1;
        self.users.insert(run.user);
        self.nodes.push(run.hosts.len() as u64);
        row.core_hours += run.core_ns as f64 / HOUR_NS;
        row.gpu_hours += run.gpu.held_ns as f64 / HOUR_NS;
        if let Some(busy_ns) = run.gpu.busy_ns {
            row.gpu_hours_busy += busy_ns as f64 / HOUR_NS;
            self.gpu_known_ns += run.gpu.held_ns as f64;
        }
        if run.gpu.library {
            row.gpu_idle_jobs += u64::from(run.gpu.held_ns > 0 && run.gpu.busy_ns == Some(0));
            let is_held = run.gpu.held_ns > 0;
            row.gpu_not_held_jobs += u64::from(!is_held);
            let is_on_gpu_node = run.hosts.iter().any(|host| gpu_hosts.contains(host));
            row.gpu_nodes_cpu_only_jobs += u64::from(!is_held && is_on_gpu_node);
        }
        row.several_pythons_jobs += u64::from(run.python_processes > 1);
        match run.begin_ns > middle_ns {
            true => row.jobs_later += 1,
            false => row.jobs_earlier += 1,
        }
        for version in versions {
            *self.versions.entry(*version).or_default() += 1;
        }
    }

    fn row(mut self, names: &Names) -> Row {
        let mut row = self.row;
        row.users = self.users.len() as u64;
        self.nodes.sort_unstable();
        let at = |share: f64| {
            let rank = (self.nodes.len() as f64 * share).ceil() as usize;
            self.nodes.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        (row.nodes_p50, row.nodes_p90) = (at(0.5), at(0.9));
        let known_hours = self.gpu_known_ns / HOUR_NS;
        row.gpu_busy_ratio = (known_hours > 0.0).then(|| row.gpu_hours_busy / known_hours);
        let version = |(id, jobs): (&NameId, &u64)| Version {
            version: names.text(*id).to_owned(),
            jobs: *jobs,
        };
        row.versions = self.versions.iter().map(version).collect();
        let order =
            |a: &Version, b: &Version| b.jobs.cmp(&a.jobs).then_with(|| a.version.cmp(&b.version));
        row.versions.sort_by(order);
        row
    }
}

impl Row {
    /// How much more often it was run in the later half of the time, as a share of the earlier one: 0.4 is 40 % more.
    /// `None` where there were none before.
    pub fn trend(&self) -> Option<f64> {
        let earlier = self.jobs_earlier as f64;
        (earlier > 0.0).then(|| self.jobs_later as f64 / earlier - 1.0)
    }
}
