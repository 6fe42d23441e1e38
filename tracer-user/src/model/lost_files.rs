//! What tables without room for more left out of a job's files, where it was asked for them. Totals by mount have all of it.

use serde::{Deserialize, Serialize};

/// Of the files that a job used, what no row can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LostFiles {
    /// Operations by descriptor that are told of no file and of no folder.
    pub ops: u64,
    /// Files of which no more is known than their folders: one that was used again counts again.
    pub files: u64,
}

impl LostFiles {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another node's, or a later time's.
    pub fn add(&mut self, more: &Self) {
        self.ops = self.ops.saturating_add(more.ops);
        self.files = self.files.saturating_add(more.files);
    }
}
