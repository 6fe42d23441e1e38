//! The limit of open files: raised for jobtrace itself, which holds some for each CPU and slot.

use std::{error::Error, fmt};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What `jobtrace run` holds at most whatever the node's CPUs: maps, programs, links, cgroups, outputs, and
/// what it takes to start the command, and the files of its cgroup that stay open; 84 were measured.
const FIXED: u64 = 104;
/// Room for what a GPU's driver opens.
const OF_GPUS: u64 = 38;
/// And for each CPU: the events of page faults.
const PER_CPU: u64 = 3;

/// The limit as it was found, for a command that is started: it must not find another one under jobtrace.
#[derive(Clone, Copy, Debug)]
pub struct OpenFiles(Rlimit);

impl OpenFiles {
    /// Raises the soft limit as far as anybody may, to the hard one.
    pub fn raise() -> Self {
        let found = getrlimit(Resource::Nofile);
        // Never refused; and were it, the file that is one too many would say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: found.maximum, ..found });
        Self(found)
    }

    /// Gives the limit back, in the forked child; one system call. Files above it stay open.
    pub fn restore(&self) {
        let _ = setrlimit(Resource::Nofile, self.0);
    }
}

/// The hard limit of open files is too low for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFew {
    /// What it is.
    pub most: u64,
    /// What `jobtrace run` needs.
    pub needed: u64,
}

impl TooFew {
    /// What to do.
    pub fn cure(&self) -> String {
        format!("raise the hard limit: ulimit -Hn {} as root, or limits.conf", self.needed)
    }
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, needed } = self;
        write!(
            f,
            "at most {most} files may be open, but this node's CPUs need {needed}: {}",
            self.cure()
        )
    }
}

impl Error for TooFew {}

/// Refuses a hard limit under which not everything could be traced, and loading would end halfway.
///
/// # Errors
/// When it is too low; not where the CPUs cannot be counted.
pub fn check() -> Result<(), TooFew> {
    let (Some(most), Ok(cpus)) = (most(), aya::util::online_cpus()) else { return Ok(()) };
    let needed = needed(cpus.len() as u64);
    if most < needed { Err(TooFew { most, needed }) } else { Ok(()) }
}

/// How many files `jobtrace run` may come to hold on a node of so many CPUs that are online.
pub fn needed(cpus: u64) -> u64 {
    FIXED + PER_CPU * cpus
}

/// The same with room for GPUs.
pub fn needed_with_gpus(cpus: u64) -> u64 {
    needed(cpus) + OF_GPUS
}

/// How many this process may come to hold; `None`: as many as it likes.
pub fn most() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
