//! `cargo xtask dist`: packages as an administrator installs them. What goes into them stands in
//! tracer-user/Cargo.toml; the files that are not generated lie in xtask/dist.

mod contents;
mod documents;
mod papers;

use crate::packages::need_of_cargo;
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
    let mut command = packer(&need_of_cargo("cargo-deb", "3.8.0")?);
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
    let mut command = packer(&need_of_cargo("cargo-generate-rpm", "0.21.1")?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use jobtrace::commands::agent::config::{Config, DEFAULT_FILE};
    use jobtrace::commands::push::options::Options;

    fn text(name: &str) -> String {
        fs::read_to_string(root().join("xtask/dist").join(name)).expect(name)
    }

    #[test]
    fn unit_and_folders_agree_with_the_defaults() {
        let config = Config::default();
        let (unit, folders) = (text("jobtrace.service"), text("jobtrace.tmpfiles"));
        let spool = config.spool.dir.display();
        assert!(unit.contains(&format!("\nReadWritePaths={spool}\n")));
        assert!(folders.contains(&format!("\nd {spool} ")));
        let telegraf = text("../../docs/consumers/telegraf.conf");
        assert!(telegraf.contains(&format!("\"{spool}/outbox\"")));
        for folder in ["outbox", "failed"] {
            assert!(folders.contains(&format!("\nd {spool}/{folder} 2770 jobtrace jobtrace -")));
        }
        assert_eq!(Options::defaults().spool.as_ref(), Some(&config.spool.dir));
        assert!(text("jobtrace-push.service").contains(&format!("\nReadWritePaths={spool}\n")));
        let state = config.state.dir.strip_prefix("/run").expect("below /run");
        assert!(unit.contains(&format!("\nRuntimeDirectory={}\n", state.display())));
        let records = config.records.dir.strip_prefix("/var/lib").expect("below /var/lib");
        let records = records.parent().expect("a folder of its own").display();
        assert!(unit.contains(&format!("\nStateDirectory={records}\n")));
        let manifest = fs::read_to_string(root().join("tracer-user/Cargo.toml")).expect("there");
        assert!(manifest.contains(&format!("conf-files = [{DEFAULT_FILE:?}, ")));
    }

    #[test]
    fn the_unit_that_sends_has_no_right_but_the_spools_group() {
        let unit = text("jobtrace-push.service");
        let has = |line: &str| unit.lines().any(|own| own == line);
        for line in
            ["User=jobtrace-push", "Group=jobtrace", "CapabilityBoundingSet=", "Type=notify"]
        {
            assert!(has(line), "{line}");
        }
        assert!(!unit.contains("AmbientCapabilities") && !unit.contains("PrivateNetwork"));
        let users = text("jobtrace.sysusers");
        assert!(
            users.contains("\nu jobtrace-push ") && users.contains("\nm jobtrace-push jobtrace\n")
        );
    }

    #[test]
    fn the_unit_takes_the_capabilities_that_it_may_have() {
        let unit = text("jobtrace.service");
        let of = |key: &str| {
            let mut lines = unit.lines().filter_map(|line| line.strip_prefix(key));
            lines.next().map(str::to_owned)
        };
        let held = of("AmbientCapabilities=").expect("capabilities instead of root");
        assert_eq!(of("CapabilityBoundingSet=").as_ref(), Some(&held));
        assert!(held.split(' ').all(|name| name.starts_with("CAP_")) && !held.contains("ADMIN"));
        for key in ["Type=notify", "WatchdogSec=", "MemoryMax=", "CPUQuota=", "User=jobtrace"] {
            assert!(unit.lines().any(|line| line.starts_with(key)), "{key}");
        }
        assert!(unit.lines().any(|l| l.starts_with("Before=") && l.contains("slurmd.service")));
        assert!(!unit.contains("\nRequires="));
        // Each of these hides GPUs, the last one in systemd before 252.
        for key in ["PrivateDevices=", "DevicePolicy=", "DeviceAllow=", "ProtectClock="] {
            assert!(of(key).is_none(), "{key}");
        }
    }
}
