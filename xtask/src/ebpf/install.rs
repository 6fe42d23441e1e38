//! `cargo xtask ebpf --install`: gets what building the BPF object needs and is not there.

use super::toolchain::{Toolchain, cargo_home};
use crate::packages::apt_install;
use crate::process::{cargo, find, run, say};
use anyhow::Result;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// bpf-linker's version: what it links is committed, so it is pinned.
const LINKER: &str = "=0.13.0";
/// Where Debian keeps the LLVM whose bitcode its compiler writes.
const DEBIAN_LLVM: &str = "/usr/lib/llvm-22";

/// Installs the compiler and its source where neither rustup's nor Debian's is complete, and
/// bpf-linker where there is none; returns the toolchain to build with.
///
/// # Errors
/// When a package manager, rustup or cargo fails.
pub fn missing() -> Result<Toolchain> {
    match Toolchain::choose() {
        Ok(toolchain) => return Ok(toolchain),
        Err(error) => say(format_args!("installing what is missing: {error:#}")),
    }
    if find("apt-get").is_some() {
        apt_install(&["rustc-web", "cargo-web", "rust-web-src", "llvm-22-dev"])?;
    } else {
        let arguments = ["toolchain", "install", "nightly", "--component", "rust-src"];
        // rustup itself is not ours to replace, and the setting against it may not apply here.
        run(Command::new("rustup").args(arguments).args([
            "--profile",
            "minimal",
            "--no-self-update",
        ]))?;
    }
    let own = cargo_home().map(|home| home.join("bin/bpf-linker"));
    if find("bpf-linker").is_none() && !own.is_some_and(|file| file.is_file()) {
        linker()?;
    }
    Toolchain::choose()
}

/// Builds bpf-linker with the LLVM that is installed: Debian's 22, else the one that it finds.
fn linker() -> Result<()> {
    let mut command = cargo();
    command.args(["install", "bpf-linker", "--version", LINKER, "--locked"]);
    if Path::new(DEBIAN_LLVM).is_dir() {
        let own = PathBuf::from(DEBIAN_LLVM).join("bin");
        let old = env::var_os("PATH").unwrap_or_default();
        command
            .env("PATH", env::join_paths([own].into_iter().chain(env::split_paths(&old)))?)
            .env("LLVM_PREFIX", DEBIAN_LLVM)
            .args(["--no-default-features", "--features", "llvm-22"]);
    }
    // Flags meant for our own crates are not bpf-linker's.
    run(command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"))
}
