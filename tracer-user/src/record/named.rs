//! The runs that a command line names: by the id or the name of a job, or by files of records.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::{
    folders::Folders,
    head::Head,
    select::{Run, is_named, runs},
};

/// Whether `name` is that of a file: what has a slash or ends like a record, or what there is a file of.
pub fn is_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".json.gz") || Path::new(name).is_file()
}

/// All heads in `folders`, for [`runs_of`].
///
/// # Errors
/// When a folder is not there; the message names the cure.
pub fn heads(folders: &Folders) -> Result<Vec<(PathBuf, Head)>> {
    folders.heads(|_| true)
}

/// The runs of `job` among `heads`, the last one last; there is at least one.
///
/// # Errors
/// When there is none; the message names what there is, and the cure.
pub fn runs_of(job: &str, heads: &[(PathBuf, Head)], folders: &Folders) -> Result<Vec<Run>> {
    let of_job = heads.iter().filter(|(_, head)| is_named(head, job));
    let runs = runs(of_job.cloned().collect());
    if runs.is_empty() {
        bail!("{}", none(job, heads, folders));
    }
    Ok(runs)
}

fn none(job: &str, heads: &[(PathBuf, Head)], folders: &Folders) -> String {
    let folders = folders.in_words();
    let known = heads.iter().filter_map(|(_, head)| head.job.as_deref());
    match known.max() {
        Some(example) => format!(
            "no record of job {job} in {folders}: there are {}, such as {example}; --from names other folders",
            heads.len()
        ),
        None => format!("no record of any job in {folders}: name their folder with --from"),
    }
}
