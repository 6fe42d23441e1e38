//! Where reports, lists and sums come from: folders of records, or the site's database with the agents' lines. Both
//! answer the same questions with heads and records, so that everything after them is one path.
//!
//! Refuses to add anything up: `report` does.

pub mod influx;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::record::{
    Record,
    folders::Folders,
    head::Head,
    select::{Run, is_named, runs},
};

/// A source of jobs.
pub trait Source {
    /// The days (`2026-11-22`, UTC) with jobs that were seen since `since_ns` (Unix time), the newest first: those that
    /// [`Self::visit`] knows.
    ///
    /// # Errors
    /// When there is no such source; the message names the cure.
    fn days(&self, since_ns: u64) -> Result<Vec<String>>;

    /// Gives each head of the days that `wanted` wants to `visit`, with the folder that its record is in, if any. Of
    /// several calls the newest days come first.
    ///
    /// # Errors
    /// As [`Self::days`].
    fn visit(
        &self,
        wanted: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&Path, Head),
    ) -> Result<()>;

    /// The heads of the jobs that are called one of `jobs`: by id, id and step, or name.
    ///
    /// # Errors
    /// As [`Self::days`].
    fn named(&self, jobs: &[&String]) -> Result<Vec<(PathBuf, Head)>>;

    /// The records of a run.
    ///
    /// # Errors
    /// When none of them can be had.
    fn read(&self, run: &Run) -> Result<Vec<Record>>;

    /// What to say where nothing is known of `job`, cure included.
    fn unknown(&self, job: &str) -> String;

    /// Says what could not be read; gives the exit status: 1 where there was anything.
    fn tell_skipped(&self) -> u8;
}

/// Where to look. The arguments that all commands which read jobs have.
#[derive(Clone, Debug, clap::Args)]
pub struct Place {
    /// Folders.
    #[command(flatten)]
    pub folders: Folders,
    /// A database instead of them.
    #[command(flatten)]
    pub influx: influx::Options,
}

impl Place {
    /// The source that is named.
    ///
    /// # Errors
    /// When its options do not fit together.
    pub fn open(&self) -> Result<Box<dyn Source + '_>> {
        Ok(match influx::Influx::open(&self.influx)? {
            Some(influx) => Box::new(influx),
            None => Box::new(&self.folders),
        })
    }
}

/// Whether `name` is that of a file: what has a slash or ends like a record, or what there is a file of.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".json.gz") || Path::new(name).is_file()
}

/// The runs of `job` among `heads`, which `source` gave, the last one last; there is at least one.
///
/// # Errors
/// When there is none; the message names the cure.
pub fn runs_of(job: &str, heads: &[(PathBuf, Head)], source: &dyn Source) -> Result<Vec<Run>> {
    let of_job = heads.iter().filter(|(_, head)| is_named(head, job));
    let runs = runs(of_job.cloned().collect());
    if runs.is_empty() {
        bail!("{}", source.unknown(job));
    }
    Ok(runs)
}

impl Source for &Folders {
    /// All of them: a record lies in the day of its begin, whenever it was seen last.
    fn days(&self, _since_ns: u64) -> Result<Vec<String>> {
        Folders::days(self)
    }

    fn visit(
        &self,
        wanted: &dyn Fn(&str) -> bool,
        visit: &mut dyn FnMut(&Path, Head),
    ) -> Result<()> {
        Folders::visit(self, wanted, visit)
    }

    fn named(&self, jobs: &[&String]) -> Result<Vec<(PathBuf, Head)>> {
        let mut heads = Folders::heads(self, |_| true)?;
        heads.retain(|(_, head)| jobs.iter().any(|job| is_named(head, job)));
        Ok(heads)
    }

    fn read(&self, run: &Run) -> Result<Vec<Record>> {
        Folders::read(self, run)
    }

    fn unknown(&self, job: &str) -> String {
        let folders = self.in_words();
        let heads = Folders::heads(self, |_| true).unwrap_or_default();
        match heads.iter().filter_map(|(_, head)| head.job.as_deref()).max() {
            Some(example) => format!(
                "no record of job {job} in {folders}: there are {}, such as {example}; --from names other folders",
                heads.len()
            ),
            None => format!(
                "no record of any job in {folders}: name their folder with --from, or a database with --influx"
            ),
        }
    }

    fn tell_skipped(&self) -> u8 {
        Folders::tell_skipped(self)
    }
}
