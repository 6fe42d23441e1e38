//! The programs that the guest runs: built for its architecture, stripped, and the libraries they load.
//! It refuses to install compilers: `Arch::tools` names what is needed.

use super::arch::Arch;
use crate::process::{cargo, output, run as run_command, target_dir};
use anyhow::{Context, Result, bail};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, elf};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the guest's first process and the workloads; gives their folder.
///
/// # Errors
/// When they do not build.
pub fn workloads(arch: Arch) -> Result<PathBuf> {
    let (mut cargo, folder) = build(arch, "debug")?;
    run_command(cargo.args(["--package", "jobtrace-tests", "--bins"]))?;
    Ok(folder)
}

/// Builds `jobtrace`: optimised as packages have it, which emulation repays in a few boots, or as the
/// tests have built it already.
///
/// # Errors
/// When it does not build.
pub fn jobtrace(arch: Arch, optimised: bool) -> Result<PathBuf> {
    let (mut cargo, folder) = build(arch, if optimised { "release" } else { "debug" })?;
    cargo.args(["--bin", "jobtrace"]);
    if optimised {
        cargo.arg("--release");
    }
    run_command(&mut cargo)?;
    Ok(folder.join("jobtrace"))
}

/// `cargo build` for an architecture, and where it puts what it builds.
fn build(arch: Arch, profile: &str) -> Result<(Command, PathBuf)> {
    let mut command = cargo();
    command.args(["build", "--quiet"]);
    if arch.is_own() {
        return Ok((command, target_dir().join(profile)));
    }
    need_standard_library(arch)?;
    let triple = arch.triple();
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.replace('-', "_").to_uppercase());
    command.args(["--target", &triple]).env(linker, arch.cross("gcc"));
    Ok((command, target_dir().join(triple).join(profile)))
}

/// Checks that `jobtrace` compiles for `arch`. No compiler of C for it is needed: nothing is linked.
///
/// # Errors
/// When it does not compile.
pub fn compiles(arch: Arch) -> Result<()> {
    need_standard_library(arch)?;
    let triple = arch.triple();
    let mut command = cargo();
    command.args(["check", "--quiet", "--package", "jobtrace", "--target", &triple]);
    command.env("RUSTFLAGS", "-D warnings");
    // A folder of its own: what packages take for their compiled C is empty there.
    command.arg("--target-dir").arg(target_dir().join("compiles"));
    for tool in ["CC", "AR"] {
        command.env(format!("{tool}_{}", triple.replace('-', "_")), "true");
    }
    run_command(&mut command)
}

/// Rust's standard library for `arch`: rustup installs it where it is missing.
fn need_standard_library(arch: Arch) -> Result<()> {
    let triple = arch.triple();
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut standard = Command::new(rustc);
    let folder = output(standard.args(["--print", "target-libdir", "--target", &triple]))?;
    if Path::new(folder.trim_end()).is_dir() {
        return Ok(());
    }
    run_command(Command::new("rustup").args(["target", "add", &triple])).with_context(|| {
        format!("Rust's standard library for {triple} is missing, and rustup did not install it")
    })
}

/// The bytes of a program without what only debuggers need.
///
/// # Errors
/// When it cannot be stripped.
pub fn stripped(arch: Arch, program: &Path) -> Result<Vec<u8>> {
    let strip = if arch.is_own() { "strip".into() } else { arch.cross("strip") };
    let bare = super::folder()?.join("stripped");
    output(Command::new(strip).arg("-o").arg(&bare).arg(program))?;
    fs::read(&bare).context("read the stripped program")
}

