//! Live ring: operations on files of Python as people use it: h5py, `pip install`, and a loader of small files with worker
//! processes. Amounts are known beforehand, or by strace of the same program. The same is done beside each of them by
//! others, on the same mounts: none of it may be told.

mod h5py;
mod loader;
mod pip;

use std::{path::Path, process::Command};

use jobtrace_tests::{
    operations::{groups, sum, text},
    traced::{Traced, program},
};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// `options` of jobtrace's before `words`, with `environment`; must end well.
fn traced(environment: &[(&str, &str)], words: &[&str]) -> Traced {
    let mut start = Command::new(program().unwrap());
    start.envs(environment.iter().copied());
    let job = Traced::run_by(start, &["--io"], words);
    assert!(job.output.status.success(), "{words:?}: {:?}", job.output);
    job
}

/// The sum of `field` over the rows of `op` on `mount`.
fn of_op(job: &Traced, mount: &Path, op: &str, field: &str) -> u64 {
    let mount = mount.to_str().unwrap();
    let rows = groups(&job.json, "io").iter();
    sum(rows.filter(|row| text(row, "mount") == mount && text(row, "op") == op), field)
}

/// A number of the row of `path`.
fn of_path(job: &Traced, key: &str, path: &str, field: &str) -> u64 {
    let row = groups(&job.json, key).iter().find(|row| text(row, "path") == path);
    let row: &Value = row.unwrap_or_else(|| panic!("no {path} in {:?}", groups(&job.json, key)));
    row[field].as_u64().unwrap()
}

/// How many rows are of paths that begin like that.
fn rows_below(job: &Traced, key: &str, begin: &str) -> u64 {
    let rows = groups(&job.json, key).iter();
    rows.filter(|row| text(row, "path").starts_with(begin)).count() as u64
}
