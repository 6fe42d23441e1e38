//! The kernels to boot: Debian's cloud kernels, kept below the target folder with their digests, and
//! others by path.

use super::arch::Arch;
use super::{fetch, modules};
use crate::process::{say, target_dir};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Kernels by our names, and the Debian release that has each.
const DEBIAN: &[(&str, &str)] =
    &[("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie"), ("newest", "sid")];
/// What is known of a kept kernel.
const NOTE: &str = "kernel.json";
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

/// What is kept beside a kernel.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// Package and version it came from.
    package: String,
    /// File names and their SHA-256.
    digests: BTreeMap<String, String>,
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

/// The kept kernel of this name for `arch`; fetched where there is none, or it is not whole, or `refresh`.
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
    let mut digests = BTreeMap::new();
    for file in files(&folder)? {
        let path = file.strip_prefix(&folder)?.to_string_lossy().into_owned();
        digests.insert(path, digest(&file)?);
    }
    let note = Note { package: unpacked.package, digests };
    fs::write(folder.join(NOTE), serde_json::to_string_pretty(&note)?).context("note it")?;
    kept(name, arch, &folder)
}

/// The kernel as it was kept.
fn kept(name: &str, arch: Arch, folder: &Path) -> Result<Kernel> {
    let note: Note = serde_json::from_str(&fs::read_to_string(folder.join(NOTE))?)?;
    for (file, wanted) in &note.digests {
        let found = digest(&folder.join(file))?;
        if found != *wanted {
            say(format_args!("kernel {name}: {file} is not what was fetched, fetching it again"));
            bail!("{file} has another digest");
        }
    }
    let mut modules = files(&folder.join("modules"))?;
    modules.sort();
    Ok(Kernel { name: with_arch(name, arch), arch, image: folder.join(IMAGE), modules })
}

/// The kernel itself and its modules.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        match path.is_dir() {
            true if path.ends_with("modules") => found.extend(files(&path)?),
            true => {}
            false => found.push(path),
        }
    }
    Ok(found)
}

fn digest(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("read {}", file.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Prints the kernels and what is kept of them.
///
/// # Errors
/// Never so far.
pub fn list() -> Result<()> {
    for arch in Arch::ALL {
        for (name, suite) in DEBIAN {
            let note = fs::read_to_string(folder(name, arch).join(NOTE)).ok();
            let note = note.and_then(|text| serde_json::from_str::<Note>(&text).ok());
            let here = note.map_or("not fetched yet".to_owned(), |note| note.package);
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
    fn a_kept_kernel_that_changed_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir(path.join("modules")).unwrap();
        fs::write(path.join(IMAGE), "kernel").unwrap();
        fs::write(path.join("modules/0-loop.ko"), "module").unwrap();
        let files = files(path).unwrap();
        assert_eq!(files.len(), 2);
        let name = |file: &Path| file.strip_prefix(path).unwrap().to_string_lossy().into_owned();
        let digests = files.iter().map(|file| (name(file), digest(file).unwrap())).collect();
        let note = Note { package: "p 1".into(), digests };
        fs::write(path.join(NOTE), serde_json::to_string(&note).unwrap()).unwrap();
        let kernel = kept("k", Arch::Arm, path).unwrap();
        assert_eq!(kernel.name, "k-arm64");
        assert_eq!(kernel.modules, [path.join("modules/0-loop.ko")]);
        fs::write(path.join(IMAGE), "another").unwrap();
        assert!(kept("k", Arch::Arm, path).is_err());
    }
}
