//! The operations on files that took longest, where they were asked for. As files, they are for the record and its
//! reports alone.

use serde::{Deserialize, Serialize};

/// Operations that a record lists, also of several nodes.
pub const MOST: usize = 32;

/// An operation on a file, or on a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowOp {
    /// When it began, nanoseconds since the Unix epoch.
    pub begin: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Whether the thread gave its CPU away.
    pub waited: bool,
    /// Whether it had not returned yet: it takes longer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub under_way: bool,
    /// The operation, as that of `job_io`.
    pub op: String,
    /// The file's path as that of [`FileUse`](super::files::FileUse), or the path that the call named, as its caller
    /// wrote it; empty: it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Type of its file system, as that of `job_io`.
    pub fs: String,
    /// Where that is mounted, as that of `job_io`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// Where in the file a read or write began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes that a read, write or copy moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The error's name, where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the thread was called.
    pub program: String,
    /// The thread's process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The node; empty in a record of one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// The longest of `all`, the longest first.
pub fn longest(mut all: Vec<SlowOp>) -> Vec<SlowOp> {
    // Equals in an order that no merging changes.
    all.sort_by(|one, other| other.took_ns.cmp(&one.took_ns).then_with(|| one.cmp(other)));
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_all_in_any_order() {
        let of = |begin, took_ns| SlowOp { begin, took_ns, ..SlowOp::default() };
        let all: Vec<_> = (0..100).map(|at| of(at, at / 3)).collect();
        let told = longest(all.clone());
        assert_eq!(told.len(), MOST);
        assert_eq!((told[0].begin, told[1].begin, told[2].begin), (99, 96, 97));
        assert_eq!(told[MOST - 1].took_ns, 22);
        assert_eq!(longest(all.into_iter().rev().collect()), told);
    }
}
