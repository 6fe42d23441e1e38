//! What the guest of `cargo xtask vm` tells its host: one JSON object on each line of its second
//! serial port. Written by `tests/src/bin/vm_guest`, read by the chore.

use serde::{Deserialize, Serialize};

/// On the console, where a check takes longer than any should.
pub const NOT_DONE: &str = "not done within";
/// Of the kernel's command line: which cgroups to mount, `v1` or `v2`.
pub const CGROUPS: &str = "jobtrace.cgroups";
/// Of the kernel's command line: what to do, by [`Work`]'s name.
pub const WORK: &str = "jobtrace.work";
/// Of the kernel's command line: the only checks to make, by the beginnings of their names, with `_` for blanks
/// and `,` between them.
pub const CHECKS: &str = "jobtrace.checks";
/// Of the kernel's command line: the file of the serial port to the host.
pub const PORT: &str = "jobtrace.port";
/// Where the guest finds modules to load, in the order of their names.
pub const MODULES: &str = "/modules";
/// Where it finds `jobtrace` and the workloads.
pub const PROGRAMS: &str = "/bin";

/// What a boot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Every hook, and every check against the kernel's own accounts.
    Checks,
    /// Every hook, and one check of each kind: what `cargo xtask test` has time for.
    Quick,
    /// An agent's memory and the time it takes to read it.
    Sizes,
}

impl Work {
    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Checks, Self::Quick, Self::Sizes].into_iter().find(|work| work.name() == name)
    }

    /// As on the kernel's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checks => "checks",
            Self::Quick => "quick",
            Self::Sizes => "sizes",
        }
    }
}

/// How a hook or a check fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// A hook is attached; a check agrees with the kernel.
    Ok,
    /// An alternative of the hook is attached.
    Unneeded,
    /// The kernel lacks it, and jobtrace or the check says so by name.
    Absent,
    /// The numbers disagree, or something did not work at all.
    Failed,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "lowercase")]
pub enum Line {
    /// The guest runs.
    Begin {
        /// `uname -r`.
        release: String,
        /// `uname -m`.
        machine: String,
    },
    /// A hook, as `jobtrace doctor` found it.
    Hook {
        /// Name of its BPF program.
        program: String,
        /// How it fared.
        outcome: Outcome,
        /// Why it is absent.
        why: String,
    },
    /// A check begins, or a reading.
    Start {
        /// Its name.
        check: String,
    },
    /// A check has ended.
    Check {
        /// Its name.
        check: String,
        /// How it fared.
        outcome: Outcome,
        /// Its comparisons, or why it is absent.
        lines: Vec<String>,
    },
    /// An agent was measured.
    Size(Size),
    /// All is done.
    End,
}

/// What an agent needs on a node with so many possible CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// CPUs that the kernel could have: what per-CPU maps are made for.
    pub possible_cpus: u64,
    /// CPUs that run.
    pub online_cpus: u64,
    /// `--faults`.
    pub faults: String,
    /// Slots with banks: spare ones, and those of jobs.
    pub slots: u64,
    /// `map_bytes` of `jobtrace_self`.
    pub map_bytes: u64,
    /// `drain_ns` of `jobtrace_self`, of one reading.
    pub drain_ns: u64,
    /// Resident memory of the agent without pages of files, bytes.
    pub anonymous_bytes: u64,
}
