//! The one-off facts of a run: `job_info` and what the summary and the JSON begin and end with.

use serde::{Deserialize, Serialize};

/// What is known of a job when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobInfo {
    /// Name given by the user, or the command's.
    pub name: String,
    /// Owner's name; empty where unknown.
    pub user: String,
    /// Owner's number.
    pub uid: u32,
    /// The command with its arguments, as a shell would take it.
    pub command: String,
    /// Nanoseconds since the Unix epoch.
    pub start_wall_ns: u64,
}

/// How a command ended: one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// Its status, where it exited.
    pub code: Option<i32>,
    /// The signal's number, where one ended it.
    pub signal: Option<i32>,
}

impl Exit {
    /// The status a shell would show: the code, or 128 + signal.
    pub fn status(&self) -> i32 {
        self.code.or(self.signal.map(|signal| 128 + signal)).unwrap_or(1)
    }
}
