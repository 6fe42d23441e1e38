//! A configuration file: read, and what is wrong in it told with its place. Knows no key; what is allowed
//! and what was meant is its reader's affair.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, Deserializer, Error},
};

use super::text::{clean, position};

/// The text of the file that was `named`, else of `default`, which may be absent; with its path.
///
/// # Errors
/// When it cannot be read.
pub fn read<'a>(named: Option<&'a Path>, default: &'a str) -> Result<Option<(String, &'a Path)>> {
    let path = named.unwrap_or(Path::new(default));
    match read_bounded(path) {
        Ok(text) => Ok(Some((text, path))),
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Nobody writes longer ones; devices have no end.
const MOST_BYTES: u64 = 1 << 20;

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let length = File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if length as u64 > MOST_BYTES {
        let what = format!("it is longer than {} KiB: no file of settings", MOST_BYTES >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(text)
}

/// A file's text as TOML.
pub struct ConfigFile<'a> {
    text: &'a str,
    name: &'a Path,
    table: Spanned<DeTable<'a>>,
}

impl<'a> ConfigFile<'a> {
    /// Of `text`; `name` is what complaints call it.
    ///
    /// # Errors
    /// When it is no TOML.
    pub fn parse(text: &'a str, name: &'a Path) -> Result<Self> {
        match DeTable::parse(text) {
            Ok(table) => Ok(Self { text, name, table }),
            Err(error) => bail!(place(text, name, begin(&error), &one_line(&error))),
        }
    }

    /// Its keys and values.
    pub fn table(&self) -> &DeTable<'a> {
        self.table.get_ref()
    }

    /// Its text from byte `span.start` to `span.end`.
    pub fn quote(&self, span: std::ops::Range<usize>) -> &str {
        self.text.get(span).unwrap_or("")
    }

    /// A complaint about the byte at `at`: `FILE:LINE:COLUMN: …`.
    pub fn complaint(&self, at: usize, what: &str) -> String {
        place(self.text, self.name, at, what)
    }

    /// Refuses the file for each of `mistakes`, the byte it is at and what it is.
    ///
    /// # Errors
    /// When there is one: all of them, a line each.
    pub fn refuse(&self, mistakes: &[(usize, String)]) -> Result<()> {
        if mistakes.is_empty() {
            return Ok(());
        }
        let lines = mistakes.iter().map(|(at, what)| self.complaint(*at, what));
        bail!(lines.collect::<Vec<_>>().join("\n"))
    }

    /// What it says.
    ///
    /// # Errors
    /// When a value is of the wrong kind: where it is, and what `explain` makes of the reason.
    pub fn values<T: DeserializeOwned>(
        &self,
        explain: impl FnOnce(&Error, String) -> String,
    ) -> Result<T> {
        T::deserialize(Deserializer::from(self.table.clone())).map_err(|error| {
            let what = explain(&error, one_line(&error));
            anyhow::Error::msg(self.complaint(begin(&error), &what))
        })
    }
}

fn begin(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

fn one_line(error: &Error) -> String {
    error.message().replace('\n', ", ")
}

fn place(text: &str, name: &Path, at: usize, what: &str) -> String {
    let (line, column) = position(text, at);
    format!("{}:{line}:{column}: {}", name.display(), clean(what, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_nobody_named_may_be_absent() {
        assert!(read(None, "/nowhere/a.toml").unwrap().is_none());
        let error = read(Some(Path::new("/nowhere/b.toml")), "/nowhere/a.toml").unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nowhere/b.toml");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let error = read(Some(Path::new("/dev/zero")), "").unwrap_err();
        assert!(format!("{error:#}").contains("longer than 1024 KiB"), "{error:#}");
    }

    #[test]
    fn mistakes_are_told_with_their_places() {
        let file = ConfigFile::parse("a = 1\nb = \"c\"\n", Path::new("f")).unwrap();
        let said = file.refuse(&[(0, "one".into()), (10, "a\x1bb".into())]).unwrap_err();
        assert_eq!(said.to_string(), "f:1:1: one\nf:2:5: a?b");
        file.refuse(&[]).unwrap();
        let said = file.values::<std::collections::BTreeMap<String, u32>>(|_, why| why);
        assert!(said.unwrap_err().to_string().starts_with("f:2:5: invalid type"));
        assert!(ConfigFile::parse("a = ", Path::new("f")).is_err());
    }
}
