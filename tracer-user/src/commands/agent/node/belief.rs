//! What a path says is believed as far as whoever could make its directories may say it: a user who may make
//! cgroups must not add to another's job.

use std::path::{Path, PathBuf};

use super::jobs::Jobs;
use crate::{probes::Cgroup, resolve::Answer};

/// The administrator, who may call any directory anything.
const ROOT: u32 = 0;

impl Jobs {
    /// Whose `cgroup` at `path` is, and who could make the job's topmost directory. Where a user could who may
    /// not, whose the directory is that it was made in. `made_by` is who made the cgroup, where the kernel told.
    pub fn believed(&self, cgroup: Cgroup, path: &Path, made_by: Option<u32>) -> (Answer, u32) {
        let mut path = path.to_owned();
        loop {
            let answer = self.naming.resolver.path(&path.to_string_lossy());
            if !answer.is_job() {
                return (answer, ROOT);
            }
            // The root of the hierarchy is a component of its own.
            let above: PathBuf = path.components().take(answer.root).collect();
            let maker = self.view.maker(cgroup.table, &above, made_by);
            if maker == ROOT || (!answer.needs_root && self.is_theirs(&answer, maker)) {
                return (answer, maker);
            }
            path = above;
        }
    }

    /// Whether the job that `answer` names is new, or `maker`'s, and of nobody else by its path.
    fn is_theirs(&self, answer: &Answer, maker: u32) -> bool {
        if answer.uid.is_some_and(|owner| owner != maker) {
            return false;
        }
        let name = self.naming.name(answer);
        let known = self.details.get(self.tracker.named(&name));
        known.and_then(|details| details.made_by).is_none_or(|known| known == maker)
    }
}
