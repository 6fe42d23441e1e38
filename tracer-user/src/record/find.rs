//! Finding records in the folders that a reader names: all through `store`, day by day, the newest first.
//!
//! What cannot be read is told, and never counted as if it were not there.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf};

use anyhow::{Context, Result};

use super::{
    Record,
    head::Head,
    name,
    select::Run,
    store::{self, DEFAULT_DIR},
};

/// Where to look. The arguments that all commands which read records have.
#[derive(Clone, Debug, clap::Args)]
pub struct Folders {
    /// Folders of records: the agent's, those of `jobtrace run --save`, or one that a cluster shares
    #[arg(long, value_name = "DIR", num_args = 1.., default_value = DEFAULT_DIR)]
    pub from: Vec<PathBuf>,
    /// What could not be read.
    #[arg(skip)]
    pub skipped: RefCell<Vec<String>>,
}

impl Folders {
    /// The days that there are, the newest first.
    ///
    /// # Errors
    /// When a folder is not there; the message names the cure.
    pub fn days(&self) -> Result<Vec<String>> {
        let days = RefCell::new(BTreeSet::new());
        for folder in &self.from {
            let note = |day: &str| {
                days.borrow_mut().insert(day.to_owned());
                false
            };
            store::read_heads(folder, note).context(
                "no records: `jobtrace agent` writes them ([records]), or `jobtrace run --save DIR`; name their folder \
                 with --from",
            )?;
        }
        Ok(days.into_inner().into_iter().rev().collect())
    }

    /// The heads of the days that `wanted` wants, each with its folder.
    ///
    /// # Errors
    /// When a folder is not there.
    pub fn heads(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(PathBuf, Head)>> {
        let mut heads = Vec::new();
        for folder in &self.from {
            let found = store::read_heads(folder, &wanted)?;
            heads.extend(found.heads);
            self.skipped.borrow_mut().extend(found.damaged);
        }
        Ok(heads)
    }

    /// The records of a run.
    ///
    /// # Errors
    /// When none of them can be read.
    pub fn read(&self, run: &Run) -> Result<Vec<Record>> {
        let (mut records, mut last) = (Vec::new(), None);
        for file in run.files() {
            match store::read(&file) {
                Ok(record) => records.push(record),
                Err(error) => {
                    self.skipped.borrow_mut().push(format!("{error:#}"));
                    last = Some(error);
                }
            }
        }
        match last {
            Some(error) if records.is_empty() => Err(error),
            _ => Ok(records),
        }
    }

    /// The folders in words.
    pub fn in_words(&self) -> String {
        let folders: Vec<_> = self.from.iter().map(|folder| folder.display().to_string()).collect();
        folders.join(", ")
    }

    /// Says what could not be read; gives the exit status: 1 where there was anything.
    pub fn tell_skipped(&self) -> u8 {
        let skipped = self.skipped.take();
        for what in skipped.iter().take(MOST_TOLD) {
            crate::base::say::say(format_args!("skipped {what}"));
        }
        if let more @ 1.. = skipped.len().saturating_sub(MOST_TOLD) {
            crate::base::say::say(format_args!("skipped {more} more"));
        }
        u8::from(!skipped.is_empty())
    }
}

/// Things told of those that could not be read.
const MOST_TOLD: usize = 10;

/// The day of the earliest start of `run`, before which no part of it lies.
pub fn first_day(run: &Run) -> String {
    let starts = run.parts.iter().filter_map(|(_, head)| head.start);
    name::day(starts.chain([run.begin_ns()]).min().unwrap_or(0))
}
