//! Compiles and strips an object so that its bytes depend on the sources and the compiler only,
//! not on the folder, the user or the registry's mirror.

use super::toolchain::{Toolchain, cargo_home, without_rustup};
use crate::process::{find, output, run, target_dir};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::root;

const TARGET: &str = "bpfel-unknown-none";

/// Builds the object of binary target `name` and returns its stripped bytes.
///
/// # Errors
/// When it does not compile, or no llvm-strip or llvm-objcopy is installed.
pub fn object(toolchain: &Toolchain, name: &str) -> Result<Vec<u8>> {
    // Its own folder: another compiler's artifacts beside ours would rebuild each other.
    let target = target_dir().join("bpf");
    run(cargo(toolchain)?
        .args(["build", "--package", "tracer-ebpf", "--bin", name, "--profile", "bpf"])
        .args(["--locked", "-Zbuild-std=core", "--target", TARGET])
        .arg("--target-dir")
        .arg(&target))?;
    let built = target.join(TARGET).join("bpf").join(name);
    let stripped = built.with_extension("stripped.o");
    run(strip(toolchain.llvm)?.arg(&built).arg(&stripped))?;
    fs::read(&stripped).with_context(|| format!("read {}", stripped.display()))
}

/// The toolchain's cargo, set up for the BPF target.
fn cargo(toolchain: &Toolchain) -> Result<Command> {
    let linkers = toolchain.linker.parent().context("bpf-linker has no folder")?.to_owned();
    let old = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([linkers].into_iter().chain(env::split_paths(&old)))
        .context("a folder's name on the search path has a colon")?;
    let mut command = without_rustup(&toolchain.cargo);
    command
        .current_dir(root())
        .env("PATH", path)
        .env("RUSTC", &toolchain.rustc)
        // A released compiler takes -Zbuild-std with this only.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags(toolchain)?);
    Ok(command)
}

/// Compiler flags, separated as CARGO_ENCODED_RUSTFLAGS wants them: debug information for the BTF
/// that bpf-linker makes of it, and the same names for every folder.
fn flags(toolchain: &Toolchain) -> Result<OsString> {
    // v3 (32-bit operations, kernels from 5.1): a switch takes 4 ns less than with the default.
    let flags = ["-C", "target-cpu=v3", "-C", "debuginfo=2", "-C", "link-arg=--btf"];
    let mut flags: Vec<OsString> = flags.map(OsString::from).to_vec();
    let mut rename = |folder: &Path, name: &str| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder);
        flag.push("=");
        flag.push(name);
        flags.push(flag);
    };
    // The compiler takes the last prefix that fits, so the wider ones come first.
    if let Some(home) = cargo_home() {
        rename(&home, "/cargo");
    }
    rename(&root(), "/jobtrace");
    rename(&toolchain.source, "/rust");
    for folder in crate_folders(toolchain)? {
        rename(&folder, "/crates");
    }
    Ok(flags.join(&OsString::from("\x1f")))
}

/// The folders that hold the dependencies' unpacked crates, whatever mirror they came from.
fn crate_folders(toolchain: &Toolchain) -> Result<BTreeSet<PathBuf>> {
    let metadata =
        output(
            without_rustup(&toolchain.cargo)
                .current_dir(root())
                .env("RUSTC", &toolchain.rustc)
                .args(["metadata", "--format-version", "1", "--locked", "--quiet"]),
        )?;
    let metadata: Value = serde_json::from_str(&metadata).context("read cargo's metadata")?;
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    Ok(packages
        .iter()
        .filter(|package| package["source"].is_string())
        .filter_map(|package| {
            Some(Path::new(package["manifest_path"].as_str()?).parent()?.parent()?.to_owned())
        })
        .collect())
}

/// A command that, given input and output, takes all debug sections away but BTF.
fn strip(llvm: u32) -> Result<Command> {
    let folder = PathBuf::from(format!("/usr/lib/llvm-{llvm}/bin"));
    let names = ["llvm-objcopy".to_owned(), format!("llvm-objcopy-{llvm}")];
    let own = names.iter().map(|name| folder.join(name)).find(|file| file.is_file());
    let Some(program) = own.or_else(|| names.iter().rev().find_map(|name| find(name))) else {
        bail!("llvm-objcopy is missing: install the package llvm-{llvm}")
    };
    let mut command = Command::new(program);
    command.arg("--strip-debug");
    Ok(command)
}
