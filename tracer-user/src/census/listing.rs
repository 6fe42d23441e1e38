//! What is installed in a folder of Python modules, read from the folders beside them (`*.dist-info`, `*.egg-info`).
//!
//! The names are parsed purely; [`read`] looks at the disk, and may hang with it: `lister.rs` waits for nobody.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use serde::{Deserialize, Serialize};

use super::aliases::{candidates, normal};

/// Bytes of a file that are read at most: lists of files are long.
const MOST_BYTES: u64 = 4 << 20;
/// Entries of a folder that are looked at.
const MOST_ENTRIES: usize = 20_000;

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Its name, as its folder spells it.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
    /// Whether it came from somebody's own folder or repository instead of an index.
    pub is_own: bool,
}

/// What is installed in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Distributions by their normal names.
    pub distributions: BTreeMap<String, Distribution>,
    /// The distributions of names that are imported, where lists of files were read.
    pub tops: BTreeMap<String, String>,
}

impl Listing {
    /// What brought the module that is imported as `name`.
    pub fn distribution(&self, name: &str) -> Option<&Distribution> {
        let of_alias = candidates(name).unwrap_or_default();
        let known = of_alias.iter().find_map(|normal| self.distributions.get(*normal));
        known
            .or_else(|| self.distributions.get(&normal(name)))
            .or_else(|| self.distributions.get(self.tops.get(name)?))
    }
}

/// Name and version in the name of a distribution's folder or file.
pub fn parse(entry: &str) -> Option<(String, Option<String>)> {
    let stem =
        [".dist-info", ".egg-info", ".egg"].iter().find_map(|end| entry.strip_suffix(end))?;
    // `numpy-1.24.2-py3.11.egg-info`, `x-1-py3.9-linux-x86_64.egg`.
    let stem = match stem.split_once("-py") {
        Some((stem, python)) if python.starts_with(|c: char| c.is_ascii_digit()) => stem,
        _ => stem,
    };
    let is_version = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let (name, version) = match stem.split_once('-') {
        Some((name, version)) if is_version(version) => (name, Some(version.to_owned())),
        Some(_) => match stem.rsplit_once('-') {
            Some((name, version)) if is_version(version) => (name, Some(version.to_owned())),
            _ => (stem, None),
        },
        None => (stem, None),
    };
    (!name.is_empty()).then(|| (name.to_owned(), version))
}

/// Name in the name of a file in a `conda-meta` folder: `numpy-1.26.4-py311h64a7726_0.json`.
pub fn parse_conda(entry: &str) -> Option<&str> {
    let (rest, _build) = entry.strip_suffix(".json")?.rsplit_once('-')?;
    Some(rest.rsplit_once('-')?.0)
}

/// The names that are imported, of a list of a distribution's files (`RECORD`).
pub fn tops(record: &str) -> BTreeSet<&str> {
    record.lines().filter_map(top).collect()
}

fn top(line: &str) -> Option<&str> {
    let path = line.split(',').next()?;
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_code = |path: &str| [".py", ".pyc", ".so"].iter().any(|end| path.ends_with(end));
    let is_module = if rest.is_empty() { is_code(first) } else { is_code(rest) };
    // `../../../bin/x` has no name, libraries beside a package are none.
    let name = first.split('.').next().filter(|name| !name.is_empty() && *name != "__pycache__")?;
    (is_module && !first.ends_with(".libs")).then_some(name)
}

/// The inode and time of change of a folder, by which a listing of it is known again.
pub fn read_age(site: &Path) -> io::Result<(u64, i64, i64)> {
    let of = fs::metadata(site)?;
    Ok((of.ino(), of.mtime(), of.mtime_nsec()))
}

/// What is installed in `site`; with the lists of files only where they are wanted.
///
/// # Errors
/// When it cannot be read.
pub fn read(site: &Path, with_files: bool) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in fs::read_dir(site)?.take(MOST_ENTRIES) {
        let entry = entry?;
        let Ok(file) = entry.file_name().into_string() else { continue };
        let Some((name, version)) = parse(&file) else { continue };
        let folder = entry.path();
        let key = normal(&name);
        // Where two are left, one of them an older install's, nobody knows which is used.
        let is_twice = listing.distributions.contains_key(&key);
        let version = version.or_else(|| read_version(&folder)).filter(|_| !is_twice);
        let is_own = is_own(&folder);
        if with_files {
            for top in read_tops(&folder) {
                listing.tops.entry(top).or_insert_with(|| key.clone());
            }
        }
        listing.distributions.insert(key, Distribution { name, version, is_own });
    }
    for name in conda_names(site) {
        if let Some(known) = listing.distributions.get_mut(&normal(&name)) {
            known.is_own = false;
        }
    }
    Ok(listing)
}

/// Whether it was not installed from an index: pip notes a folder or repository (PEP 610). What conda builds has that
/// note, too.
fn is_own(folder: &Path) -> bool {
    let path = folder.join("direct_url.json");
    if fs::symlink_metadata(&path).is_err() {
        return false;
    }
    // One that cannot be read tells of no release.
    let note = read_text(&path).unwrap_or_default();
    let by_conda = read_text(&folder.join("INSTALLER")).is_ok_and(|who| who.trim() == "conda");
    // A wheel from a server is somebody's release.
    let is_release = note.contains("\"https://") && note.contains("\"archive_info\"");
    !by_conda && !is_release
}

fn read_version(folder: &Path) -> Option<String> {
    let text = read_text(&folder.join("PKG-INFO")).ok()?;
    let version = text.lines().find_map(|line| line.strip_prefix("Version:"))?;
    Some(version.trim().to_owned())
}

fn read_tops(folder: &Path) -> Vec<String> {
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
    if let Ok(text) = read_text(&folder.join("top_level.txt")) {
        return owned(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect());
    }
    read_text(&folder.join("RECORD")).map_or_else(|_| Vec::new(), |text| owned(tops(&text)))
}

/// Names of what conda installed into the environment that `site` is of (`PREFIX/lib/python3.11/site-packages`).
fn conda_names(site: &Path) -> Vec<String> {
    let meta = site.ancestors().nth(3).map(|prefix| prefix.join("conda-meta"));
    let Some(Ok(entries)) = meta.map(fs::read_dir) else { return Vec::new() };
    let names = entries.take(MOST_ENTRIES).flatten().filter_map(|entry| {
        let file = entry.file_name();
        parse_conda(file.to_str()?).map(str::to_owned)
    });
    names.collect()
}

/// The text of a plain file, which may be anybody's: nothing else is opened, no link followed.
fn read_text(path: &Path) -> io::Result<String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
