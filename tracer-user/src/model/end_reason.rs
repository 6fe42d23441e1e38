//! Why a job ended.

use serde::Serialize;

/// How a job ended, as far as its scheduler or its values tell why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// By itself: its exit tells the rest.
    Itself,
    /// At its time limit.
    TimeLimit,
    /// For lack of memory.
    OutOfMemory,
    /// Its owner or an administrator ended it.
    Cancelled,
    /// A job of higher priority took its place.
    Preempted,
    /// A node failed.
    NodeFailed,
    /// It was put back into the queue.
    Requeued,
}

impl EndReason {
    const ALL: [Self; 7] = [
        Self::Itself,
        Self::TimeLimit,
        Self::OutOfMemory,
        Self::Cancelled,
        Self::Preempted,
        Self::NodeFailed,
        Self::Requeued,
    ];

    /// That which `word` stands for in `end_reason`.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// The word for it in `end_reason`; none where it ended by itself.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Itself => "",
            Self::TimeLimit => "time_limit",
            Self::OutOfMemory => "out_of_memory",
            Self::Cancelled => "cancelled",
            Self::Preempted => "preempted",
            Self::NodeFailed => "node_failed",
            Self::Requeued => "requeued",
        }
    }
}

/// Whether a job ended when the kernel killed a process of it for lack of memory. Where `end_reason` says nothing, as of
/// `run`, how its command ended tells: `has_failed`, after so many kills.
pub fn ended_for_memory(end_reason: &str, has_failed: bool, oom_kills: Option<u64>) -> bool {
    let has_kills = oom_kills.is_some_and(|kills| kills > 0);
    match EndReason::of(end_reason) {
        Some(EndReason::OutOfMemory) => true,
        Some(EndReason::Itself) => has_failed && has_kills,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_of_one_reason() {
        for reason in EndReason::ALL {
            assert_eq!(EndReason::of(reason.word()), Some(reason));
        }
        assert_eq!(EndReason::of("lost"), None);
    }

    #[test]
    fn a_job_that_goes_on_after_a_kill_did_not_end_for_it() {
        assert!(ended_for_memory("out_of_memory", false, None));
        assert!(ended_for_memory("", true, Some(1)));
        for (has_failed, kills) in [(false, Some(1)), (true, Some(0)), (true, None)] {
            assert!(!ended_for_memory("", has_failed, kills), "{has_failed} {kills:?}");
        }
        assert!(!ended_for_memory("time_limit", true, Some(1)), "killed long before");
    }
}
