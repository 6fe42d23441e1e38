//! Taking a job's cgroup away again, with the children that the job made in it.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use super::{
    job::JobCgroup,
    tree::{collect_pids, remove_tree},
};

/// How long processes that are just exiting may take, and a directory to be let go after them.
const PATIENCE: Duration = Duration::from_millis(300);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// What became of a cgroup that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// No directory is left.
    Done,
    /// These processes live on in it; all its directories stay.
    LeftBehind(Vec<u32>),
}

impl JobCgroup {
    /// Removes the directories and all below them, waiting up to 0.3 s for processes that are on
    /// their way out. Call it when the command has been waited for.
    ///
    /// # Errors
    /// When a directory without processes cannot be removed; the message names it.
    pub fn remove(mut self) -> Result<Removal> {
        let start = Instant::now();
        self.removed = true;
        loop {
            let pids = self.pids();
            let is_late = start.elapsed() > PATIENCE;
            match pids.is_empty().then(|| self.try_remove()) {
                None if is_late => return Ok(Removal::LeftBehind(pids)),
                Some(Ok(())) => return Ok(Removal::Done),
                Some(Err(error)) if is_late => return Err(error),
                _ => sleep(PAUSE),
            }
        }
    }

    /// The processes in it and below, in the numbers of the caller's namespace, in order.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        for place in self.places.own() {
            collect_pids(&place.directory, &mut pids);
        }
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    fn try_remove(&mut self) -> Result<()> {
        for place in self.places.own() {
            remove_tree(&place.directory)
                .with_context(|| format!("cannot remove cgroup {}", place.directory.display()))?;
        }
        if let Some(switched) = self.switched.take() {
            switched.switch_off();
        }
        Ok(())
    }
}

impl Drop for JobCgroup {
    fn drop(&mut self) {
        if !self.removed && self.pids().is_empty() {
            // On an error's way out there is nobody left to tell.
            let _ = self.try_remove();
        }
    }
}
