//! `cargo xtask screenshots`: pictures of a real report's page for the documents, from a record that is committed beside
//! them. Anybody with chromium can take them anew.

use crate::{
    packages,
    process::{self, say},
};
use anyhow::{Context, Result, ensure};
use std::fs;
use xtask::{
    browser::{Scheme, chromium},
    root,
};

/// Where the record is and the pictures go.
const FOLDER: &str = "docs/report";
/// The record of `docs/report/slow.sh`.
const RECORD: &str = "slow.json.gz";
/// Of each look: name, width and height, the height by eye.
const WINDOWS: [(&str, u32, u32); 2] = [("page", 900, 1012), ("phone", 500, 1400)];
/// Larger ones do not belong into a repository.
const MOST_BYTES: u64 = 150_000;

/// Takes pictures of a report for the documents, light and dark, with chromium.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the chore.
///
/// # Errors
/// When jobtrace does not build, chromium fails, or a picture is too large.
pub fn run(_: &Args) -> Result<()> {
    let chromium_alone: Vec<_> =
        packages::RIGS.iter().copied().filter(|tool| tool.program == "chromium").collect();
    packages::need(&chromium_alone)?;
    let jobtrace = process::build_jobtrace(false)?;
    let scratch = tempfile::tempdir().context("make a scratch folder")?;
    let (folder, page) = (root().join(FOLDER), scratch.path().join("page.html"));
    let mut report = std::process::Command::new(jobtrace);
    report.arg("report").arg(folder.join(RECORD)).arg("--html").arg(&page);
    process::run(&mut report)?;
    for (name, width, height) in WINDOWS {
        for scheme in Scheme::ALL {
            let picture = folder.join(format!("{name}-{}.png", scheme.name()));
            let mut command = chromium(scratch.path(), &page, scheme);
            command.arg(format!("--screenshot={}", picture.display()));
            command.arg(format!("--window-size={width},{height}"));
            process::run(command.stderr(std::process::Stdio::null()))?;
            let bytes = fs::metadata(&picture).context("chromium took no picture")?.len();
            say(format!("{}: {bytes} bytes", picture.display()));
            ensure!(bytes < MOST_BYTES, "{} is larger than {MOST_BYTES} bytes", picture.display());
        }
    }
    Ok(())
}
