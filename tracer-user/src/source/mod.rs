//! Where reports, lists and sums come from: folders of records, or the site's database with the agents' lines. Both
//! answer the same questions with heads and records, so that everything after them is one path.
//!
//! Refuses to add anything up: `report` does.

pub mod influx;

use std::{
    cell::OnceCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use self::influx::Influx;
use crate::record::{
    Record,
    days::{Days, Wanted},
    find,
    folders::Folders,
    head::{Head, HeadIn},
    name::EXTENSION,
    select::{Run, is_named, runs},
};

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
    pub fn open(&self) -> Result<Source<'_>> {
        Ok(match Influx::open(&self.influx)? {
            Some(influx) => Source::Influx(Box::new(influx)),
            None => Source::Folders(&self.folders, OnceCell::new()),
        })
    }
}

/// A source of jobs.
pub enum Source<'a> {
    /// Folders, and their days once they are listed.
    Folders(&'a Folders, OnceCell<Days>),
    /// A database.
    Influx(Box<Influx>),
}

impl Source<'_> {
    /// The days (`2026-11-22`, UTC) with jobs that were seen since `since_ns` (Unix time), the newest first. Of folders
    /// all: a record lies in the day of its begin, whenever it was seen last.
    ///
    /// # Errors
    /// When there is no such source; the message names the cure.
    pub fn days(&self, since_ns: u64) -> Result<Vec<String>> {
        match self {
            Self::Folders(folders, days) => {
                Ok(listed(folders, days)?.names().into_iter().map(str::to_owned).collect())
            }
            Self::Influx(influx) => influx.days(since_ns),
        }
    }

    /// Adds up the heads that are `wanted`: `add` gets each with the folder of its record, if any, and something `new`
    /// for some of them, and gives whether it counts; `take` what became of it, by day. Of several calls the newest days
    /// come first.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn fold<T: Send>(
        &self,
        wanted: &Wanted,
        new: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, &Path, &HeadIn) -> bool + Sync,
        mut take: impl FnMut(T),
    ) -> Result<()> {
        match self {
            Self::Folders(folders, days) => {
                folders.fold(listed(folders, days)?, wanted, new, add, take);
            }
            Self::Influx(influx) => {
                let mut sum = new();
                influx.visit(wanted, &mut |head| {
                    add(&mut sum, Path::new(""), &HeadIn::from(&head));
                })?;
                take(sum);
            }
        }
        Ok(())
    }

    /// The heads that are `wanted`, and of which `is_wanted` says so.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn heads(
        &self,
        wanted: &Wanted,
        is_wanted: impl Fn(&HeadIn) -> bool + Sync,
    ) -> Result<Vec<(PathBuf, Head)>> {
        match self {
            Self::Folders(folders, days) => {
                Ok(folders.heads(listed(folders, days)?, wanted, is_wanted))
            }
            Self::Influx(influx) => {
                let mut heads = Vec::new();
                influx.visit(wanted, &mut |head| heads.push((PathBuf::new(), head)))?;
                heads.retain(|(_, head)| is_wanted(&HeadIn::from(head)));
                Ok(heads)
            }
        }
    }

    /// The runs that were seen from `since_ns` on, each whole, of heads that are wanted: of one job all are or none.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn runs(
        &self,
        since_ns: u64,
        is_wanted: impl Fn(&HeadIn) -> bool + Sync,
    ) -> Result<Vec<Run>> {
        match self {
            Self::Folders(folders, days) => {
                Ok(folders.runs(listed(folders, days)?, since_ns, is_wanted))
            }
            Self::Influx(_) => {
                let wanted = Wanted { since_ns, ..Wanted::default() };
                let mut runs = runs(self.heads(&wanted, is_wanted)?);
                runs.retain(|run| run.seen_ns() >= since_ns);
                Ok(runs)
            }
        }
    }

    /// The heads of the jobs that are called one of `jobs`: by id, id and step, or name.
    ///
    /// # Errors
    /// As [`Self::days`].
    pub fn named(&self, jobs: &[&String]) -> Result<Vec<(PathBuf, Head)>> {
        match self {
            Self::Folders(folders, days) => {
                let texts: Vec<_> = jobs.iter().map(|job| text_of(job)).collect();
                let texts = texts.iter().map(|text| &**text).collect();
                let wanted = Wanted { texts, ..Wanted::default() };
                let is_any = |head: &HeadIn| jobs.iter().any(|job| is_named(head, job));
                Ok(folders.heads(listed(folders, days)?, &wanted, is_any))
            }
            Self::Influx(influx) => influx.named(jobs),
        }
    }

    /// The records of a run.
    ///
    /// # Errors
    /// When none of them can be had.
    pub fn read(&self, run: &Run) -> Result<Vec<Record>> {
        match self {
            Self::Folders(folders, _) => folders.read(run),
            Self::Influx(influx) => influx.read(run),
        }
    }

    /// What `make` makes of the records of each of `runs`, in their order; nothing of a run whose records cannot be had.
    ///
    /// # Errors
    /// When the database does not answer. Files that cannot be read are told by [`Self::tell_skipped`].
    pub fn each<T: Send>(
        &self,
        runs: &[Run],
        make: impl Fn(Vec<Record>) -> T + Sync,
    ) -> Result<Vec<T>> {
        match self {
            Self::Folders(folders, _) => Ok(folders.each(runs, make)),
            Self::Influx(influx) => runs.iter().map(|run| influx.read(run).map(&make)).collect(),
        }
    }

    /// What to say where nothing is known of `job`, cure included.
    pub fn unknown(&self, job: &str) -> String {
        let unknown = match self {
            Self::Folders(folders, days) => unknown(folders, days, job),
            Self::Influx(influx) => influx.unknown(job),
        };
        unknown + &no_file(job)
    }

    /// Says what could not be read, or was left out; gives the exit status: 1 where something is damaged.
    pub fn tell_skipped(&self) -> u8 {
        match self {
            Self::Folders(folders, _) => folders.tell_skipped(),
            Self::Influx(_) => 0,
        }
    }
}

