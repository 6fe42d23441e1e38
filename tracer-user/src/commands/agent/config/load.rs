//! From the file's text and the flags to a configuration, or to complaints that name file, line, key,
//! value and cure. [`load`] alone opens the file.

use std::{ops::Range, path::Path};

use anyhow::{Result, bail};
use toml::{
    Spanned,
    de::{DeTable, DeValue, Error},
};

use super::{Config, Flags, keys};
use crate::base::{
    config_file::{self, ConfigFile},
    suggest,
    text::clean,
};

/// What is read where `--config` names nothing else.
pub const DEFAULT_FILE: &str = "/etc/jobtrace/jobtrace.toml";

/// Longest part of a wrong value that is quoted.
const QUOTED_CHARS: usize = 60;

/// The effective configuration: defaults, the file over them, the flags over that. The default file
/// may be absent.
///
/// # Errors
/// When the file cannot be read, or anything in it or in the flags is wrong: all that is.
pub fn load(file: Option<&Path>, flags: &Flags) -> Result<Config> {
    let mut config = match config_file::read(file, DEFAULT_FILE)? {
        Some((text, path)) => parse(&text, path)?,
        None => Config::default(),
    };
    flags.lay_over(&mut config);
    let found = config.problems();
    if !found.is_empty() {
        let lines: Vec<_> = found.iter().map(|(path, why)| complaint(path, why)).collect();
        bail!("with the command-line options: {}", lines.join("\n"));
    }
    Ok(config)
}

/// The configuration that `text` gives; `name` is what complaints call it.
///
/// # Errors
/// Everything that is wrong, a line each: `FILE:LINE:COLUMN: …`.
pub fn parse(text: &str, name: &Path) -> Result<Config> {
    let file = ConfigFile::parse(text, name)?;
    let mut unknown = Vec::new();
    find_unknown(file.table(), "", &mut unknown);
    file.refuse(&unknown)?;
    let config: Config = file.values(|error, why| wrong_value(&file, error, &why))?;
    let told = |(path, why): (&str, String)| match span_of(file.table(), path) {
        Some(span) => file.complaint(span.start, &complaint(path, &why)),
        None => format!("{}: {}", name.display(), complaint(path, &why)),
    };
    let lines: Vec<_> = config.problems().into_iter().map(told).collect();
    if !lines.is_empty() {
        bail!(lines.join("\n"));
    }
    Ok(config)
}

/// `` `slots`: 2000 is not …; allowed: … ``
fn complaint(path: &str, why: &str) -> String {
    let allowed = keys::find(path).map_or("", |key| &key.allowed);
    clean(&format!("`{path}`: {why}; allowed: {allowed}"), true)
}

/// A value of the wrong kind, with its key, itself and what is allowed.
fn wrong_value(file: &ConfigFile<'_>, error: &Error, why: &str) -> String {
    let span = error.span().unwrap_or(0..0);
    let quoted: String = file.quote(span.clone()).chars().take(QUOTED_CHARS).collect();
    let path = path_at(file.table(), "", &span).unwrap_or_default();
    let key = keys::find(&path).or_else(|| keys::find(path.rsplit_once('.')?.0));
    let allowed = key.map_or(String::new(), |key| format!("; allowed: {}", key.allowed));
    format!("`{path}` = {quoted}: {why}{allowed}")
}

/// Every key below `table` that nobody knows: where it is and what to say.
fn find_unknown(table: &DeTable<'_>, path: &str, found: &mut Vec<(usize, String)>) {
    let Some(names) = keys::names(path) else {
        // Names of the site's own: a dot in one makes a table of it.
        for (key, value) in table.iter().filter(|(_, value)| value.get_ref().is_table()) {
            let DeValue::Table(inner) = value.get_ref() else { continue };
            let rest = inner.keys().next().map_or("", |key| key.get_ref().as_ref());
            let name = format!("{}.{rest}", key.get_ref());
            found.push((
                key.span().start,
                format!("`{path}.{name}` is a key in a table: a name with a dot is \"{name}\", in quotes"),
            ));
        }
        return;
    };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let full = join(path, name);
        if !names.contains(&name) {
            let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
            let cure = cure(name, &full, &names);
            let word: String = name.chars().take(QUOTED_CHARS).collect();
            found.push((key.span().start, format!("unknown key `{word}`{place}{cure}")));
            continue;
        }
        let names_of = keys::names(&full).unwrap_or_default();
        let is_section = keys::find(&full).is_none() && !names_of.is_empty();
        match value.get_ref() {
            DeValue::Table(inner) => find_unknown(inner, &full, found),
            _ if is_section => {
                found.push((key.span().start, format!("`{full}` is a table: write [{full}]")));
            }
            DeValue::Array(items) => {
                for item in items.iter() {
                    match item.get_ref() {
                        DeValue::Table(inner) => find_unknown(inner, &full, found),
                        _ if !names_of.is_empty() => {
                            let what = format!("each `{full}` is a table: write [[{full}]]");
                            found.push((item.span().start, what));
                        }
                        _ => {}
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
        Some((_, ("", leaf))) => {
            format!(", did you mean `{leaf}` at the top of the file, before any table?")
        }
        Some((path, (table, _))) => format!(", did you mean `{path}`, in the table `[{table}]`?"),
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
