//! Gets programs through the system's package manager, only what is missing and said aloud.

use crate::process::{as_root, find, run, say};
use anyhow::{Result, bail};

/// A program and the package that holds it in each family of distributions.
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

/// What the live tests surround the agent with: a scheduler, a data base, a container, an init system.
/// Other families than Debian's name them so where they have them at all; the package manager says
/// which it does not know, and the test that needs it fails.
pub const RIGS: &[Tool] = &[
    Tool { program: "gcc", apt: "gcc", dnf: "gcc", zypper: "gcc" },
    Tool { program: "slurmctld", apt: "slurmctld", dnf: "slurm-slurmctld", zypper: "slurm" },
    Tool { program: "slurmd", apt: "slurmd", dnf: "slurm-slurmd", zypper: "slurm-node" },
    Tool { program: "sbatch", apt: "slurm-client", dnf: "slurm", zypper: "slurm" },
    Tool { program: "munged", apt: "munge", dnf: "munge", zypper: "munge" },
    Tool { program: "influxd", apt: "influxdb", dnf: "influxdb", zypper: "influxdb" },
    Tool { program: "influx", apt: "influxdb-client", dnf: "influxdb", zypper: "influxdb" },
    Tool {
        program: "victoria-metrics",
        apt: "victoria-metrics",
        dnf: "victoria-metrics",
        zypper: "victoria-metrics",
    },
    Tool { program: "runc", apt: "runc", dnf: "runc", zypper: "runc" },
    Tool { program: "mmdebstrap", apt: "mmdebstrap", dnf: "mmdebstrap", zypper: "mmdebstrap" },
];

/// What the live tests and the benchmarks run as workloads.
pub const WORKLOADS: &[Tool] = &[
    Tool { program: "fio", apt: "fio", dnf: "fio", zypper: "fio" },
    Tool { program: "perf", apt: "linux-perf", dnf: "perf", zypper: "perf" },
];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn present_tools_need_nothing() {
        let shell = Tool { program: "sh", apt: "dash", dnf: "bash", zypper: "bash" };
        need(&[shell]).expect("sh is there");
    }

    #[test]
    fn each_family_has_its_own_name_for_perf() {
        let perf = &WORKLOADS[1];
        assert_eq!(Manager::Apt.package(perf), "linux-perf");
        assert_eq!(Manager::Dnf.package(perf), "perf");
        assert_eq!(Manager::Zypper.package(perf), "perf");
    }
}