/// The shared libraries of a program, its loader among them: their paths in the guest, and here. None of
/// one that is linked statically.
///
/// # Errors
/// When one is missing, or the program is for another architecture.
pub fn libraries(arch: Arch, program: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let bytes = fs::read(program).with_context(|| format!("read {}", program.display()))?;
    let needs = Needs::of(&bytes, arch).with_context(|| program.display().to_string())?;
    let Some(loader) = needs.loader.clone() else { return Ok(BTreeMap::new()) };
    if arch.is_own() {
        let text = output(Command::new("ldd").arg(program))?;
        return Ok(paths_of_ldd(&text).map(|path| (path.clone(), path.into())).collect());
    }
    // A foreign loader cannot be asked. It looks in its own folder too.
    let beside = |name: &str| match loader.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{name}"),
        None => name.to_owned(),
    };
    let mut found = BTreeMap::new();
    let mut waiting = needs.names;
    waiting.extend(loader.rsplit('/').next().map(str::to_owned));
    while let Some(name) = waiting.pop() {
        let place = beside(&name);
        if found.contains_key(&place) {
            continue;
        }
        let file = of_cross_compiler(arch, &name)?;
        let bytes = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
        waiting.extend(Needs::of(&bytes, arch).with_context(|| name.clone())?.names);
        found.insert(place, file);
    }
    Ok(found)
}

/// Where the cross compiler has a library.
fn of_cross_compiler(arch: Arch, name: &str) -> Result<PathBuf> {
    let mut gcc = Command::new(arch.cross("gcc"));
    let path = PathBuf::from(output(gcc.arg(format!("-print-file-name={name}")))?.trim_end());
    if !path.is_file() {
        bail!("{} has no {name}: install its C library", arch.cross("gcc"));
    }
    Ok(path)
}

/// `libc.so.6 => /lib/libc.so.6 (0x7f)` and `/lib64/ld-linux-x86-64.so.2 (0x7f)`.
fn paths_of_ldd(text: &str) -> impl Iterator<Item = String> {
    let path = |line: &str| {
        let words = line.split_whitespace();
        words.map(str::to_owned).find(|word| word.starts_with('/'))
    };
    text.lines().filter_map(path)
}

/// What an ELF file says of the libraries it needs.
#[derive(Debug, Default)]
struct Needs {
    loader: Option<String>,
    names: Vec<String>,
}

impl Needs {
    fn of(bytes: &[u8], arch: Arch) -> Result<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).context("no program")?;
        let endian = file.endian();
        let machine = match arch {
            Arch::X86 => elf::EM_X86_64,
            Arch::Arm => elf::EM_AARCH64,
        };
        if file.elf_header().e_machine.get(endian) != machine {
            bail!("it is not for {}", arch.name());
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut needs = Self::default();
        for header in file.elf_program_headers() {
            if let Some(path) = header.interpreter(endian, bytes)? {
                needs.loader = Some(text(path));
            }
        }
        let dynamic = file.elf_section_table().dynamic_table(endian, bytes)?;
        for entry in dynamic.iter().filter(|entry| entry.tag == elf::DT_NEEDED) {
            needs.names.push(text(dynamic.string(entry)?));
        }
        Ok(needs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_by_their_paths() {
        let text = "\tlinux-vdso.so.1 (0x7ffd)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let paths: Vec<_> = paths_of_ldd(text).collect();
        assert_eq!(paths, ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(paths_of_ldd("\tstatically linked\n").count(), 0);
    }

    #[test]
    fn a_program_names_its_loader_and_its_libraries() {
        let own = env::current_exe().unwrap();
        let bytes = fs::read(&own).unwrap();
        for arch in Arch::ALL {
            match Needs::of(&bytes, arch) {
                Ok(needs) => {
                    assert!(arch.is_own());
                    assert!(needs.loader.unwrap().contains("ld-linux"));
                    assert!(
                        needs.names.iter().any(|name| name == "libc.so.6"),
                        "{:?}",
                        needs.names
                    );
                    let found = libraries(arch, &own).unwrap();
                    assert!(found.keys().any(|path| path.ends_with("/libc.so.6")), "{found:?}");
                }
                Err(error) => {
                    assert!(!arch.is_own());
                    assert_eq!(error.to_string(), format!("it is not for {}", arch.name()));
                }
            }
        }
    }
}
