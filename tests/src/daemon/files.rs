//! What an agent wrote: finished files, read by the official parser of line protocol, and their points.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use flate2::read::MultiGzDecoder;
pub use jobtrace::model::point::FieldValue as Value;
use jobtrace::{lines::read, model::point::Point};

/// What tells points apart: measurement, tags, stamp in nanoseconds.
pub type Series = (String, BTreeMap<String, String>, i64);

/// Points by their series and stamp, with their fields; several lines may make one.
pub type Points = BTreeMap<Series, BTreeMap<String, Value>>;

/// The `.lp.gz` files in `folder`, in the order of their names: that of their writing.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".lp.gz") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The text of a file, which must be whole.
///
/// # Errors
/// When its end is missing.
pub fn text(file: &Path) -> Result<String> {
    let mut text = String::new();
    let read = MultiGzDecoder::new(File::open(file)?).read_to_string(&mut text);
    read.with_context(|| format!("{} is not whole", file.display()))?;
    ensure!(text.ends_with('\n'), "{} ends within a line", file.display());
    Ok(text)
}

/// Adds the points of line protocol to `all`; no field may be there already.
///
/// # Errors
/// When a line is none of ours, or a field of a point comes twice.
pub fn add(text: &str, all: &mut Points) -> Result<()> {
    for point in read::points(text) {
        let Point { measurement, tags, fields, time_ns } = point?;
        let tags = tags.into_iter().map(|(key, value)| (key.into_owned(), value)).collect();
        let series = (measurement.into_owned(), tags, time_ns as i64);
        let point = all.entry(series.clone()).or_default();
        for (key, value) in fields {
            let twice = point.insert(key.to_string(), value);
            ensure!(twice.is_none(), "{key} of {series:?} comes twice");
        }
    }
    Ok(())
}

/// All points of all files in `folder`: each file whole, each point once.
///
/// # Errors
/// When one is not.
pub fn points(folder: &Path) -> Result<Points> {
    let mut all = Points::new();
    for file in list(folder)? {
        add(&text(&file)?, &mut all).with_context(|| format!("in {}", file.display()))?;
    }
    Ok(all)
}

/// Sum of an integer field over the points of `measurement` whose tag `job` is `job`.
pub fn sum(points: &Points, measurement: &str, job: &str, field: &str) -> u64 {
    let of_job = points.iter().filter(|((name, tags, _), _)| {
        name == measurement && tags.get("job").is_some_and(|value| value == job)
    });
    let values = of_job.filter_map(|(_, fields)| match fields.get(field) {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    });
    values.sum()
}

/// The intervals that `jobtrace_self` tells of: stamp and length, in their order.
pub fn intervals(points: &Points) -> Vec<(u64, u64)> {
    let own = points.iter().filter(|((name, ..), _)| name == "jobtrace_self");
    let interval = |((_, _, stamp), fields): (&Series, &BTreeMap<String, Value>)| {
        let Some(Value::Integer(span)) = fields.get("interval_ns") else {
            panic!("no interval_ns in {fields:?}");
        };
        (*stamp as u64, *span)
    };
    let mut found: Vec<_> = own.map(interval).collect();
    found.sort();
    found
}

/// The jobs that `measurement` has points of.
pub fn jobs(points: &Points, measurement: &str) -> BTreeSet<String> {
    let of_it = points.keys().filter(|(name, ..)| name == measurement);
    of_it.filter_map(|(_, tags, _)| tags.get("job").cloned()).collect()
}
