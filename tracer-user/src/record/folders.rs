//! The folders that a command reads records from, as its arguments name them; all through `find`.
//!
//! What cannot be read is told, and never counted as if it were not there.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    Record,
    days::{Days, Wanted},
    find::{self, Skipped},
    head::{Head, HeadIn},
    name,
    select::{Run, runs},
    store::DEFAULT_DIR,
};
use crate::base::{in_order::in_order, progress::Progress, say::say, units::counted};

/// Where to look. The arguments that all commands which read records have.
#[derive(Clone, Debug, clap::Args)]
pub struct Folders {
    /// Folder of records: the agent's, that of `jobtrace run --save`, or one that a cluster shares; may be repeated: a
    /// record that is in several counts once
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIR)]
    pub from: Vec<PathBuf>,
    /// What could not be read so far, or was left out.
    #[arg(skip)]
    skipped: RefCell<Skipped>,
}

impl Folders {
    /// These.
    pub fn of(from: Vec<PathBuf>) -> Self {
        Self { from, skipped: RefCell::default() }
    }

    /// The days that there are.
    ///
    /// # Errors
    /// When a folder is not there; the message names the cure.
    pub fn days(&self) -> Result<Days> {
        let (days, skipped) = Days::list(&self.from).context(
            "no records: `jobtrace agent` writes them ([records]), or `jobtrace run --save DIR`; name their folder \
             with --from",
        )?;
        self.note(skipped);
        Ok(days)
    }

    /// The heads of `days` that are `wanted`, each with its folder.
    pub fn heads(
        &self,
        days: &Days,
        wanted: &Wanted,
        is_wanted: impl Fn(&HeadIn) -> bool + Sync,
    ) -> Vec<(PathBuf, Head)> {
        let mut heads = Vec::new();
        let add = |of_one: &mut Vec<_>, folder: &Path, head: &HeadIn| {
            let is_wanted = is_wanted(head);
            if is_wanted {
                of_one.push((folder.to_owned(), Head::from(head)));
            }
            is_wanted
        };
        self.fold(days, wanted, Vec::new, add, |of_one| heads.extend(of_one));
        heads
    }

    /// The runs that were seen from `since_ns` on, each whole, of heads that are wanted: of one job all are or none.
    pub fn runs(
        &self,
        days: &Days,
        since_ns: u64,
        is_wanted: impl Fn(&HeadIn) -> bool + Sync,
    ) -> Vec<Run> {
        let seen = |heads| {
            let mut runs = runs(heads);
            runs.retain(|run| run.seen_ns() >= since_ns);
            runs
        };
        let mut found =
            seen(self.heads(days, &Wanted { since_ns, ..Wanted::default() }, &is_wanted));
        let late = || found.iter().filter(|run| since_ns > 0 && run.is_counted_late());
        let Some(first) = late().map(first_day).min() else { return found };
        // Parts from before lie where nothing has changed since.
        let jobs: BTreeSet<_> = late().filter_map(|run| run.head().job.clone()).collect();
        let is_late = |job: Option<&str>| job.is_some_and(|job| jobs.contains(job));
        let wanted = Wanted { first: Some(&first), ..Wanted::default() };
        let heads =
            self.heads(days, &wanted, |head| is_late(head.job.as_deref()) && is_wanted(head));
        found.retain(|run| !is_late(run.head().job.as_deref()));
        found.extend(seen(heads));
        found.sort_by_key(Run::begin_ns);
        found
    }

