//! What every package must hold, looked up in the package itself.

use super::documents::{INSTALLED, documents};
use crate::process::{find, output};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

/// Paths in both kinds of packages.
const BOTH: &[&str] = &[
    "/usr/bin/jobtrace",
    "/etc/jobtrace/jobtrace.toml",
    "/etc/jobtrace/push.toml",
    "/etc/jobtrace/policies.toml",
    "/etc/jobtrace/software.toml",
    "/usr/lib/systemd/system/jobtrace.service",
    "/usr/lib/systemd/system/jobtrace-push.service",
    "/usr/share/doc/jobtrace/consumers/influxdb-1.influxql",
    "/usr/lib/sysusers.d/jobtrace.conf",
    "/usr/lib/tmpfiles.d/jobtrace.conf",
    "/usr/share/man/man1/jobtrace.1.gz",
    "/usr/share/man/man1/jobtrace-agent.1.gz",
    "/usr/share/man/man1/jobtrace-push.1.gz",
    "/usr/share/bash-completion/completions/jobtrace",
    "/usr/share/fish/vendor_completions.d/jobtrace.fish",
];

/// Looks into a Debian package.
///
/// # Errors
/// Names what is missing.
pub fn check_deb(package: &Path) -> Result<()> {
    let list = output(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    check(&list, &["/usr/share/zsh/vendor-completions/_jobtrace"])?;
    let control = output(Command::new("dpkg-deb").args(["--info"]).arg(package))?;
    for file in ["conffiles", "postinst", "prerm", "postrm"] {
        if !control.lines().any(|line| line.split_whitespace().any(|word| word == file)) {
            bail!("the package has no {file}");
        }
    }
    Ok(())
}

/// Looks into an RPM package; false where nothing here can.
///
/// # Errors
/// Names what is missing.
pub fn check_rpm(package: &Path) -> Result<bool> {
    if find("rpm").is_none() {
        return Ok(false);
    }
    let list = output(Command::new("rpm").args(["--query", "--list", "--package"]).arg(package))?;
    check(&list, &["/usr/share/zsh/site-functions/_jobtrace"])?;
    Ok(true)
}

/// Whether each path ends a line of `list`, as both programs print them.
fn check(list: &str, own: &[&str]) -> Result<()> {
    let is_there = |path: &str| list.lines().any(|line| line.trim_end().ends_with(path));
    let documents = documents()?.into_iter().map(|path| format!("{INSTALLED}/{}", path.display()));
    let all = BOTH.iter().chain(own).map(|path| (*path).to_owned()).chain(documents);
    let missing: Vec<String> = all.filter(|path| !is_there(path)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("the package lacks {}", missing.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let line = |path: &str| format!("-rw-r--r-- root/root 1 2026-01-01 00:00 .{path}\n");
        let documents = documents().expect("documents").into_iter();
        let documents = documents.map(|path| line(&format!("{INSTALLED}/{}", path.display())));
        let all: String = BOTH.iter().map(|path| line(path)).chain(documents).collect();
        check(&all, &[]).expect("all there");
        let error = check(&all, &["/usr/share/x"]).expect_err("not there").to_string();
        assert_eq!(error, "the package lacks /usr/share/x");
    }
}
