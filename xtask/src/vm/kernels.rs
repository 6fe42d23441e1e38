//! The kernels to boot: Debian's cloud kernels, kept below the target folder, and
//! others by path.

use super::arch::Arch;
use super::{fetch, modules};
use crate::process::{say, target_dir};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Kernels by our names, and the Debian release that has each.
const DEBIAN: &[(&str, &str)] =
    &[("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie"), ("newest", "sid")];
/// The package and version of a kept kernel, and on a second line which modules were asked of it.
const NOTE: &str = "package";
/// The kernel itself.
const IMAGE: &str = "vmlinuz";

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Ours, with the architecture where it is not x86-64, or the file's.
    pub name: String,
    /// What it runs on.
    pub arch: Arch,
    /// The kernel as its machine takes it.
    pub image: PathBuf,
    /// Modules to load in this order, unpacked.
    pub modules: Vec<PathBuf>,
}

impl Kernel {
    /// One for `arch` by its file; `modules` is its /lib/modules/RELEASE.
    ///
    /// # Errors
    /// When there is no such file, or the modules that the guest needs are not in `modules`.
    pub fn of_file(file: &Path, arch: Arch, modules: Option<&Path>) -> Result<Self> {
        if !file.is_file() {
            bail!("{} is not there: --kernel takes a kernel's file, vmlinuz", file.display());
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_start_matches("vmlinuz-").to_owned();
        let into = super::folder()?.join(format!("modules-{name}"));
        let modules = match modules {
            Some(folder) => modules::gather(folder, &into)?,
            // It may have them built in; the guest says so where it does not.
            None => Vec::new(),
        };
        Ok(Self { name, arch, image: file.to_owned(), modules })
    }
}

/// Our names of Debian's kernels, from the oldest to the newest.
pub fn names() -> Vec<&'static str> {
    DEBIAN.iter().map(|(name, _)| *name).collect()
}

/// The kept kernel of this name for `arch`; fetched where there is none whole, or `refresh`.
///
/// # Errors
/// When it cannot be fetched.
pub fn get(name: &str, arch: Arch, refresh: bool) -> Result<Kernel> {
    let folder = folder(name, arch);
    if !refresh && let Ok(kernel) = kept(name, arch, &folder) {
        return Ok(kernel);
    }
    let suite = DEBIAN.iter().find(|(own, _)| *own == name).map(|(_, suite)| *suite);
    let suite = suite.with_context(|| format!("no kernel is called {name}"))?;
    let architecture = arch.debian();
    say(format_args!("kernel {name}: fetching Debian {suite}'s cloud kernel for {architecture}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let unpacked = fetch::cloud_kernel(suite, arch, &folder)?;
    fs::rename(&unpacked.image, folder.join(IMAGE)).context("keep the kernel")?;
    modules::gather(&unpacked.modules, &folder.join("modules"))?;
    fs::remove_dir_all(&unpacked.modules).context("remove what else the packages hold")?;
    // The last of all: a kernel without it is not whole.
    let note = format!("{}\n{}\n", unpacked.package, modules::names());
    fs::write(folder.join(NOTE), note).context("note it")?;
    kept(name, arch, &folder)
}

/// The kernel as it was kept.
fn kept(name: &str, arch: Arch, folder: &Path) -> Result<Kernel> {
    let note = fs::read_to_string(folder.join(NOTE)).context("it was not fetched")?;
    if note.lines().nth(1) != Some(&modules::names()) {
        bail!("it was kept with other modules");
    }
    let modules = fs::read_dir(folder.join("modules"))?.map(|entry| Ok(entry?.path()));
    let mut modules = modules.collect::<Result<Vec<_>>>()?;
    modules.sort();
    Ok(Kernel { name: with_arch(name, arch), arch, image: folder.join(IMAGE), modules })
}

/// Prints the kernels and what is kept of them.
///
/// # Errors
/// Never so far.
pub fn list() -> Result<()> {
    for arch in Arch::ALL {
        for (name, suite) in DEBIAN {
            let here = fs::read_to_string(folder(name, arch).join(NOTE)).unwrap_or_default();
            let here = here.lines().next().unwrap_or("not fetched yet");
            println!("{:7} {name:7} Debian {suite:9} {here}", arch.name());
        }
    }
    println!("kept in {}", target_dir().join("vm-kernels").display());
    Ok(())
}

fn folder(name: &str, arch: Arch) -> PathBuf {
    target_dir().join("vm-kernels").join(with_arch(name, arch))
}

/// `6.1`, and `6.1-arm64`.
fn with_arch(name: &str, arch: Arch) -> String {
    match arch {
        Arch::X86 => name.to_owned(),
        Arch::Arm => format!("{name}-{}", arch.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_was_kept_in_part_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("modules")).unwrap();
        fs::write(path.join(IMAGE), "kernel").unwrap();
        fs::write(path.join("modules/0-loop.ko"), "module").unwrap();
        assert!(kept("k", Arch::Arm, path).is_err());
        fs::write(path.join(NOTE), "p 1\nother modules\n").unwrap();
        assert!(kept("k", Arch::Arm, path).is_err());
        fs::write(path.join(NOTE), format!("p 1\n{}\n", modules::names())).unwrap();
        let kernel = kept("k", Arch::Arm, path).unwrap();
        assert_eq!(kernel.name, "k-arm64");
        assert_eq!(kernel.modules, [path.join("modules/0-loop.ko")]);
    }
}
