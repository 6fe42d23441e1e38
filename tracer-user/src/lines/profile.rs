//! How much of a job is written: the export profiles, and which job has which.
//!
//! Pure. Refuses to name a field or a bucket: tables and `model/buckets.rs` do.

use std::collections::BTreeMap;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use crate::model::buckets::BucketStyle;
use crate::model::{
    buckets::Width,
    hist_points::bucket_points,
    job::{Job, JobStats},
    point::{Origin, Point},
    points::interval_points,
};

/// How much of a job is written.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    ValueEnum,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Numbers and percentiles: about ten series for each job and node.
    #[default]
    Summary,
    /// Also the histograms' buckets, one to each power of two.
    Histogram,
    /// Also the buckets as the kernel counts them, four to each power of two.
    Full,
}

/// Which job is written how much of: a job's own entry, else its manager's, else the default.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiles {
    /// Of all others.
    pub default: Profile,
    /// By manager: `slurm`, `pbs`, `none` for the rest of the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_manager: BTreeMap<String, Profile>,
    /// By job, as its manager names it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_job: BTreeMap<String, Profile>,
}

impl Profiles {
    /// The profile of `job`.
    pub fn of(&self, job: &Job) -> Profile {
        let by_job = self.by_job.get(&job.job);
        *by_job.or_else(|| self.by_manager.get(&job.manager)).unwrap_or(&self.default)
    }
}

/// The points of a job's interval, which ended at `time_ns` and was `span_ns` long.
pub fn points(
    origin: &Origin,
    stats: &JobStats,
    profile: Profile,
    style: BucketStyle,
    time_ns: u64,
    span_ns: u64,
) -> Vec<Point> {
    let mut points = interval_points(origin, stats, time_ns, span_ns);
    let width = match profile {
        Profile::Summary => return points,
        Profile::Histogram => Width::Log2,
        Profile::Full => Width::Fine,
    };
    points.extend(bucket_points(origin, stats, width, style, time_ns));
    points
}