/// The days of `folders`, listed once.
fn listed<'a>(folders: &Folders, days: &'a OnceCell<Days>) -> Result<&'a Days> {
    match days.get() {
        Some(days) => Ok(days),
        None => {
            let listed = folders.days()?;
            Ok(days.get_or_init(|| listed))
        }
    }
}

/// A text that the line of each head has that is of the job of this name: what comes before a step, as JSON writes it.
fn text_of(job: &str) -> String {
    let id = job.split('.').next().unwrap_or_default();
    let json = serde_json::Value::from(id).to_string();
    json.trim_matches('"').to_owned()
}

fn unknown(folders: &Folders, days: &OnceCell<Days>, job: &str) -> String {
    let all = listed(folders, days).map(|days| folders.heads(days, &Wanted::default(), |_| true));
    let (heads, folders) = (all.unwrap_or_default(), folders.in_words());
    let ids = || heads.iter().filter_map(|(_, head)| head.job.as_deref());
    if let Some(related) = related(ids, job) {
        return format!("no record of {job} by itself in {folders}: {related}");
    }
    match ids().max() {
        Some(example) => format!(
            "no record of job {job} in {folders}: there are {}, such as {example}; --from names other folders",
            heads.len()
        ),
        None => format!(
            "no record of any job in {folders}: name their folder with --from, or a database with --influx"
        ),
    }
}

/// What there is of an array whose jobs have ids of their own, or of the job of a step that has none.
fn related<'a, Ids: Iterator<Item = &'a str>>(ids: impl Fn() -> Ids, job: &str) -> Option<String> {
    let of_array = |id: &&str| id.strip_prefix(job).is_some_and(|rest| rest.starts_with('_'));
    if let Some(first) = ids().filter(of_array).min() {
        let number = ids().filter(of_array).collect::<BTreeSet<_>>().len();
        return Some(match number {
            1 => format!("of its array there is {first}: name that"),
            _ => format!("of its array there are {number}, such as {first}: name one of them"),
        });
    }
    let (whole, _) = job.split_once('.')?;
    ids().any(|id| id == whole).then(|| format!("its steps are in the report of job {whole}"))
}

/// Whether `name` is that of a file: what ends like a record, or what there is a file of. Jobs' ids may have slashes.
pub fn is_file(name: &str) -> bool {
    name.ends_with(EXTENSION) || Path::new(name).is_file()
}

/// The record in the file of this name.
///
/// # Errors
/// As [`find::read`]; the message says why a file was looked for.
pub fn read_file(name: &str) -> Result<Record> {
    find::read(Path::new(name)).with_context(|| match name.ends_with(EXTENSION) {
        true => format!("{name} was taken for a file, as it ends in {EXTENSION}"),
        false => format!(
            "{name} was taken for a file, as there is one of that name: in another folder it is the name of a job"
        ),
    })
}

/// What to add where nothing is known of a job whose name may have been meant as that of a file.
fn no_file(name: &str) -> String {
    match Path::new(name).is_dir() {
        true => format!("; {name} is a folder: name it with --from, and a job that is in it"),
        false if name.contains('/') => format!("; there is no file {name} either"),
        false => String::new(),
    }
}

/// The runs of `job` among `heads`, which `source` gave, the last one last; there is at least one.
///
/// # Errors
/// When there is none; the message names the cure.
pub fn runs_of(job: &str, heads: &[(PathBuf, Head)], source: &Source) -> Result<Vec<Run>> {
    let of_job = heads.iter().filter(|(_, head)| is_named(head, job));
    let runs = runs(of_job.cloned().collect());
    if runs.is_empty() {
        bail!("{}", source.unknown(job));
    }
    Ok(runs)
}
