//! `cargo xtask dist`: packages as an administrator installs them. What goes into them stands in
//! tracer-user/Cargo.toml; the files that are not generated lie in xtask/dist.

mod contents;
mod papers;
mod tools;

use crate::process::{cargo, relative, run as run_command, say, target_dir};
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::root;

/// Builds the release, its man pages and shell completions, then the packages; both kinds unless one is
/// named.
#[derive(clap::Args)]
pub struct Args {
    /// The Debian package
    #[arg(long)]
    deb: bool,
    /// The RPM package
    #[arg(long)]
    rpm: bool,
}

/// Runs the chore.
///
/// # Errors
/// When something cannot be built, or a package lacks what it should hold.
pub fn run(args: &Args) -> Result<()> {
    run_command(cargo().args(["build", "--release", "--locked", "--package", "jobtrace"]))?;
    // The packers find it by its name in the manifest, wherever cargo builds.
    let dist = root().join("target/dist");
    papers::write(&dist)?;
    let both = args.deb == args.rpm;
    if both || args.deb {
        deb(&dist)?;
    }
    if both || args.rpm {
        rpm(&dist)?;
    }
    Ok(())
}

fn deb(dist: &Path) -> Result<()> {
    let folder = dist.join("deb");
    empty(&folder)?;
    let mut command = packer(&tools::need("cargo-deb", "3.8.0")?);
    command.args(["deb", "--no-build", "--package", "jobtrace", "--output"]).arg(&folder);
    run_command(&mut command)?;
    let package = only_file(&folder)?;
    contents::check_deb(&package)?;
    say(format_args!("{} holds everything", relative(&package)));
    Ok(())
}

fn rpm(dist: &Path) -> Result<()> {
    let folder = dist.join("rpm");
    empty(&folder)?;
    let mut command = packer(&tools::need("cargo-generate-rpm", "0.21.1")?);
    command.args(["generate-rpm", "--package", "tracer-user", "--output"]).arg(&folder);
    run_command(command.arg("--target-dir").arg(target_dir()))?;
    let package = only_file(&folder)?;
    if contents::check_rpm(&package)? {
        say(format_args!("{} holds everything", relative(&package)));
    } else {
        say(format_args!("{}: not looked into, there is no `rpm` here", relative(&package)));
    }
    Ok(())
}

/// A packer in the workspace's root, which asks the same cargo for the same target folder.
fn packer(tool: &Path) -> Command {
    let mut command = Command::new(tool);
    command.current_dir(root()).env("CARGO", env::var_os("CARGO").unwrap_or("cargo".into()));
    command
}

/// An earlier version's package would be taken for this one.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("empty {}", relative(folder)))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("make {}", relative(folder)))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    match files.as_slice() {
        [one] => Ok(one.clone()),
        _ => bail!("{} packages in {}, one was built", files.len(), relative(folder)),
    }
}
