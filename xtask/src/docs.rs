//! `cargo xtask docs`: documents, the default configuration and Grafana's dashboards, written from the code's
//! own tables.

use crate::process::say;
use anyhow::{Context, Result, bail};
use jobtrace::{
    census,
    commands::{agent::config::Config, push::options::Options},
    report::usage::policies,
};
use std::fs;
use xtask::{grafana, root, sections};

/// Writes docs/METRICS.md, docs/RECORD.md and docs/FINDINGS.md from their tables, docs/CLI.md from the command line's definition, the
/// packages' jobtrace.toml and push.toml from the configurations' keys, policies.toml from its measures, software.toml
/// from the census's rules, and docs/grafana: dashboards in InfluxQL, Flux, SQL and PromQL, from one description.
#[derive(clap::Args)]
pub struct Args {
    /// Compare with the files and write nothing
    #[arg(long)]
    pub check: bool,
}

/// Runs the chore.
///
/// # Errors
/// When a dashboard names a field that is in no table, a file cannot be written, or `--check` finds one out
/// of date.
pub fn run(args: &Args) -> Result<()> {
    let mut documents = vec![
        ("docs/METRICS.md".to_owned(), jobtrace::docs::metrics()),
        ("docs/RECORD.md".to_owned(), jobtrace::docs::record()),
        ("docs/FINDINGS.md".to_owned(), jobtrace::docs::findings()),
        ("docs/CLI.md".to_owned(), jobtrace::docs::cli()),
        ("xtask/dist/jobtrace.toml".to_owned(), Config::default_file()?),
        ("xtask/dist/push.toml".to_owned(), Options::default_file()),
        ("xtask/dist/policies.toml".to_owned(), policies::default_file()),
        ("xtask/dist/software.toml".to_owned(), census::default_file()),
    ];
    let dashboards = grafana::all()?;
    for written in &dashboards {
        documents.push((format!("{}/{}", grafana::FOLDER, written.file), written.text()?));
    }
    let readme = format!("{}/README.md", grafana::FOLDER);
    let text = sections::with(&readme, &grafana::sections(&dashboards))?;
    documents.push((readme, text));
    for (name, text) in documents {
        let file = root().join(&name);
        if !args.check {
            fs::write(&file, text).with_context(|| format!("write {name}"))?;
            say(format_args!("wrote {name}"));
            continue;
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        if let Some(line) = first_difference(&written, &text) {
            bail!("{name} differs from the code at line {line}: run `cargo xtask docs`");
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