    /// As [`Days::fold`]; shows how far it is.
    pub fn fold<T: Send>(
        &self,
        days: &Days,
        wanted: &Wanted,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Path, &HeadIn) -> bool + Sync,
        mut take: impl FnMut(T),
    ) {
        let mut progress = Progress::of("folders read", days.parts(wanted).len());
        let take = |sum| {
            take(sum);
            progress.step();
        };
        self.note(days.fold(wanted, new, add, take));
    }

    /// What `make` makes of the records of each of `runs`, in their order; nothing of a run whose records cannot be
    /// read.
    pub fn each<T: Send>(&self, runs: &[Run], make: impl Fn(Vec<Record>) -> T + Sync) -> Vec<T> {
        let mut progress = Progress::of("jobs read", runs.len());
        let (from, mut made) = (&*self.from, Vec::new());
        let work = |run: &Run| {
            let (mut records, mut damaged) = (Vec::new(), Vec::new());
            for part in &run.parts {
                let (record, error) = read_copy(from, part);
                records.extend(record);
                damaged.extend(error.map(|error| format!("{error:#}")));
            }
            ((!records.is_empty()).then(|| make(records)), damaged)
        };
        in_order(runs, work, |(one, damaged)| {
            made.extend(one);
            self.note(Skipped { damaged, ..Skipped::default() });
            progress.step();
        });
        made
    }

    /// The records of a run.
    ///
    /// # Errors
    /// When none of them can be read.
    pub fn read(&self, run: &Run) -> Result<Vec<Record>> {
        let mut progress = Progress::of("records read", run.parts.len());
        let (mut records, mut last) = (Vec::new(), None);
        let from = &*self.from;
        in_order(
            &run.parts,
            |part| read_copy(from, part),
            |(record, error)| {
                records.extend(record);
                if let Some(error) = error {
                    self.skipped.borrow_mut().damaged.push(format!("{error:#}"));
                    last = Some(error);
                }
                progress.step();
            },
        );
        match last {
            Some(error) if records.is_empty() => Err(error),
            _ => Ok(records),
        }
    }

    fn note(&self, skipped: Skipped) {
        self.skipped.borrow_mut().add(skipped);
    }

    /// The folders in words.
    pub fn in_words(&self) -> String {
        let folders: Vec<_> = self.from.iter().map(|folder| folder.display().to_string()).collect();
        folders.join(", ")
    }

    /// Says what could not be read, and what counts once; gives the exit status: 1 where something is damaged.
    pub fn tell_skipped(&self) -> u8 {
        let Skipped { damaged, closed, repeated } = self.skipped.take();
        match repeated.len() {
            0 => {}
            1 => say("1 record is in more than one folder; it counts once"),
            many => {
                say(format_args!("{many} records are in more than one folder; each counts once"))
            }
        }
        for what in damaged.iter().take(MOST_TOLD) {
            say(format_args!("skipped {what}"));
        }
        if let more @ 1.. = damaged.len().saturating_sub(MOST_TOLD) {
            say(format_args!("skipped {more} more"));
        }
        if closed > 0 {
            say(format_args!(
                "not shown: {} of other users, which you may not read",
                counted(closed, "folder")
            ));
        }
        u8::from(!damaged.is_empty())
    }
}

/// The record of a part; where it cannot be read, why, and another copy of it in `from`, if there is one.
fn read_copy(
    from: &[PathBuf],
    (folder, head): &(PathBuf, Head),
) -> (Option<Record>, Option<anyhow::Error>) {
    let error = match find::read_of(folder, head) {
        Ok(record) => return (Some(record), None),
        Err(error) => error,
    };
    let names = folder.parent().and_then(Path::file_name).zip(folder.file_name());
    let copies = names.into_iter().flat_map(|(owner, day)| {
        let owners = [owner, OsStr::new(name::NO_OWNER)];
        from.iter().flat_map(move |root| owners.map(|owner| root.join(owner).join(day)))
    });
    let copy =
        copies.filter(|copy| copy != folder).find_map(|copy| find::read_of(&copy, head).ok());
    (copy, Some(error))
}

/// Things told of those that could not be read.
const MOST_TOLD: usize = 10;

/// The day of the earliest start of `run`, before which no part of it lies.
pub fn first_day(run: &Run) -> String {
    let starts = run.parts.iter().filter_map(|(_, head)| head.start);
    name::day(starts.chain([run.begin_ns()]).min().unwrap_or(0))
}
