//! An interval in the form that a site wants it: whose names its lines have, which profile a job has,
//! which style its buckets.
//!
//! Pure: it writes nothing and looks at no configuration.

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{
    backlog::{Backlog, Pending},
    clustercockpit, hlog,
    line::Precision,
    profile::{BucketStyle, Profiles, points},
};
use crate::model::{
    job::JobStats,
    point::{Origin, Point},
};

/// Whose names and habits the lines have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineStyle {
    /// Ours: measurements of jobs, many fields a line, nanoseconds.
    #[default]
    Jobtrace,
    /// ClusterCockpit's metric store: metrics of nodes, one a line, seconds.
    Clustercockpit,
}

impl LineStyle {
    /// In what its time stamps are.
    pub fn precision(self) -> Precision {
        match self {
            Self::Jobtrace => Precision::Nanoseconds,
            Self::Clustercockpit => Precision::Seconds,
        }
    }
}

/// What decides the form of the lines.
#[derive(Clone, Debug)]
pub struct Form {
    /// Where the points come from.
    pub origin: Origin,
    /// Whose names the lines have; profiles and buckets are of our own style alone.
    pub style: LineStyle,
    /// How much is written of which job.
    pub profiles: Profiles,
    /// How buckets are written.
    pub bucket_style: BucketStyle,
    /// Whether interval logs are written too.
    pub hlog: bool,
}

impl Form {
    /// The points of an interval, facts included; those of one job at a time, for together they take much memory.
    pub fn points<'a>(&'a self, pending: &'a Pending) -> impl Iterator<Item = Point> + Clone + 'a {
        let is_ours = self.style == LineStyle::Jobtrace;
        let theirs = (!is_ours).then(|| clustercockpit::points(&self.origin, pending));
        let ours = is_ours.then_some(pending).into_iter();
        let of_job = move |stats: &JobStats| {
            let (profile, style) = (self.profiles.of(&stats.job), self.bucket_style);
            points(&self.origin, stats, profile, style, pending.stamp_ns, pending.span_ns)
        };
        let of_jobs = ours.clone().flat_map(|pending| &pending.jobs).flat_map(of_job);
        let facts = ours.flat_map(|pending| &pending.facts).cloned();
        theirs.into_iter().flatten().chain(of_jobs).chain(facts)
    }

    /// The interval log of all that waits, where one is asked for.
    ///
    /// # Errors
    /// None that its input could cause.
    pub fn hlog(&self, backlog: &Backlog) -> Result<Option<String>> {
        if !self.hlog {
            return Ok(None);
        }
        let intervals: Vec<_> = backlog
            .pending()
            .map(|pending| hlog::HlogInterval {
                start_wall_ns: pending.start_ns(),
                span_ns: pending.span_ns,
                jobs: &pending.jobs,
            })
            .collect();
        hlog::document(&intervals).map(Some)
    }
}
