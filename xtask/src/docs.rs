//! `cargo xtask docs`: the documents and the default configuration, written from the code's own tables.

use crate::process::say;
use anyhow::{Context, Result, bail};
use jobtrace::commands::agent::config::Config;
use std::fs;
use xtask::root;

/// Writes docs/METRICS.md from the metric tables, docs/CLI.md from the command line's definition and the
/// packages' jobtrace.toml and push.toml from the configurations' keys.
#[derive(clap::Args)]
pub struct Args {
    /// Compare with the files and write nothing
    #[arg(long)]
    pub check: bool,
}

/// Runs the chore.
///
/// # Errors
/// When a file cannot be written, or `--check` finds one out of date.
pub fn run(args: &Args) -> Result<()> {
    let documents = [
        ("docs/METRICS.md", jobtrace::docs::metrics()),
        ("docs/CLI.md", jobtrace::docs::cli()),
        ("xtask/dist/jobtrace.toml", Config::default_file()?),
        ("xtask/dist/push.toml", jobtrace::commands::push::options::Options::default_file()),
    ];
    for (name, text) in documents {
        let file = root().join(name);
        if args.check {
            let written = fs::read_to_string(&file)
                .with_context(|| format!("read {name}: run `cargo xtask docs` and commit it"))?;
            if let Some(line) = first_difference(&written, &text) {
                bail!("{name} differs from the code at line {line}: run `cargo xtask docs`");
            }
        } else {
            fs::create_dir_all(root().join("docs")).context("make the folder docs")?;
            fs::write(&file, text).with_context(|| format!("write {name}"))?;
            say(format_args!("wrote {name}"));
        }
    }
    Ok(())
}

/// The number of the first line in which the texts differ.
fn first_difference(written: &str, wanted: &str) -> Option<usize> {
    if written == wanted {
        return None;
    }
    let same = written.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("a\nb", "a\nb\n"), Some(3));
    }
}
