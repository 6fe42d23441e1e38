//! push.toml: read, checked, laid below the command line.

use std::{fs, io, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use super::{
    Args,
    options::{self, Options},
};
use crate::base::{
    suggest,
    text::{clean, position},
};

/// What is read where `--config` names nothing else.
const DEFAULT_FILE: &str = "/etc/jobtrace/push.toml";

/// The options with the file below them. The default file may be absent, and is left alone where the
/// command line names a server: its secrets are another one's.
///
/// # Errors
/// When the file cannot be read, or something in it is wrong.
pub fn load(args: &Args) -> Result<Options> {
    let own = args.options.clone();
    let path = match &args.config {
        Some(path) => path.as_path(),
        None if own.url.is_some() => return Ok(own),
        None => Path::new(DEFAULT_FILE),
    };
    match fs::read_to_string(path) {
        Ok(text) => Ok(own.or(parse(&text, path)?)),
        Err(error) if args.config.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(own),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// The options that `text` gives; `name` is what complaints call it.
///
/// # Errors
/// What is wrong, a line each: `FILE:LINE:COLUMN: …`.
pub fn parse(text: &str, name: &Path) -> Result<Options> {
    let at = |place: usize, what: &str| {
        let (line, column) = position(text, place);
        format!("{}:{line}:{column}: {}", name.display(), clean(what, true))
    };
    let told = |error: &toml::de::Error| {
        at(error.span().map_or(0, |span| span.start), &error.message().replace('\n', ", "))
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => bail!(told(&error)),
    };
    let keys = options::keys();
    let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    let unknown =
        table.get_ref().iter().filter(|(key, _)| !names.contains(&key.get_ref().as_ref()));
    let lines: Vec<_> = unknown
        .map(|(key, _)| {
            let word = key.get_ref().as_ref();
            let cure = match word {
                "token" | "password" => {
                    format!(": it stands in a file of its own, which `{word}_file` names")
                }
                _ => suggest::cure(word, names.iter().copied()),
            };
            at(key.span().start, &format!("unknown key `{word}`{cure}"))
        })
        .collect();
    if !lines.is_empty() {
        bail!(lines.join("\n"));
    }
    match Options::deserialize(Deserializer::from(table.clone())) {
        Ok(options) => Ok(options),
        Err(error) => bail!(told(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_options() {
        let text = "url = \"https://h\"\napi = \"v3\"\ntimeout = \"10s\"\nmax_body = \"1 MiB\"\n";
        let options = parse(text, Path::new("f")).unwrap();
        assert_eq!(options.url.as_deref(), Some("https://h"));
        assert_eq!(options.max_body.map(|size| size.0), Some(1 << 20));
        assert_eq!(parse(&Options::default_file(), Path::new("f")).unwrap(), Options::default());
        let all = options.to_text();
        assert_eq!(parse(&all, Path::new("f")).unwrap(), options, "{all}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, expected) in [
            ("\nurll = \"x\"", "f:2:1: unknown key `urll`, did you mean `url`?"),
            ("token = \"x\"", "f:1:1: unknown key `token`: it stands in a file of its own"),
            ("tokenfile = \"x\"", "f:1:1: unknown key `tokenfile`, did you mean `token_file`?"),
            ("url = 1", "f:1:7: "),
            ("timeout = \"soon\"", "f:1:11: \"soon\" is no time"),
            ("api = \"v4\"", "f:1:7: "),
            ("url", "f:1:4: "),
        ] {
            let error = parse(text, Path::new("f")).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
