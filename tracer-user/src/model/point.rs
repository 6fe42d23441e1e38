//! What a line of line protocol says, and which tags tell whose it is.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::job::Job;

/// A field's value as line protocol knows it.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// Written with the suffix `i`, saturated at `i64::MAX`.
    Integer(u64),
    /// Left out unless finite.
    Float(f64),
    /// Quoted.
    Text(String),
}

/// A name: of a table where it is ours, as it was read where it is not.
pub type Name = Cow<'static, str>;

/// One line: measurement, tags, fields, time.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name of the measurement.
    pub measurement: Name,
    /// Tags in any order; the writer sorts them and leaves empty ones out.
    pub tags: Vec<(Name, String)>,
    /// Fields in the order of their output.
    pub fields: Vec<(Name, FieldValue)>,
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
}

/// Where the points come from: tags of every line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Name of the cluster; empty for none.
    #[serde(default)]
    pub cluster: String,
    /// Name of the node.
    pub host: String,
}

impl Origin {
    fn tags(&self) -> Vec<(Name, String)> {
        vec![("cluster".into(), self.cluster.clone()), ("host".into(), self.host.clone())]
    }

    pub(super) fn job_tags(&self, job: &Job) -> Vec<(Name, String)> {
        let mut tags = self.tags();
        for (key, value) in
            [("job", &job.job), ("manager", &job.manager), ("step", &job.step), ("user", &job.user)]
        {
            tags.push((key.into(), value.clone()));
        }
        tags
    }
}
