//! Which compiler builds the BPF object. `core` has to be compiled for the target, so a compiler
//! is of use only with the source of exactly its own version, and bpf-linker only when its LLVM
//! reads that compiler's bitcode.

use crate::process::{find, output, say};
use anyhow::{Context, Result, bail};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to do where nothing fits.
pub const CURE: &str = "run `cargo xtask ebpf --install`, or yourself either \
`apt-get install rustc-web cargo-web rust-web-src llvm-22-dev` (Debian) or \
`rustup toolchain install nightly --component rust-src`, and then \
`cargo install bpf-linker --version =0.13.0 --locked` \
(LLVM 22 as in Debian: `--no-default-features --features llvm-22`)";

/// Debian's compiler, beside which no rustup settings may act.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// A compiler with its source, and the linker to go with it.
pub struct Toolchain {
    /// The compiler.
    pub rustc: PathBuf,
    /// The cargo of the same version.
    pub cargo: PathBuf,
    /// The folder above `library`, which holds `core`.
    pub source: PathBuf,
    /// bpf-linker.
    pub linker: PathBuf,
    /// Major version of the compiler's LLVM.
    pub llvm: u32,
    versions: String,
}

impl Toolchain {
    /// The first of rustup's nightly and Debian's compiler that can build; says which and why not.
    ///
    /// # Errors
    /// When neither can, with everything that is missing and how to get it.
    pub fn choose() -> Result<Self> {
        let mut refused = Vec::new();
        let candidates = [("rustup's nightly", nightly()), ("Debian's compiler", debian())];
        for (name, found) in candidates {
            match found.and_then(|(rustc, cargo)| Self::complete(rustc, cargo)) {
                Ok(toolchain) => {
                    for line in &refused {
                        say(line);
                    }
                    say(format_args!("building with {name}: {}", toolchain.versions));
                    return Ok(toolchain);
                }
                Err(error) => refused.push(format!("not with {name}: {error:#}")),
            }
        }
        bail!("no compiler here can build the BPF object ({}); {CURE}", refused.join("; "))
    }

    /// The compiler, its LLVM and the linker: the same words mean the same bytes.
    #[must_use]
    pub fn in_words(&self) -> String {
        self.versions.clone()
    }

    fn complete(rustc: PathBuf, cargo: PathBuf) -> Result<Self> {
        let sysroot = output(without_rustup(&rustc).args(["--print", "sysroot"]))?;
        let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust");
        if !source.join("library/core/Cargo.toml").is_file() {
            bail!("no source of the standard library in {}", source.display());
        }
        let verbose = output(without_rustup(&rustc).arg("-vV"))?;
        let (version, llvm) = parse_versions(&verbose)
            .with_context(|| format!("{} does not tell its versions", rustc.display()))?;
        let major = major(&llvm)?;
        let linker = linker(major)?;
        let linker_version = output(Command::new(&linker).arg("--version"))?;
        let versions = format!("{version}, LLVM {llvm}, {}", linker_version.trim());
        Ok(Self { rustc, cargo, source, linker, llvm: major, versions })
    }
}

/// A command that no setting of rustup or of the surrounding cargo redirects.
pub fn without_rustup(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let cargos =
            text.starts_with("CARGO") && !matches!(&*text, "CARGO_HOME" | "CARGO_NET_OFFLINE");
        if cargos || text.starts_with("RUST") && text != "RUSTUP_HOME" {
            command.env_remove(&name);
        }
    }
    command
}

fn nightly() -> Result<(PathBuf, PathBuf)> {
    if find("rustup").is_none() {
        bail!("rustup is not installed");
    }
    let which = |program: &str| {
        let mut command = Command::new("rustup");
        let found = command.args(["which", "--toolchain", "nightly", program]).output()?;
        if !found.status.success() {
            bail!("rustup has no nightly toolchain");
        }
        Ok(PathBuf::from(String::from_utf8(found.stdout)?.trim()))
    };
    Ok((which("rustc")?, which("cargo")?))
}

fn debian() -> Result<(PathBuf, PathBuf)> {
    let (rustc, cargo) = (PathBuf::from(DEBIAN_RUSTC), PathBuf::from(DEBIAN_CARGO));
    for program in [&rustc, &cargo] {
        if !program.is_file() {
            bail!("{} is not there", program.display());
        }
    }
    Ok((rustc, cargo))
}

/// bpf-linker from the search path or cargo's folder, unless it is known to be older than `llvm`.
fn linker(llvm: u32) -> Result<PathBuf> {
    let linker = find("bpf-linker")
        .or_else(|| cargo_home().map(|home| home.join("bin/bpf-linker")).filter(|f| f.is_file()))
        .context("bpf-linker is not on the search path nor in cargo's bin folder")?;
    let bytes = fs::read(&linker).with_context(|| format!("read {}", linker.display()))?;
    match linked_llvm(&bytes) {
        Some(its) if its < llvm => {
            bail!("{} has LLVM {its}, the compiler {llvm}", linker.display())
        }
        Some(_) => {}
        None => say(format_args!(
            "{} holds its own LLVM: taking it that it reads bitcode of LLVM {llvm}",
            linker.display()
        )),
    }
    Ok(linker)
}

/// Cargo's home: `$CARGO_HOME`, else `~/.cargo`.
pub fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))
}

/// `("rustc 1.96.0 (…)", "22.1.8")` out of `rustc -vV`.
fn parse_versions(verbose: &str) -> Option<(String, String)> {
    let version = verbose.lines().find(|line| line.starts_with("rustc "))?;
    let llvm = verbose.lines().find_map(|line| line.strip_prefix("LLVM version: "))?;
    Some((version.to_owned(), llvm.to_owned()))
}

fn major(version: &str) -> Result<u32> {
    let number = version.split('.').next().unwrap_or_default();
    number.parse().with_context(|| format!("`{version}` is no version of LLVM"))
}

/// The LLVM that a program loads as a shared library: the NN of `libLLVM.so.NN` or `libLLVM-NN`.
fn linked_llvm(program: &[u8]) -> Option<u32> {
    const NAME: &[u8] = b"libLLVM";
    program.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME).find_map(
        |(at, _)| {
            let rest = &program[at + NAME.len()..];
            let rest = rest.strip_prefix(b".so.").or_else(|| rest.strip_prefix(b"-"))?;
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let verbose = "rustc 1.96.0 (ac68faa20 2026-05-25)\nbinary: rustc\nLLVM version: 22.1.8\n";
        let (version, llvm) = parse_versions(verbose).expect("both lines are there");
        assert_eq!(
            (version.as_str(), llvm.as_str()),
            ("rustc 1.96.0 (ac68faa20 2026-05-25)", "22.1.8")
        );
        assert_eq!(major(&llvm).expect("a number"), 22);
        assert!(major("unknown").is_err());
        assert!(parse_versions("error").is_none());
    }

    #[test]
    fn the_linkers_llvm_is_found_by_either_name() {
        assert_eq!(linked_llvm(b"\0libz.so.1\0libLLVM.so.22.1\0"), Some(22));
        assert_eq!(linked_llvm(b"\0libLLVMwhatever\0libLLVM-19.so\0"), Some(19));
        assert_eq!(linked_llvm(b"\0libz.so.1\0"), None);
    }
}
