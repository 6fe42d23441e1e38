//! The node's GPUs: which job's processes are on them and who was given them, and what came of it since the
//! last interval.
//!
//! The sampling thread waits for nobody: whose a process is it settles by the rules alone, under the name
//! that the cgroup's path gives. What jobs are called, and which slot is charged, the agent knows at the
//! tick. Totals stay here, beside the snapshots: a sampler begins with zeros, a pinned kernel map does not.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{config, log::Log, naming::Naming};
use crate::{
    gpu::{self, Claims, Ending, ProcessReading, Sampler, SamplerCost},
    model::{
        group::{Group, since_all},
        job::Job,
        tables::Own,
    },
};

/// What of the configuration matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuSettings {
    /// Whether to sample at all.
    pub sample: bool,
    /// Time between two readings.
    pub period: Duration,
    /// Time until a driver that was not there is looked for again.
    pub retry: Duration,
    /// The site's folder of files that name the job of each GPU.
    pub held_dir: Option<PathBuf>,
    /// Folder with the sys and proc of other makers' GPUs.
    pub root: PathBuf,
}

impl From<&config::GpuKeys> for GpuSettings {
    fn from(config: &config::GpuKeys) -> Self {
        let held_dir = Some(config.held_dir.clone()).filter(|dir| !dir.as_os_str().is_empty());
        let (period, retry) = (config.period.0, config.retry.0);
        let root = config.sysfs_root.clone();
        Self { sample: config.sample, period, retry, held_dir, root }
    }
}

/// The sampling and what was reported of it.
pub struct Gpus {
    settings: GpuSettings,
    /// What the sampling thread calls processes by.
    naming: Arc<Mutex<Arc<Naming>>>,
    sampler: Option<Sampler<Job>>,
    /// The sampler before, which the next one waits for.
    ending: Option<Ending>,
    /// By the name of its path: each job's totals as last reported.
    reported: BTreeMap<Job, Vec<Group>>,
    /// What a sampler that is gone had not reported.
    left: Vec<(Job, Vec<Group>)>,
    /// Whether this sampler has still to hear who was given what, once it has read.
    pub(super) claims_wait: bool,
    cost_told: SamplerCost,
    notes_told: usize,
}

impl Gpus {
    /// Starts sampling, where it is wanted.
    pub fn start(settings: GpuSettings, naming: &Arc<Naming>, log: &Log) -> Self {
        let mut gpus = Self {
            settings,
            naming: Arc::new(Mutex::new(Arc::clone(naming))),
            sampler: None,
            ending: None,
            reported: BTreeMap::new(),
            left: Vec::new(),
            claims_wait: true,
            cost_told: SamplerCost::default(),
            notes_told: 0,
        };
        gpus.begin(log);
        gpus
    }

    fn begin(&mut self, log: &Log) {
        self.claims_wait = true;
        (self.cost_told, self.notes_told) = (SamplerCost::default(), 0);
        if !self.settings.sample {
            return;
        }
        let naming = Arc::clone(&self.naming);
        let owner = move |process: &ProcessReading| {
            // One that had gone before its cgroup was read is nobody's, not the node's.
            (!process.cgroups.is_empty()).then(|| lock(&naming).of_process(&process.cgroups))
        };
        let settings = gpu::SamplerSettings {
            period: self.settings.period,
            retry: Some(self.settings.retry),
            root: self.settings.root.clone(),
            ..gpu::SamplerSettings::default()
        };
        match Sampler::start_after(self.ending.take(), settings, owner) {
            Ok(sampler) => self.sampler = Some(sampler),
            Err(error) => log.error(format_args!("GPUs are not sampled: {error}")),
        }
    }

    /// Takes over what SIGHUP may change.
    pub fn set(&mut self, settings: GpuSettings, naming: &Arc<Naming>, now_ns: u64, log: &Log) {
        *lock(&self.naming) = Arc::clone(naming);
        let is_other = |of: &GpuSettings| (of.sample, of.period, of.retry, of.root.clone());
        let is_new = is_other(&settings) != is_other(&self.settings);
        self.settings = settings;
        if is_new {
            self.settle_all();
            self.left = self.interval(now_ns);
            self.reported.clear();
            if let Some(sampler) = self.sampler.take() {
                self.ending = Some(sampler.end());
            }
            self.begin(log);
        }
    }

