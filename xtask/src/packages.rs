//! Gets programs through the system's package manager, only what is missing and said aloud.

use crate::process::{as_root, cargo, find, run, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use xtask::root;

/// A program and the package that holds it in each family of distributions.
#[derive(Clone, Copy)]
pub struct Tool {
    /// The program's name on the search path.
    pub program: &'static str,
    /// Debian's and Ubuntu's package.
    pub apt: &'static str,
    /// Fedora's and Red Hat's package.
    pub dnf: &'static str,
    /// SUSE's package.
    pub zypper: &'static str,
}

/// A tool and its packages: Debian's, Fedora's, SUSE's.
pub const fn tool(program: &'static str, [apt, dnf, zypper]: [&'static str; 3]) -> Tool {
    Tool { program, apt, dnf, zypper }
}

/// The C compiler.
pub const GCC: Tool = tool("gcc", ["gcc"; 3]);

/// What counts calls beside us.
pub const STRACE: Tool = tool("strace", ["strace"; 3]);

/// What the live tests surround the agent with: a scheduler, data bases, a container, an init system, and
/// what runs the checks of dashboards.
/// Other families than Debian's name them so where they have them at all; the package manager says
/// which it does not know, and the test that needs it fails.
pub const RIGS: &[Tool] = &[
    GCC,
    tool("slurmctld", ["slurmctld", "slurm-slurmctld", "slurm"]),
    tool("slurmd", ["slurmd", "slurm-slurmd", "slurm-node"]),
    tool("sbatch", ["slurm-client", "slurm", "slurm"]),
    tool("munged", ["munge"; 3]),
    tool("influxd", ["influxdb"; 3]),
    tool("influx", ["influxdb-client", "influxdb", "influxdb"]),
    tool("victoria-metrics", ["victoria-metrics"; 3]),
    tool("node", ["nodejs"; 3]),
    tool("npm", ["npm"; 3]),
    tool("python3", ["python3"; 3]),
    tool("runc", ["runc"; 3]),
    tool("chromium", ["chromium"; 3]),
    tool("mmdebstrap", ["mmdebstrap"; 3]),
    tool("bindfs", ["bindfs"; 3]),
    tool("mkfs.btrfs", ["btrfs-progs", "btrfs-progs", "btrfsprogs"]),
    tool("mkfs.xfs", ["xfsprogs"; 3]),
    tool("sqlite3", ["sqlite3", "sqlite", "sqlite3"]),
    tool("git", ["git"; 3]),
    STRACE,
];

/// What the live tests and the benchmarks run as workloads.
pub const WORKLOADS: &[Tool] =
    &[tool("fio", ["fio"; 3]), tool("perf", ["linux-perf", "perf", "perf"])];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manager {
    Apt,
    Dnf,
    Zypper,
}

impl Manager {
    fn of_this_system() -> Option<Self> {
        [("apt-get", Self::Apt), ("dnf", Self::Dnf), ("zypper", Self::Zypper)]
            .into_iter()
            .find_map(|(program, manager)| find(program).map(|_| manager))
    }

    fn package(self, tool: &Tool) -> &'static str {
        match self {
            Self::Apt => tool.apt,
            Self::Dnf => tool.dnf,
            Self::Zypper => tool.zypper,
        }
    }

    fn install(self, packages: &[&str]) -> Result<()> {
        match self {
            Self::Apt => apt_install(packages),
            Self::Dnf => run(as_root("dnf", &[]).args(["install", "-y"]).args(packages)),
            Self::Zypper => {
                run(as_root("zypper", &[]).args(["--non-interactive", "install"]).args(packages))
            }
        }
    }
}

/// Installs the tools that are missing; does nothing and says nothing when none is.
///
/// # Errors
/// When there is no package manager that we know, or it fails.
pub fn need(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| find(tool.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let Some(manager) = Manager::of_this_system() else {
        bail!("missing: {}; no apt-get, dnf or zypper here: install them by hand", names.join(", "))
    };
    say(format_args!("missing: {}; installing", names.join(", ")));
    let mut packages: Vec<&str> = missing.iter().map(|tool| manager.package(tool)).collect();
    packages.sort_unstable();
    packages.dedup();
    manager.install(&packages)
}

/// Modules of Python's that the live tests need: who has them, what to import, and Debian's package.
const MODULES: [(&str, &str, &str); 2] = [
    // Debian has it in a package of its own.
    ("python3", "ensurepip, venv", "python3-venv"),
    // The system's interpreter: packages are for no other one.
    ("/usr/bin/python3", "h5py", "python3-h5py"),
];

/// Installs modules of Python's that are missing.
///
/// # Errors
/// When one is missing and cannot be installed.
pub fn need_modules() -> Result<()> {
    for (program, modules, package) in MODULES {
        let has = || {
            let mut python = std::process::Command::new(program);
            let asked = python.arg("-c").arg(format!("import {modules}"));
            let status = asked.stderr(std::process::Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        if has() {
            continue;
        }
        say(format_args!("missing: Python's {modules}; installing"));
        if Manager::of_this_system() == Some(Manager::Apt) {
            apt_install(&[package])?;
        }
        if !has() {
            bail!("{program} has no {modules}: install it by hand");
        }
    }
    Ok(())
}

/// Installs Debian packages; fetches the package lists only when the first attempt fails.
///
/// # Errors
/// When apt-get fails twice.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let install = || {
        let mut command = as_root("env", &[]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q"]);
        run(command.arg("--no-install-recommends").args(packages))
    };
    if install().is_ok() {
        return Ok(());
    }
    say("that failed: the package lists may be old, fetching them");
    run(as_root("apt-get", &[]).args(["update", "-q"]))?;
    install()
}

/// The program `name` of cargo's registry, built below target/tools and nowhere else where it is not there
/// in exactly this version.
///
/// # Errors
/// When it cannot be built.
pub fn need_of_cargo(name: &str, version: &str) -> Result<PathBuf> {
    let folder = root().join("target/tools");
    let program = folder.join("bin").join(name);
    let noted = folder.join(format!("{name}-{version}"));
    if !program.is_file() || !noted.is_file() {
        say(format_args!("{name} {version} is missing: building it into target/tools"));
        let mut command = cargo();
        command.args(["install", name, "--version", &format!("={version}"), "--locked", "--root"]);
        // Flags meant for our own crates are not its own.
        command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        run(command.arg(&folder))?;
        fs::write(&noted, "").with_context(|| format!("write {}", noted.display()))?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_tools_need_nothing() {
        need(&[tool("sh", ["dash", "bash", "bash"])]).expect("sh is there");
    }

    #[test]
    fn each_family_has_its_own_name_for_perf() {
        let perf = &WORKLOADS[1];
        assert_eq!(Manager::Apt.package(perf), "linux-perf");
        assert_eq!(Manager::Dnf.package(perf), "perf");
        assert_eq!(Manager::Zypper.package(perf), "perf");
    }
}
