//! Waits for file systems as the summary speaks of them.

use std::cmp::Reverse;

use super::facts::Facts;
use crate::{
    base::text,
    model::{
        blocks::ON_FILES,
        group::Group,
        hist::Hist,
        tables::{Sched, WAIT, Wait},
        totals::RunTotals,
    },
};

/// Columns of a file system's type and of its mount.
const MAX_FS: usize = 12;
const MAX_MOUNT: usize = 24;
/// The type of one that no call names.
const UNNAMED: &str = "unknown";
/// File systems whose files are on other machines, by their types. FUSE's may be or not.
const REMOTE: [&str; 14] = [
    "nfs", "lustre", "gpfs", "beegfs", "ceph", "cifs", "smb2", "smb3", "afs", "9p", "orangefs",
    "panfs", "wekafs", "daos",
];

/// Waits in one kind of call for one file system.
pub struct FileWait<'a> {
    /// The kind of call, as the tag has it.
    pub call: &'a str,
    /// The file system's type, made harmless; `None` where no call names it.
    fs: Option<String>,
    /// Where it is mounted, made harmless; may be empty.
    mount: String,
    /// How long each took.
    pub took: &'a Hist,
}

impl<'a> FileWait<'a> {
    /// All of a run, the longest first.
    pub fn all(totals: &'a RunTotals, unicode: bool) -> Vec<Self> {
        let wait = |group: &'a Group| {
            let [call, fs, mount] = group.tags.get(..3)? else { return None };
            let name = text::truncate(&text::clean(fs, unicode), MAX_FS);
            Some(Self {
                call,
                fs: Some(name).filter(|_| fs != UNNAMED),
                mount: text::middle(&text::clean(mount, unicode), MAX_MOUNT),
                took: group.hist(Wait::blocked_ns).filter(|took| took.sum > 0)?,
            })
        };
        let mut all: Vec<_> = totals.stats.groups(&WAIT).filter_map(wait).collect();
        all.sort_by_key(|wait| Reverse(wait.took.sum));
        all
    }

    /// Whether the file system is on other machines; `None` where no call names it.
    pub fn is_remote(&self) -> Option<bool> {
        self.fs.as_ref().map(|fs| REMOTE.contains(&&**fs))
    }

    /// ` on nfs (/home)`; nothing where no call names it.
    pub fn place(&self) -> String {
        match (&self.fs, &*self.mount) {
            (None, _) => String::new(),
            (Some(fs), "") => format!(" on {fs}"),
            (Some(fs), mount) => format!(" on {fs} ({mount})"),
        }
    }
}

/// Something that tasks waited for, in words, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// `reading on nfs (/home)`.
    pub what: String,
    /// Nanoseconds.
    pub ns: u64,
}

impl Facts<'_> {
    /// Blocks in calls on files, by file system as far as the calls name one.
    pub fn blocked_on_files(&self) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        for (field, call) in ON_FILES {
            let blocked_ns = self.number(field)?;
            let named = self.share_out(call, blocked_ns, |wait| wait.fs.is_some());
            let named_ns = named.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns));
            let ns = blocked_ns.saturating_sub(named_ns);
            parts.extend(named);
            parts.push(Part { what: doing(call).to_owned(), ns });
        }
        Some(parts)
    }

    /// Sleep of tasks that only a file system can have made sleep: what their waits for file systems took
    /// beyond those in which they were blocked.
    pub fn asleep_on_files(&self) -> Option<Vec<Part>> {
        let mut left_ns = self.number(Sched::sleep_other_ns)?;
        let mut parts = Vec::new();
        for (field, call) in ON_FILES {
            let asleep_ns =
                self.waited_on_files(call).saturating_sub(self.number(field)?).min(left_ns);
            left_ns -= asleep_ns;
            parts.extend(self.share_out(call, asleep_ns, |_| true));
        }
        Some(parts)
    }

    /// All waits in a kind of call, in nanoseconds.
    fn waited_on_files(&self, call: &str) -> u64 {
        let waits = self.files.iter().filter(|wait| wait.call == call);
        waits.fold(0, |sum: u64, wait| sum.saturating_add(wait.took.sum))
    }

    /// `ns` of the waits in a kind of call by the file systems that `wanted` wants, by the length of the
    /// waits for each: which of them were asleep and which blocked is not known of each.
    fn share_out(&self, call: &str, ns: u64, wanted: impl Fn(&FileWait<'_>) -> bool) -> Vec<Part> {
        let whole_ns = u128::from(self.waited_on_files(call).max(ns).max(1));
        let waits = self.files.iter().filter(|wait| wait.call == call && wanted(wait));
        let part = |wait: &FileWait<'_>| Part {
            what: doing(call).to_owned() + &wait.place(),
            ns: (u128::from(wait.took.sum) * u128::from(ns) / whole_ns) as u64,
        };
        waits.map(part).collect()
    }
}

/// What a task does in a kind of call, in words: `reading`.
pub fn doing(call: &str) -> &str {
    match call {
        "read" => "reading",
        "write" => "writing",
        "sync" => "fsync",
        call => call,
    }
}
