//! The packers: programs of cargo's registry, installed below target/ and nowhere else.

use crate::process::{cargo, output, run, say};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;
use xtask::root;

/// The program `name` in exactly `version`, built if it is not there yet.
///
/// # Errors
/// When it cannot be built.
pub fn need(name: &str, version: &str) -> Result<PathBuf> {
    let folder = root().join("target/tools");
    let program = folder.join("bin").join(name);
    let is_there = program.is_file()
        && output(Command::new(&program).arg("--version")).is_ok_and(|text| text.contains(version));
    if !is_there {
        say(format_args!("{name} {version} is missing: building it into target/tools"));
        let mut command = cargo();
        command.args(["install", name, "--version", &format!("={version}"), "--locked", "--root"]);
        // Flags meant for our own crates are not its own.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        run(command.arg(&folder))?;
    }
    Ok(program)
}
