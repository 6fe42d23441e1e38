//! Sums over everything that was written. File by file: half an hour of every bucket does not fit into
//! memory as points.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use jobtrace::{
    lines::{hlog, read},
    model::point::{FieldValue, Point},
};

use crate::daemon::files::{list, text};

/// The sums.
#[derive(Debug, Default)]
pub struct Totals {
    /// By job, then by `measurement.field` (`job_block.read.bytes` where there are operations).
    pub jobs: BTreeMap<String, BTreeMap<String, u64>>,
    /// Of `jobtrace_self`.
    pub own: BTreeMap<String, u64>,
    /// Values in the buckets of `job_hist`, by metric.
    pub bucketed: BTreeMap<String, u64>,
    /// Values in histograms by their own counts, by metric.
    pub counted: BTreeMap<String, u64>,
    /// Intervals told, by their stamps.
    pub stamps: BTreeSet<i64>,
    /// Lines of `jobtrace_self`: as many as intervals.
    pub told: u64,
    /// Lines.
    pub lines: u64,
    /// Files of lines, and of logs.
    pub files: [u64; 2],
}

impl Totals {
    /// Reads all finished files in `outbox`; block I/O of jobs is that with `device`.
    ///
    /// # Errors
    /// When one is not whole, or holds a line that is none of ours.
    pub fn read(outbox: &Path, device: &str) -> Result<Self> {
        let mut totals = Self::default();
        for file in list(outbox)? {
            let text = text(&file)?;
            totals.files[0] += 1;
            for point in read::points(&text) {
                let added = point.map_err(Into::into).and_then(|point| totals.add(point, device));
                added.with_context(|| format!("in {}", file.display()))?;
            }
        }
        for entry in fs::read_dir(outbox)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "hlog") {
                let log = fs::read_to_string(&path)?;
                ensure!(log.ends_with(hlog::END), "{} is not whole", path.display());
                totals.files[1] += 1;
            }
        }
        Ok(totals)
    }

    /// A sum of a job's; zero where nothing was told.
    pub fn of(&self, job: &str, what: &str) -> u64 {
        self.jobs.get(job).and_then(|sums| sums.get(what)).copied().unwrap_or(0)
    }

    /// A sum over all jobs and `_system`.
    pub fn all(&self, what: &str) -> u64 {
        self.jobs.values().filter_map(|sums| sums.get(what)).sum()
    }

    fn add(&mut self, point: Point, device: &str) -> Result<()> {
        self.lines += 1;
        let Point { measurement, tags, fields, time_ns } = point;
        let tag = |key: &str| tags.iter().find(|(name, _)| name == key).map(|(_, v)| v.clone());
        let numbers = fields.into_iter().filter_map(|(name, value)| match value {
            FieldValue::Integer(number) => Some((name.into_owned(), number)),
            _ => None,
        });
        if measurement == "jobtrace_self" {
            self.stamps.insert(time_ns as i64);
            self.told += 1;
            numbers.for_each(|(name, number)| *self.own.entry(name).or_default() += number);
            return Ok(());
        }
        if measurement == "job_hist" {
            let metric = tag("metric").context("a bucket of no metric")?;
            *self.bucketed.entry(metric).or_default() += numbers.map(|(_, n)| n).sum::<u64>();
            return Ok(());
        }
        let of = match tag("op") {
            Some(op) => format!("{measurement}.{op}"),
            None => measurement.to_string(),
        };
        // The others hold states and moments, whose sums mean nothing.
        let is_counted = ["job_sched", "job_fault", "job_block"].contains(&&*measurement);
        let is_meant = tag("device").is_none_or(|name| name == device);
        let sums = self.jobs.entry(tag("job").context("a line of no job")?).or_default();
        for (name, number) in numbers {
            if let Some(metric) = name.strip_suffix("_count") {
                let key = measurement.strip_prefix("job_").unwrap_or(&measurement);
                *self.counted.entry(format!("{key}.{metric}")).or_default() += number;
            }
            if is_counted && is_meant {
                *sums.entry(format!("{of}.{name}")).or_default() += number;
            }
        }
        Ok(())
    }
}
