//! push.toml: read, checked, laid below the command line.

use std::path::Path;

use anyhow::Result;

use super::{
    Args,
    options::{self, Options},
};
use crate::base::{
    config_file::{self, ConfigFile},
    suggest,
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
    if args.config.is_none() && own.url.is_some() {
        return Ok(own);
    }
    match config_file::read(args.config.as_deref(), DEFAULT_FILE)? {
        Some((text, path)) => Ok(own.or(parse(&text, path)?)),
        None => Ok(own),
    }
}

/// The options that `text` gives; `name` is what complaints call it.
///
/// # Errors
/// What is wrong, a line each: `FILE:LINE:COLUMN: …`.
pub fn parse(text: &str, name: &Path) -> Result<Options> {
    let file = ConfigFile::parse(text, name)?;
    let keys = options::keys();
    let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
    let unknown = file.table().keys().filter(|key| !names.contains(&key.get_ref().as_ref()));
    let unknown = unknown.map(|key| {
        let word = key.get_ref().as_ref();
        let cure = match word {
            "token" | "password" => {
                format!(": put it into a file of its own, which `{word}_file` names")
            }
            _ => suggest::cure(word, names.iter().copied()),
        };
        (key.span().start, format!("unknown key `{word}`{cure}"))
    });
    file.refuse(&unknown.collect::<Vec<_>>())?;
    file.values(|_, why| why)
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
            ("token = \"x\"", "f:1:1: unknown key `token`: put it into a file of its own"),
            ("tokenfile = \"x\"", "f:1:1: unknown key `tokenfile`, did you mean `token_file`?"),
            ("url = 1", "f:1:7: "),
            ("timeout = \"soon\"", "f:1:11: \"soon\" is not a time"),
            ("api = \"v4\"", "f:1:7: "),
            ("url", "f:1:4: "),
        ] {
            let error = parse(text, Path::new("f")).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
