//! Values that only the agent's configuration has.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{base::suggest, model::software::Level};

/// When the kernel measures the run time of BPF programs, about 50 ns a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistics {
    /// Never: the cost is estimated from counts of events.
    #[default]
    Off,
    /// For one interval in many.
    Windows,
    /// Always.
    On,
}

/// How much is told of the software that jobs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CensusMode {
    /// Nothing, and nothing is loaded that could see it.
    #[default]
    Off,
    /// Numbers alone.
    Counts,
    /// Names and versions.
    Names,
    /// Also the C library's parts, and distributions that only their lists of files tell.
    Full,
}

impl CensusMode {
    /// How much is told; `None` where nothing is.
    pub fn level(self) -> Option<Level> {
        match self {
            Self::Off => None,
            Self::Counts => Some(Level::Counts),
            Self::Names => Some(Level::Names),
            Self::Full => Some(Level::Full),
        }
    }
}

/// What the lines of software tell of a job's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SoftwareUser {
    /// Their name, as all lines.
    #[default]
    On,
    /// Nothing.
    Off,
    /// The same number for the same user.
    Hashed,
}

/// The hierarchy whose cgroups are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum JobHierarchy {
    /// What this host's schedulers use.
    #[default]
    Auto,
    /// The unified one.
    V2,
    /// The v1 one of this controller.
    V1(String),
}

/// v1 controllers, `include/linux/cgroup_subsys.h`.
const CONTROLLERS: &[&str] = &[
    "cpuset",
    "cpu",
    "cpuacct",
    "blkio",
    "memory",
    "devices",
    "freezer",
    "net_cls",
    "perf_event",
    "net_prio",
    "hugetlb",
    "pids",
    "rdma",
    "misc",
];

impl std::str::FromStr for JobHierarchy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "v2" => Ok(Self::V2),
            name if CONTROLLERS.contains(&name) => Ok(Self::V1(name.to_owned())),
            other => {
                let known = ["auto", "v2"].into_iter().chain(CONTROLLERS.iter().copied());
                Err(format!("unknown hierarchy `{other}`{}", suggest::cure(other, known)))
            }
        }
    }
}

impl TryFrom<String> for JobHierarchy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<JobHierarchy> for String {
    fn from(hierarchy: JobHierarchy) -> Self {
        match hierarchy {
            JobHierarchy::Auto => "auto".into(),
            JobHierarchy::V2 => "v2".into(),
            JobHierarchy::V1(controller) => controller,
        }
    }
}
