//! The text of what the nodes tell, by the program's own writer, and how much that is.
//!
//! Pure. Series are counted job by job and forgotten with the job, so that no count grows with time.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use jobtrace::{
    lines::{form::Form, line},
    model::job::Job,
};

use crate::cluster::NodeTick;

/// How much was written of one measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Lines, which are points.
    pub lines: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Values in them.
    pub fields: u64,
}

/// How much was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By measurement, of jobs.
    pub of_jobs: BTreeMap<String, Amount>,
    /// By measurement, of the rest of the nodes and of the tracing itself.
    pub of_nodes: BTreeMap<String, Amount>,
    /// Series of jobs: measurement and tags.
    pub job_series: u64,
    /// Series of the rest of the nodes.
    pub node_series: u64,
    /// Jobs on a node, each of its nodes counted.
    pub job_nodes: u64,
    /// Intervals of a job on a node.
    pub job_intervals: u64,
    /// Intervals of a node.
    pub node_intervals: u64,
}

impl Tally {
    /// All of jobs.
    pub fn jobs(&self) -> Amount {
        sum(&self.of_jobs)
    }

    /// All of the rest.
    pub fn nodes(&self) -> Amount {
        sum(&self.of_nodes)
    }

    /// Everything.
    pub fn all(&self) -> Amount {
        let mut all = self.jobs();
        all.add(self.nodes());
        all
    }
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.bytes += other.bytes;
        self.fields += other.fields;
    }
}

fn sum(amounts: &BTreeMap<String, Amount>) -> Amount {
    let mut all = Amount::default();
    amounts.values().for_each(|amount| all.add(*amount));
    all
}

/// Writes the text and counts it.
pub struct Writer {
    form: Form,
    tally: Tally,
    /// Series of the jobs that run, by node and job.
    series: HashMap<(String, Job), HashSet<u64>>,
}

impl Writer {
    /// A writer in this form; its origin is each node's own.
    pub fn new(form: Form) -> Self {
        Self { form, tally: Tally::default(), series: HashMap::new() }
    }

    /// What was written so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Appends the lines of `tick` to `out`.
    pub fn write(&mut self, tick: &NodeTick, out: &mut Vec<u8>) {
        self.form.origin.clone_from(tick.origin);
        let system = Job::system();
        self.tally.node_intervals += 1;
        self.tally.job_intervals +=
            tick.pending.jobs.iter().filter(|stats| stats.job != system).count() as u64;
        let is_job = |id: &str| id != system.job;
        let owners: BTreeMap<&str, &Job> =
            tick.pending.jobs.iter().map(|stats| (stats.job.job.as_str(), &stats.job)).collect();
        for point in self.form.points(&tick.pending) {
            let begin = out.len();
            line::encode(&point, out);
            let line = &out[begin..];
            let id = point.tags.iter().find(|(key, _)| key == "job").map_or("", |(_, id)| id);
            let amount = Amount {
                lines: line.iter().filter(|byte| **byte == b'\n').count() as u64,
                bytes: line.len() as u64,
                fields: point.fields.len() as u64,
            };
            let (by_measurement, series) = match is_job(id) {
                true => (&mut self.tally.of_jobs, &mut self.tally.job_series),
                false => (&mut self.tally.of_nodes, &mut self.tally.node_series),
            };
            match by_measurement.get_mut(&*point.measurement) {
                Some(known) => known.add(amount),
                None => drop(by_measurement.insert(point.measurement.into_owned(), amount)),
            }
            let owner = owners.get(id).map_or_else(Job::system, |job| (*job).clone());
            let job_nodes = &mut self.tally.job_nodes;
            let seen = self.series.entry((tick.origin.host.clone(), owner)).or_insert_with(|| {
                *job_nodes += u64::from(is_job(id));
                HashSet::new()
            });
            *series += u64::from(seen.insert(hash_of_series(line)));
        }
        for job in &tick.ended {
            self.series.remove(&(tick.origin.host.clone(), job.clone()));
        }
    }
}

/// Of measurement and tags: what comes before the first space without a backslash.
fn hash_of_series(line: &[u8]) -> u64 {
    let is_end = |at: &usize| line[*at] == b' ' && (*at == 0 || line[*at - 1] != b'\\');
    let end = (0..line.len()).find(is_end).unwrap_or(line.len());
    let mut hasher = DefaultHasher::new();
    line[..end].hash(&mut hasher);
    hasher.finish()
}
