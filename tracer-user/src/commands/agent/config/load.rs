//! From the file's text and the flags to a configuration, or to complaints that name file, line, key,
//! value and cure. [`load`] alone opens the file.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};

use super::{Config, Hierarchy, Profile, Time, keys};
use crate::{
    base::{
        suggest,
        text::{clean, position},
    },
    probes::FaultMode,
};

/// What is read where `--config` names nothing else.
pub const DEFAULT_FILE: &str = "/etc/jobtrace/jobtrace.toml";

/// Longest part of a wrong value that is quoted.
const QUOTED_CHARS: usize = 60;

/// Options that stand above the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Name of the cluster, a tag of every line
    #[arg(long)]
    pub cluster: Option<String>,
    /// Time between two readings, whole seconds
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Time>,
    /// Which page faults are timed
    #[arg(long, value_enum)]
    pub faults: Option<FaultMode>,
    /// The cgroup hierarchy whose cgroups are jobs: auto, v2 or a v1 controller
    #[arg(long)]
    pub hierarchy: Option<Hierarchy>,
    /// Jobs traced at once
    #[arg(long, value_name = "N")]
    pub slots: Option<u32>,
    /// Folder of the finished files
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// What is written of each job
    #[arg(long, value_enum)]
    pub profile: Option<Profile>,
    /// Let the probes go on counting while the agent is restarted
    #[arg(long, overrides_with = "no_pin")]
    pub pin: bool,
    /// Let the probes end with the agent, whatever the file says
    #[arg(long, overrides_with = "pin")]
    pub no_pin: bool,
}

impl Flags {
    /// Puts what was given over `config`.
    fn apply(&self, config: &mut Config) {
        fn put<T: Clone>(flag: Option<&T>, place: &mut T) {
            if let Some(value) = flag {
                *place = value.clone();
            }
        }
        put(self.cluster.as_ref(), &mut config.cluster);
        put(self.interval.as_ref(), &mut config.interval);
        put(self.faults.as_ref(), &mut config.faults);
        put(self.hierarchy.as_ref(), &mut config.hierarchy);
        put(self.slots.as_ref(), &mut config.slots);
        put(self.spool.as_ref(), &mut config.spool.dir);
        put(self.profile.as_ref(), &mut config.export.profile);
        if self.pin || self.no_pin {
            config.pin = self.pin;
        }
    }
}

