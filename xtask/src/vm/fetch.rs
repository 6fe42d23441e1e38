//! Fetches a Debian cloud kernel through apt, with lists and caches of its own: nothing of the
//! system's package management changes, and apt checks the signatures and digests.

use super::arch::Arch;
use crate::process::{find, output, run as run_command};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::files_below;

/// Where Debian is where the system's own apt names no mirror of it.
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A kernel's packages, unpacked.
pub struct Unpacked {
    /// The package that is the kernel, and its version.
    pub package: String,
    /// The compressed kernel.
    pub image: PathBuf,
    /// Its modules, in any depth.
    pub modules: PathBuf,
}

/// Fetches the newest cloud kernel for `arch` of Debian's release `suite` and unpacks it below `folder`.
///
/// # Errors
/// When there is no apt-get, no mirror or no such release there.
pub fn cloud_kernel(suite: &str, arch: Arch, folder: &Path) -> Result<Unpacked> {
    if find("apt-get").is_none() || find("dpkg-deb").is_none() {
        bail!("fetching Debian's kernels takes apt-get and dpkg-deb: use --kernel FILE here");
    }
    let apt = Apt::new(suite, arch, &folder.join("apt"))?;
    // It depends on the newest.
    let newest = format!("linux-image-cloud-{}", arch.debian());
    let image = apt
        .depends(&newest)?
        .into_iter()
        .find(|(name, _)| name.starts_with("linux-image-"))
        .with_context(|| format!("{newest} of {suite} depends on no kernel"))?;
    // Newer packages are split: the kernel and its modules come apart.
    let parts = apt.depends(&image.0)?.into_iter().map(|(name, _)| name);
    let is_part =
        |name: &String| name.starts_with("linux-binary-") || name.starts_with("linux-modules-");
    let packages: Vec<String> =
        std::iter::once(image.0.clone()).chain(parts.filter(is_part)).collect();
    let unpacked = folder.join("unpacked");
    for file in apt.download(&packages)? {
        run_command(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&unpacked))?;
    }
    fs::remove_dir_all(folder.join("apt")).context("remove apt's lists")?;
    // In /boot, or beside its modules.
    let is_kernel = |file: &PathBuf| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
    };
    let kernel = files_below(&unpacked)?.into_iter().find(is_kernel);
    Ok(Unpacked {
        package: format!("{} {}", image.0, image.1),
        image: kernel.context("the packages hold no vmlinuz")?,
        modules: unpacked,
    })
}

/// apt with a state of its own, for one release.
struct Apt {
    options: Vec<String>,
    folder: PathBuf,
}

impl Apt {
    /// Reads the release's package list.
    fn new(suite: &str, arch: Arch, folder: &Path) -> Result<Self> {
        for name in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(folder.join(name)).context("make folders for apt")?;
        }
        let (mirror, keyring) = mirror();
        if !Path::new(&keyring).exists() {
            bail!("{keyring} is missing: install the package debian-archive-keyring");
        }
        let sources = folder.join("sources.list");
        fs::write(&sources, format!("deb [signed-by={keyring}] {mirror} {suite} main\n"))?;
        let at = |key: &str, path: &Path| format!("{key}={}", path.display());
        let options = vec![
            at("Dir::Etc::sourcelist", &sources),
            "Dir::Etc::sourceparts=/dev/null".into(),
            at("Dir::State::lists", &folder.join("lists")),
            "Dir::State::status=/dev/null".into(),
            at("Dir::Cache", folder),
            format!("APT::Architecture={}", arch.debian()),
            format!("APT::Architectures={}", arch.debian()),
            "APT::Sandbox::User=root".into(),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
        ];
        let apt = Self { options, folder: folder.to_owned() };
        run_command(apt.command("apt-get").args(["update", "-qq"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for option in &self.options {
            command.args(["-o", option]);
        }
        command.current_dir(&self.folder);
        command
    }

    /// Names and versions of what a package depends on exactly.
    fn depends(&self, package: &str) -> Result<Vec<(String, String)>> {
        let text = output(self.command("apt-cache").args(["show", "--no-all-versions", package]))?;
        Ok(exact_dependencies(&text))
    }

    /// Fetches packages; gives their files.
    fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        run_command(self.command("apt-get").args(["download", "-q"]).args(packages))?;
        let files = fs::read_dir(&self.folder)?.flatten().map(|entry| entry.path());
        Ok(files.filter(|path| path.extension().is_some_and(|end| end == "deb")).collect())
    }
}

/// The mirror of Debian that the system's apt uses, and the keys it trusts it by.
fn mirror() -> (String, String) {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)|$(SIGNED_BY)"]);
    let text = output(command.arg("Created-By: Packages")).unwrap_or_default();
    let own = text.lines().find_map(|line| line.strip_prefix("Debian|Debian|"));
    let (uri, keyring) = own.and_then(|line| line.split_once('|')).unwrap_or((MIRROR, KEYRING));
    let keyring = if keyring.starts_with('/') { keyring } else { KEYRING };
    (uri.trim_end_matches('/').to_owned(), keyring.to_owned())
}

/// Of `apt-cache show`: `Depends: a (= 1), b | c, d (>= 2)` has `a` at version 1.
fn exact_dependencies(text: &str) -> Vec<(String, String)> {
    let line = text.lines().find_map(|line| line.strip_prefix("Depends: ")).unwrap_or_default();
    let exact = |word: &str| {
        let (name, version) = word.trim().split_once(" (= ")?;
        Some((name.to_owned(), version.strip_suffix(')')?.to_owned()))
    };
    line.split(',').filter_map(exact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_with_their_version() {
        let text = "Package: linux-image-cloud-amd64\nVersion: 7.2.13-1\n\
            Depends: dracut | initramfs-tools (>= 0.1), linux-image-7.2.13+deb14-cloud-amd64 \
            (= 7.2.13-1), linux-base\n";
        let name = "linux-image-7.2.13+deb14-cloud-amd64".to_owned();
        assert_eq!(exact_dependencies(text), [(name, "7.2.13-1".to_owned())]);
        assert_eq!(exact_dependencies("Package: none\n"), []);
    }
}
