//! `cargo xtask grafana`: writes Grafana's dashboards from their description.

use crate::process::say;
use anyhow::{Context, Result, bail};
use std::fs;
use xtask::{grafana, root};

/// Writes docs/grafana: dashboards in InfluxQL, Flux, SQL and PromQL, from one description.
#[derive(clap::Args)]
pub struct Args {
    /// Compare with the files and write nothing
    #[arg(long)]
    pub check: bool,
}

/// Runs the chore.
///
/// # Errors
/// When a dashboard names a field that is in no table, a file cannot be written, or `--check` finds one
/// out of date.
pub fn run(args: &Args) -> Result<()> {
    let folder = root().join(grafana::FOLDER);
    for (name, text) in grafana::files()? {
        let file = folder.join(&name);
        if args.check {
            let written = fs::read_to_string(&file).unwrap_or_default();
            if written != text {
                bail!(
                    "{}/{name} is not of its description: run `cargo xtask grafana`",
                    grafana::FOLDER
                );
            }
            continue;
        }
        fs::create_dir_all(file.parent().unwrap_or(&folder)).context("make the folder")?;
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
        say(format_args!("wrote {}/{name}", grafana::FOLDER));
    }
    Ok(())
}
