//! Where snapshots come from: the probes of this node, or a recording.

use anyhow::Result;

use super::snapshot::Snapshot;

/// A source of snapshots.
pub trait Source {
    /// The totals up to now, or the recording's next; `None` at its end.
    ///
    /// # Errors
    /// When the maps cannot be read, or the recording is damaged; the message names which.
    fn snapshot(&mut self) -> Result<Option<Snapshot>>;
}