    /// Waits for the next reading; for ever where there is no sampling.
    pub async fn reading(&self) {
        match &self.sampler {
            Some(sampler) => sampler.reading().await,
            None => std::future::pending().await,
        }
    }

    /// The jobs, as their paths name them, whose tasks are to be looked at. The rest of the node is not:
    /// why a GPU waits for nobody's processes nobody asks.
    pub fn watched(&self) -> Vec<Job> {
        let mut watched = self.sampler.as_ref().map(Sampler::watched).unwrap_or_default();
        watched.retain(|job| *job != Job::system());
        watched
    }

    /// What the tasks of `job` have done up to now, cumulative; `None` where it is not known.
    pub fn look(&self, job: &Job, now_ns: u64, groups: Option<&[Group]>) {
        if let Some(sampler) = &self.sampler {
            sampler.look(job, now_ns, groups);
        }
    }

    /// `job` has ended.
    pub fn settle(&self, job: &Job) {
        if let Some(sampler) = &self.sampler {
            sampler.settle(job);
        }
    }

    /// The sampling ends: idle time that nothing accounts for waits no longer.
    pub fn settle_all(&self) {
        self.watched().iter().for_each(|job| self.settle(job));
    }

    /// Whether there are GPUs to be given to anybody.
    pub fn has_any(&self) -> bool {
        self.sampler.as_ref().is_some_and(|sampler| sampler.cost().readings > 0)
    }

    /// Where the site says whose each GPU is.
    pub fn held_dir(&self) -> Option<&PathBuf> {
        self.settings.held_dir.as_ref()
    }

    /// Which job was given what, all of it.
    pub fn claim(&self, claims: BTreeMap<Job, Claims>) {
        if let Some(sampler) = &self.sampler {
            sampler.claim(claims);
        }
    }

    /// What each job did to each device since the last interval, by the name of its path.
    pub fn interval(&mut self, now_ns: u64) -> Vec<(Job, Vec<Group>)> {
        let mut intervals = std::mem::take(&mut self.left);
        let Some(sampler) = &self.sampler else { return intervals };
        sampler.look(&Job::system(), now_ns, None);
        for job in [Job::system()].into_iter().chain(self.watched()) {
            let groups = sampler.groups_for(&job, now_ns);
            let before = self.reported.insert(job.clone(), groups.clone()).unwrap_or_default();
            intervals.push((job, since_all(&groups, &before)));
        }
        intervals
    }

    /// Forgets a job that is gone.
    pub fn forget(&mut self, job: &Job) {
        if let Some(sampler) = &self.sampler {
            sampler.forget(job);
            self.reported.remove(job);
        }
    }

    /// Sets the fields of `jobtrace_self`, and says what is new.
    pub fn tell(&mut self, own: &mut Group, log: &Log) {
        let Some(sampler) = &self.sampler else { return };
        let (cost, told) = (sampler.cost(), std::mem::replace(&mut self.cost_told, sampler.cost()));
        own.set(Own::gpu_cpu_ns, cost.cpu_ns.saturating_sub(told.cpu_ns));
        own.set(Own::gpu_readings, cost.readings.saturating_sub(told.readings));
        own.set(Own::gpu_failures, cost.failures.saturating_sub(told.failures));
        let notes = sampler.notes();
        notes.iter().skip(self.notes_told).for_each(|note| log.warning(note));
        self.notes_told = notes.len();
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        // The agent ends.
        if let Some(sampler) = self.sampler.take() {
            sampler.exit();
        }
    }
}

fn lock(naming: &Mutex<Arc<Naming>>) -> MutexGuard<'_, Arc<Naming>> {
    naming.lock().unwrap_or_else(PoisonError::into_inner)
}
