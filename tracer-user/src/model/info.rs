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
        // A recording may name any signal.
        self.code.or(self.signal.map(|signal| signal.saturating_add(128))).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_may_name_any_signal() {
        let status = |code, signal| Exit { code, signal }.status();
        assert_eq!(status(Some(3), Some(9)), 3);
        assert_eq!(status(None, Some(9)), 137);
        assert_eq!(status(None, Some(i32::MAX)), i32::MAX);
        assert_eq!(status(None, None), 1);
    }
}
