//! Rules of a site's own, tried before the built-in ones.

use serde::{Deserialize, Serialize};

/// A `[[rule]]` of the configuration: a regular expression over a whole cgroup path, whose named groups
/// (`job`, and where they apply `step`, `task`, `user`, `uid`, `manager`) give the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteRule {
    /// What the rule is called in answers.
    pub name: String,
    /// The regular expression, as the `regex` crate reads it; it must match the path from its begin.
    pub pattern: String,
    /// The manager of its jobs, where the pattern has no group `manager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// Cgroups that match belong to no job.
    #[serde(default)]
    pub not_a_job: bool,
}
