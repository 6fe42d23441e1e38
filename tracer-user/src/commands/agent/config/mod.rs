//! /etc/jobtrace/jobtrace.toml: what may be set, its defaults and its limits. Reading, printing and
//! comparing lie beside; nothing here touches a file.

mod keys;
mod limits;
mod load;
mod print;
mod reload;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    base::{
        suggest,
        values::{Size, Time},
    },
    probes::FaultMode,
    resolve::SiteRule,
};
pub use keys::{Effect, KEYS, Key};
pub use load::{DEFAULT_FILE, Flags, load, parse};
pub use reload::{Difference, reload_difference};

pub use crate::lines::{
    form::Style,
    profile::{BucketStyle, Profile},
};

/// The whole configuration. The defaults are [`Config::default`]'s and nobody else's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Tag `cluster` of every line; empty: no such tag.
    pub cluster: String,
    /// Tag `host`; empty: the node's name.
    pub host: String,
    /// Time between two readings, whole seconds.
    pub interval: Time,
    /// Which page faults are timed.
    pub faults: FaultMode,
    /// The hierarchy whose cgroups are jobs.
    pub hierarchy: Hierarchy,
    /// Jobs traced at once.
    pub slots: u32,
    /// Slots kept ready for cgroups that nobody has noticed yet.
    pub spare_slots: u32,
    /// Whether programs and maps outlive the agent, in bpffs.
    pub pin: bool,
    /// Whether each step of a job is a series.
    pub steps: bool,
    /// Where lines go until somebody fetches them.
    pub spool: Spool,
    /// The agent's own files.
    pub state: State,
    /// What is written of each job.
    pub export: Export,
    /// What the probes may cost.
    pub overhead: Overhead,
    /// How GPUs are sampled.
    pub gpu: Gpu,
    /// What is a job.
    pub jobs: Jobs,
    /// Rules of the site, tried before the built-in ones.
    #[serde(rename = "rule")]
    pub rules: Vec<SiteRule>,
}

/// `[spool]`: bounds of the folder that collectors read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spool {
    /// The folder.
    pub dir: PathBuf,
    /// All its files together.
    pub max_bytes: Size,
    /// Number of its files.
    pub max_files: u64,
    /// Age of its oldest file.
    pub max_age: Time,
}

/// `[state]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct State {
    /// Folder of the lock and the socket.
    pub dir: PathBuf,
}

/// `[export]`: how much is written of each job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Export {
    /// Whose names and habits the lines have.
    pub style: Style,
    /// Where neither of the tables below says otherwise.
    pub profile: Profile,
    /// How histogram buckets are written.
    pub bucket_style: BucketStyle,
    /// Whether HdrHistogram logs are written beside the lines.
    pub hlog: bool,
    /// Profiles by manager.
    pub by_manager: BTreeMap<String, Profile>,
    /// Profiles by job id; before those by manager.
    pub by_job: BTreeMap<String, Profile>,
}

/// `[overhead]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overhead {
    /// Share of the node's CPU time that probes may take.
    pub max_ratio: f64,
    /// Intervals in a row above that before probes are detached.
    pub patience: u32,
    /// How long they stay detached the first time.
    pub back_off: Time,
    /// Whether the kernel measures the probes' run time.
    pub statistics: Statistics,
}

/// `[gpu]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// Whether to sample.
    pub sample: bool,
    /// Time between two readings.
    pub period: Time,
    /// Time until a driver that was not there is looked for again.
    pub retry: Time,
    /// Folder of files that name the job of each GPU; empty: none.
    pub held_dir: PathBuf,
    /// Folder with the sys and proc of AMD's, Intel's and others' GPUs.
    pub sysfs_root: PathBuf,
}

/// `[jobs]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jobs {
    /// Managers whose jobs are counted in `_system`.
    pub ignore: Vec<String>,
}

/// When the kernel measures the run time of BPF programs, about 50 ns a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// The hierarchy whose cgroups are told apart.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Hierarchy {
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

impl std::str::FromStr for Hierarchy {
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

impl TryFrom<String> for Hierarchy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Hierarchy> for String {
    fn from(hierarchy: Hierarchy) -> Self {
        match hierarchy {
            Hierarchy::Auto => "auto".into(),
            Hierarchy::V2 => "v2".into(),
            Hierarchy::V1(controller) => controller,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            host: String::new(),
            interval: Time::seconds(10),
            faults: FaultMode::Major,
            hierarchy: Hierarchy::Auto,
            slots: 256,
            spare_slots: 64,
            pin: false,
            steps: false,
            spool: Spool::default(),
            state: State::default(),
            export: Export::default(),
            overhead: Overhead::default(),
            gpu: Gpu::default(),
            jobs: Jobs::default(),
            rules: Vec::new(),
        }
    }
}

impl Default for Spool {
    fn default() -> Self {
        Self {
            dir: "/var/spool/jobtrace".into(),
            max_bytes: Size(1 << 30),
            max_files: 10_000,
            max_age: Time::seconds(7 * 24 * 60 * 60),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self { dir: "/run/jobtrace".into() }
    }
}

impl Default for Export {
    fn default() -> Self {
        Self {
            style: Style::Jobtrace,
            profile: Profile::Summary,
            bucket_style: BucketStyle::Le,
            hlog: false,
            by_manager: BTreeMap::new(),
            by_job: BTreeMap::new(),
        }
    }
}

impl Default for Gpu {
    fn default() -> Self {
        Self {
            sample: true,
            period: Time::seconds(1),
            retry: Time::seconds(300),
            held_dir: "/run/gpustat".into(),
            sysfs_root: "/".into(),
        }
    }
}

impl Default for Overhead {
    fn default() -> Self {
        Self {
            max_ratio: 0.01,
            patience: 3,
            back_off: Time::seconds(60),
            statistics: Statistics::Off,
        }
    }
}