/// The effective configuration: defaults, the file over them, the flags over that. The default file
/// may be absent.
///
/// # Errors
/// When the file cannot be read, or anything in it or in the flags is wrong: all that is.
pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Config> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let mut config = match fs::read_to_string(path) {
        Ok(text) => parse(&text, path)?,
        Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => {
            Config::default()
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    flags.apply(&mut config);
    let found = config.problems();
    if !found.is_empty() {
        let lines: Vec<_> = found.iter().map(|(path, why)| complaint(path, why)).collect();
        bail!("with the options of the command line: {}", lines.join("\n"));
    }
    Ok(config)
}

/// The configuration that `text` gives; `name` is what complaints call it.
///
/// # Errors
/// Everything that is wrong, a line each: `FILE:LINE:COLUMN: …`.
pub fn parse(text: &str, name: &Path) -> Result<Config> {
    let at = |place: usize, what: &str| {
        let (line, column) = position(text, place);
        format!("{}:{line}:{column}: {what}", name.display())
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => bail!(at(error.span().map_or(0, |span| span.start), &one_line(&error))),
    };
    let mut unknown = Vec::new();
    find_unknown(table.get_ref(), "", &mut unknown);
    if !unknown.is_empty() {
        let lines: Vec<_> = unknown.iter().map(|(place, what)| at(*place, what)).collect();
        bail!(lines.join("\n"));
    }
    let config = match Config::deserialize(Deserializer::from(table.clone())) {
        Ok(config) => config,
        Err(error) => bail!(wrong_value(text, table.get_ref(), &error, at)),
    };
    let lines: Vec<_> = config
        .problems()
        .iter()
        .map(|(path, why)| {
            let what = complaint(path, why);
            match span_of(table.get_ref(), path) {
                Some(span) => at(span.start, &what),
                None => format!("{}: {what}", name.display()),
            }
        })
        .collect();
    if !lines.is_empty() {
        bail!(lines.join("\n"));
    }
    Ok(config)
}

/// `` `slots`: 2000 is not …; allowed: … ``
fn complaint(path: &str, why: &str) -> String {
    let allowed = keys::find(path).map_or("", |key| key.allowed);
    clean(&format!("`{path}`: {why}; allowed: {allowed}"), true)
}

/// A value of the wrong kind, with its key, itself and what is allowed.
fn wrong_value(
    text: &str,
    table: &DeTable<'_>,
    error: &toml::de::Error,
    at: impl Fn(usize, &str) -> String,
) -> String {
    let span = error.span().unwrap_or(0..0);
    let quoted: String = text.get(span.clone()).unwrap_or("").chars().take(QUOTED_CHARS).collect();
    let path = path_at(table, "", &span).unwrap_or_default();
    let key = keys::find(&path).or_else(|| keys::find(path.rsplit_once('.')?.0));
    let allowed = key.map_or(String::new(), |key| format!("; allowed: {}", key.allowed));
    let what = format!("`{path}` = {quoted}: {}{allowed}", one_line(error));
    at(span.start, &clean(&what, true))
}

fn one_line(error: &toml::de::Error) -> String {
    clean(&error.message().replace('\n', ", "), true)
}

/// Every key below `table` that nobody knows: where it is and what to say.
fn find_unknown(table: &DeTable<'_>, path: &str, found: &mut Vec<(usize, String)>) {
    let Some(names) = keys::names(path) else { return };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let full = join(path, name);
        if !names.contains(&name) {
            let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
            let cure = cure(name, &full, &names);
            let word: String = name.chars().take(QUOTED_CHARS).collect();
            let what = clean(&format!("unknown key `{word}`{place}{cure}"), true);
            found.push((key.span().start, what));
            continue;
        }
        match value.get_ref() {
            DeValue::Table(inner) => find_unknown(inner, &full, found),
            DeValue::Array(items) => {
                for item in items.iter() {
                    if let DeValue::Table(inner) = item.get_ref() {
                        find_unknown(inner, &full, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// What an unknown `name` was meant to be: a name of this table, else a key of another one, as when a
/// line stands below the wrong head.
fn cure(name: &str, full: &str, names: &[&'static str]) -> String {
    let elsewhere = keys::KEYS.iter().filter(|key| key.path != full);
    let leaves = elsewhere.clone().map(|key| key.split().1);
    let moved = elsewhere.clone().find(|key| key.split().1 == name).or_else(|| {
        let here = suggest::nearest(name, names.iter().copied());
        let leaf = if here.is_none() { suggest::nearest(name, leaves) } else { None };
        elsewhere.clone().find(|key| Some(key.split().1) == leaf)
    });
    match moved.map(|key| (key.path, key.split())) {
        Some((_, ("", leaf))) => format!(", did you mean `{leaf}` above all tables?"),
        Some((path, (table, _))) => format!(", did you mean `{path}`, below `[{table}]`?"),
        None => suggest::cure(name, names.iter().copied()),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Path of the innermost key whose value holds `span`.
fn path_at(table: &DeTable<'_>, path: &str, span: &Range<usize>) -> Option<String> {
    let within = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    table.iter().find_map(|(key, value)| {
        let full = join(path, key.get_ref());
        let inner = match value.get_ref() {
            // A table's own span is its head; its values lie below.
            DeValue::Table(inner) => path_at(inner, &full, span),
            DeValue::Array(items) => items.iter().find_map(|item| match item.get_ref() {
                DeValue::Table(inner) => path_at(inner, &full, span),
                _ => None,
            }),
            _ => None,
        };
        inner.or_else(|| within(value.span()).then_some(full))
    })
}

/// Where the value at `path` is.
fn span_of(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let value: &Spanned<DeValue<'_>> = table.get(first)?;
    match (rest, value.get_ref()) {
        (None, DeValue::Array(items)) => items.iter().next().map(Spanned::span),
        (None, _) => Some(value.span()),
        (Some(rest), DeValue::Table(inner)) => span_of(inner, rest),
        _ => None,
    }
}
