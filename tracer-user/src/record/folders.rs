//! The folders that a command reads records from, as its arguments name them; all through `find`.
//!
//! What cannot be read is told, and never counted as if it were not there.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    Record,
    find::{self, Skipped},
    head::Head,
    name,
    select::Run,
    store::DEFAULT_DIR,
};

use crate::base::say::say;

/// Where to look. The arguments that all commands which read records have.
#[derive(Clone, Debug, clap::Args)]
pub struct Folders {
    /// Folders of records: the agent's, those of `jobtrace run --save`, or one that a cluster shares
    #[arg(long, value_name = "DIR", num_args = 1.., default_value = DEFAULT_DIR)]
    pub from: Vec<PathBuf>,
    /// What could not be read so far.
    #[arg(skip)]
    skipped: RefCell<Told>,
}

/// What could not be read: as [`Skipped`], of several calls.
#[derive(Clone, Debug, Default)]
struct Told {
    damaged: Vec<String>,
    closed: u64,
}

impl Folders {
    /// These.
    pub fn of(from: Vec<PathBuf>) -> Self {
        Self { from, skipped: RefCell::default() }
    }

    /// The days that there are, the newest first.
    ///
    /// # Errors
    /// When a folder is not there; the message names the cure.
    pub fn days(&self) -> Result<Vec<String>> {
        let days = RefCell::new(BTreeSet::new());
        let note = |day: &str| {
            days.borrow_mut().insert(day.to_owned());
            false
        };
        self.visit(note, |_, _| {})?;
        self.skipped.take();
        Ok(days.into_inner().into_iter().rev().collect())
    }

    /// The heads of the days that `wanted` wants, each with its folder.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn heads(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(PathBuf, Head)>> {
        let mut heads = Vec::new();
        self.visit(wanted, |folder, head| heads.push((folder.to_owned(), head)))?;
        Ok(heads)
    }

    /// Gives each head of the days that `wanted` wants to `visit`, with its folder.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn visit(
        &self,
        wanted: impl Fn(&str) -> bool,
        visit: impl FnMut(&Path, Head),
    ) -> Result<()> {
        let Skipped { damaged, closed } = find::visit_heads(&self.from, wanted, visit).context(
            "no records: `jobtrace agent` writes them ([records]), or `jobtrace run --save DIR`; name their folder \
             with --from",
        )?;
        let mut skipped = self.skipped.borrow_mut();
        skipped.damaged.extend(damaged);
        skipped.closed += closed;
        Ok(())
    }

    /// The records of a run.
    ///
    /// # Errors
    /// When none of them can be read.
    pub fn read(&self, run: &Run) -> Result<Vec<Record>> {
        let (mut records, mut last) = (Vec::new(), None);
        for (folder, head) in &run.parts {
            match find::read_of(folder, head) {
                Ok(record) => records.push(record),
                Err(error) => {
                    self.skipped.borrow_mut().damaged.push(format!("{error:#}"));
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
        let Told { damaged, closed } = self.skipped.take();
        for what in damaged.iter().take(MOST_TOLD) {
            say(format_args!("skipped {what}"));
        }
        if let more @ 1.. = damaged.len().saturating_sub(MOST_TOLD) {
            say(format_args!("skipped {more} more"));
        }
        if closed > 0 {
            say(format_args!("not shown: {closed} folders of other users, which you may not read"));
        }
        u8::from(!damaged.is_empty())
    }
}

/// Things told of those that could not be read.
const MOST_TOLD: usize = 10;

/// The day of the earliest start of `run`, before which no part of it lies.
pub fn first_day(run: &Run) -> String {
    let starts = run.parts.iter().filter_map(|(_, head)| head.start);
    name::day(starts.chain([run.begin_ns()]).min().unwrap_or(0))
}
