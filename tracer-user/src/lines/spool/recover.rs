//! What an agent does with the files that the one before it left in tmp.
//!
//! Of each interval exactly one account survives: the file, or the counters that measure it again.

use std::{fmt, fs, io};

use anyhow::Result;

use super::{Spool, whole::is_whole};

/// How the agent's counters go on.
#[derive(Clone, Copy, Debug)]
pub enum Resume<'a> {
    /// From a state of this boot, which names the set committed with it, if any. What it does not name
    /// will be measured again.
    Continued(Option<&'a str>),
    /// From nothing: no state was found, or one of another boot. What was written is all there is.
    Anew,
}

/// What became of the files in tmp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Published.
    pub published: usize,
    /// Removed: not committed, so measured again.
    pub uncommitted: usize,
    /// Removed: not whole.
    pub torn: usize,
    /// Removed: in the outbox already.
    pub doubled: usize,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { published, uncommitted, torn, doubled } = self;
        write!(
            f,
            "files left in the spool: {published} published, {uncommitted} uncommitted and \
             removed, {torn} incomplete and removed, {doubled} already published"
        )
    }
}

impl Spool {
    /// Clears tmp of what an agent that was killed left there. Files of other boots are published where
    /// they are whole; those of this boot by `resume`. Other nodes' and strangers' files stay.
    ///
    /// # Errors
    /// When the disk refuses; calling it again goes on.
    pub fn recover(&mut self, resume: Resume) -> Result<Recovered> {
        let mut done = Recovered::default();
        let result = self.clear_tmp(resume, &mut done);
        self.told(result, "recover the spool")?;
        Ok(done)
    }

    fn clear_tmp(&mut self, resume: Resume, done: &mut Recovered) -> io::Result<()> {
        let mut found = self.look(&self.stage.tmp)?;
        found.sort_by_key(|entry| (entry.set.start_ns, entry.set, entry.part));
        for entry in found {
            let name = entry.set.file(&self.node, entry.part);
            let tmp = self.stage.tmp.join(&name);
            let is_wanted = match resume {
                Resume::Continued(committed) if entry.set.boot == self.boot => {
                    committed == Some(entry.set.show(&self.node).as_str())
                }
                _ => true,
            };
            let count = if !is_wanted {
                &mut done.uncommitted
            } else if fs::exists(self.stage.done.join(&name))? {
                &mut done.doubled
            } else if !is_whole(&tmp, entry.part)? {
                &mut done.torn
            } else {
                self.stage.publish(&name)?;
                self.index.push(entry);
                done.published += 1;
                continue;
            };
            fs::remove_file(&tmp)?;
            *count += 1;
        }
        Ok(())
    }
}
